#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the keys of a record: all keys are present and in order, with numbers or null as documented. Strings and
# files must be unchanged after writing and reading.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
program odd tests/cli/awkward_strings.c
reader
quick="--iters 30 --warmup 1 --no-progress"
python=
for p in python3 python; do if have $p && $p -c 'import json' > /dev/null 2>&1; then python=$p && break; fi; done
value() { awk -F'\t' -v r="$1" -v k="$2" '$1 == r && $2 == k { print $3; exit }' "$tmp/flat.txt"; }

run "$tmp/prog" $quick --op layernorm --size small,medium,batch -a batch_size=1,2 --json "$tmp/ln.json" --jsonl "$tmp/ln.jsonl"
check_rc "a run" 0
build "strict reader takes --json" "$tmp/flat" "$tmp/ln.json"
check "strict reader takes --jsonl" "$tmp/flat" --lines "$tmp/ln.jsonl"
"$tmp/flat" "$tmp/ln.json" > "$tmp/flat.txt"
"$tmp/flat" --lines "$tmp/ln.jsonl" > "$tmp/lines.txt"
check_same "--json and --jsonl hold the same records" "$(cksum < "$tmp/lines.txt")" "$(cksum < "$tmp/flat.txt")"

# the key `command` is quoted for a shell
mkdir -p "$tmp/a folder" && cp "$tmp/prog" "$tmp/a folder/it's"
set -- "$tmp/a folder/it's" --iters 30 --warmup 1 --no-progress --op layernorm --size small --exclude 'no "such" $HOME `name` \\ here' --exclude "two
lines" --exclude "it's" --exclude '[*?]~!#&;x' --json "$tmp/a \$file.json"
[ -n "$python" ] && {
    run "$@"
    if [ $rc -eq 2 ]; then fail "odd arguments: $(said)"; fi
    command=$($python -c 'import json, sys; print(json.load(open(sys.argv[1]))[0]["command"], end="")' "$tmp/a \$file.json")
    printf '%s\0' "$@" > "$tmp/given"
    (eval "set -- $command" && printf '%s\0' "$@") > "$tmp/read"
    check "the command read by a shell is what was given" cmp "$tmp/given" "$tmp/read"
    check_same "plain words stay as they are" "$($python -c 'import json, sys; print(json.load(open(sys.argv[1]))[0]["command"])' "$tmp/ln.json")" \
        "$tmp/prog $quick --op layernorm --size small,medium,batch -a batch_size=1,2 --json $tmp/ln.json --jsonl $tmp/ln.jsonl"
}

rows() { sed -n "/^#define $1(/,/[^\\\\]\$/p" kbench.h; }
wanted=$(rows KB_RECORD | while read -r row; do case $row in KB_STATISTICS*) rows KB_STATISTICS ;; *) echo "$row" ;; esac; done |
    sed -n 's/^ *x([a-z]*, *\([a-z_0-9]*\),.*/\1/p' | tr '\n' ' ')
check_same "the header's table is found" "$(echo $wanted | wc -w | awk '{ print ($1 > 100) }')" 1
records=$(awk -F'\t' '{ n = $1 } END { print n + 1 }' "$tmp/flat.txt")
check_same "records" "$records" 24
i=0
while [ $i -lt "$records" ]; do
    check_same "record $i: keys in order" "$(awk -F'\t' -v r=$i '$1 == r { printf "%s ", $2 }' "$tmp/flat.txt")" "$wanted"
    i=$((i + 1))
done
for key in name operation implementation origin dtype timer backend status kbench_version date command host; do
    case $(value 0 $key) in \"?*\") pass ;; *) fail "$key is $(value 0 $key), expected text" ;; esac
done
for key in time_ms time_ms_mean time_ms_std time_ms_min time_ms_max time_ms_mad time_ms_p5 time_ms_p25 time_ms_p75 time_ms_p95 \
    time_ms_ci_low time_ms_ci_high cv precision samples inference_speed throughput_gbps gflops bytes flops memory_mb memory_bytes \
    batch_size sequence_length tensor_dimension schema seed max_error tolerance wall_ms; do
    case $(value 0 $key) in [0-9]*) pass ;; *) fail "$key is $(value 0 $key), expected a number" ;; esac
done
for key in direction gpu compute_capability driver sm_clock_mhz memory_clock_mhz power_w temperature_c kernel grid block registers \
    occupancy_theoretical occupancy_achieved read_roof_gbps write_roof_gbps tool shard; do
    check_same "$key on a CPU" "$(value 0 $key)" null
done
check_same "processes" "$(value 0 processes)" 1
check_same "process_ms" "$(value 0 process_ms)" "[$(value 0 time_ms)]"
if [ -r /proc/self/status ]; then
    case $(value 0 preemptions) in [0-9]*) pass ;; *) fail "preemptions is $(value 0 preemptions), expected a number" ;; esac
    check_same "cpus" "$(value 0 cpus)" "\"$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)\""
    # a virtual machine may not report a clock
    set -- null null
    if [ -r /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor ]; then set -- '"*"' '[0-9]*'; fi
    case $(value 0 cpu_governor) in $1) pass ;; *) fail "cpu_governor is $(value 0 cpu_governor), expected $1" ;; esac
    case $(value 0 cpu_clock_mhz) in $2) pass ;; *) fail "cpu_clock_mhz is $(value 0 cpu_clock_mhz), expected $2" ;; esac
fi
# the data stays in cache, so there is no copy bandwidth, and the efficiency is relative to the arithmetic peak
check_same "copy_roof_gbps of data in cache" "$(value 0 copy_roof_gbps)" null
case $(value 0 gpu_efficiency) in [0-9]*) pass ;; *) fail "gpu_efficiency on a CPU is $(value 0 gpu_efficiency)" ;; esac
check_same "roof on a CPU" "$(value 0 roof)" '"f32"'
check_same "status" "$(value 0 status)" '"ok"'
check_same "verified" "$(value 0 verified)" true
check_same "schema" "$(value 0 schema)" 3
check_same "no_gpu" "$(value 0 no_gpu)" '"built without CUDA"'
check_same "planned" "$(value 0 planned)" 24
check_same "backend" "$(value 0 backend)" '"cpu"'
check_same "samples_ms are all there" "$(($(value 0 samples_ms | tr -cd , | wc -c) + 1))" "$(value 0 samples)"
check_same "timer" "$(value 0 timer)" '"wall"'
check_same "cache: host work has none" "$(value 0 cache)" null
check_same "params: numbers are numbers" "$(value 0 params | tr -d ' ')" '{"dtype":"f32","batch_size":1,"sequence_length":4,"tensor_dimension":64}'
check_same "name" "$(value 0 name)" '"layernorm/impl=naive/dtype=f32/batch_size=1/sequence_length=4/tensor_dimension=64"'
case $(value 1 verdict) in null | '"FASTER"' | '"SLOWER"' | '"EQUIVALENT"' | '"UNRESOLVED"') pass ;; *) fail "verdict is $(value 1 verdict)" ;; esac
check "times are ordered and rates follow" awk -F'\t' '
    { v[$1, $2] = $3; n = $1 }
    function close_to(a, b) { d = a - b; if (d < 0) d = -d; return d <= 1e-9 * (b < 0 ? -b : b) }
    function want(ok, what, r) { if (!ok) { print "record " r ": " what; bad = 1 } }
    END {
        for (r = 0; r <= n; ++r) {
            want(v[r, "time_ms_min"] <= v[r, "time_ms_p5"] && v[r, "time_ms_p5"] <= v[r, "time_ms_p25"] && v[r, "time_ms_p25"] <= v[r, "time_ms"] &&
                 v[r, "time_ms"] <= v[r, "time_ms_p75"] && v[r, "time_ms_p75"] <= v[r, "time_ms_p95"] && v[r, "time_ms_p95"] <= v[r, "time_ms_max"], "quantiles out of order", r)
            want(v[r, "time_ms_ci_low"] <= v[r, "time_ms"] && v[r, "time_ms"] <= v[r, "time_ms_ci_high"], "the median lies outside its interval", r)
            want(close_to(v[r, "inference_speed"], 1000 / v[r, "time_ms"]), "inference_speed", r)
            want(close_to(v[r, "throughput_gbps"], v[r, "bytes"] / v[r, "time_ms"] / 1e6), "throughput_gbps", r)
            want(close_to(v[r, "gflops"], v[r, "flops"] / v[r, "time_ms"] / 1e6), "gflops", r)
            want(close_to(v[r, "memory_mb"], v[r, "memory_bytes"] / 1048576), "memory_mb", r)
            elements = v[r, "batch_size"] * v[r, "sequence_length"] * v[r, "tensor_dimension"]
            want(v[r, "memory_bytes"] >= 8 * elements && v[r, "memory_bytes"] <= 8 * elements + 65536, "memory_bytes " v[r, "memory_bytes"] " for " 8 * elements, r)
            want(v[r, "bytes"] == 8 * elements, "bytes", r)
        }
        exit bad
    }' "$tmp/flat.txt"
check "speedup and rating follow from the times of a group" awk -F'\t' '
    { v[$1, $2] = $3; n = $1 }
    $2 == "name" { shape[$1] = $3; sub(/impl=[a-z]*/, "", shape[$1]) }
    END {
        for (r = 0; r <= n; ++r)
            for (s = 0; s <= n; ++s) {
                if (shape[r] != shape[s] || v[s, "implementation"] != "\"naive\"" || v[r, "implementation"] != "\"fused\"") continue
                # on a busy machine, the median of ratios differs more from the ratio of medians
                d = v[r, "speedup"] * v[r, "time_ms"] / v[s, "time_ms"]
                low = v[r, "speedup_low"]; high = v[r, "speedup_high"]
                if (d > 1.5 || d < 0.67 || (low != "null" && !(low <= v[r, "speedup"] && v[r, "speedup"] <= high))) { print "record " r ": speedup " v[r, "speedup"]; bad = 1 }
                best = v[s, "time_ms"] < v[r, "time_ms"] ? v[s, "time_ms"] : v[r, "time_ms"]
                ratio = best / v[r, "time_ms"]
                word = ratio >= 0.8 ? "excellent" : ratio >= 0.5 ? "good" : ratio >= 0.2 ? "fair" : "needs work"
                if (v[r, "rating"] != "\"" word "\"") { print "record " r ": rating " v[r, "rating"] " for " ratio; bad = 1 }
                if (v[r, "baseline"] !~ /naive/) { print "record " r ": baseline " v[r, "baseline"]; bad = 1 }
                seen = 1
            }
        exit bad || !seen
    }' "$tmp/flat.txt"

if [ -n "$python" ]; then
    check "a user's three statements" $python tests/cli/read_record.py "$tmp/ln.json"
else
    skip "no python3: the snippet of examples/README.md is not run"
fi

# --- compiled with -ffast-math, kbench writes the same nulls and numbers
if ! everything; then
    :
elif $CC -Ofast -w -DKBENCH_IMPLEMENTATION -I. tests/cli/sample_program.c -o "$tmp/fast" $libs 2> "$tmp/check"; then
    run "$tmp/fast" $quick --op mse --json "$tmp/fast.json"
    check_rc "-Ofast" 0
    build "-Ofast: a right file" "$tmp/flat" "$tmp/fast.json"
    "$tmp/flat" "$tmp/fast.json" > "$tmp/flat.txt"
    for key in time_ms time_ms_min time_ms_max time_ms_ci_low time_ms_raw cv inference_speed throughput_gbps gflops gpu_efficiency max_error wall_ms; do
        case $(value 0 $key) in [0-9]*) pass ;; *) fail "-Ofast: $key is $(value 0 $key), expected a number" ;; esac
    done
    for key in time_ms_p99 read_roof_gbps queries_per_second sm_clock_mhz power_w temperature_c occupancy_theoretical speedup; do
        check_same "-Ofast: $key" "$(value 0 $key)" null
    done
else
    fail "-Ofast: $(head -n 3 "$tmp/check")"
fi

# --- unusual strings and numbers
run "$tmp/odd" $quick --json "$tmp/odd.json"
check_rc "odd strings" 0
build "odd strings make a right file" "$tmp/flat" "$tmp/odd.json"
"$tmp/flat" "$tmp/odd.json" > "$tmp/flat.txt"
grep '	params	' "$tmp/flat.txt" | cut -f 3 | tr -d ' ' > "$tmp/params"
for want in '{"what":"plain"}' '{"what":"quote\"d"}' '{"what":"back\\slash"}' '{"what":"tab\there"}' '{"what":"é"}' '{"what":"100%s%n"}' \
    '{"what":""}' '{"p":0.1,"n":0}' '{"p":1e-300,"n":-1}' '{"p":1e+300,"n":9007199254740993}' '{"p":3,"n":0}' '{"p":-0.5,"n":0}'; do
    if grep -qF -- "$want" "$tmp/params"; then pass; else fail "the file does not contain the params $want"; fi
done
if grep -qE '0\.3333333333333333[,}]' "$tmp/params"; then pass; else fail "1/3 does not come back: $(grep 333 "$tmp/params" | head -n 1)"; fi
case $(value 0 message) in *'line\nbreak \"quoted\" \\ \u0001\u001f'*plain*) pass ;; *) fail "the note in the record is $(value 0 message)" ;; esac
if tail -n +2 "$out" | grep -q "$(printf '[\001\037\033]')"; then fail "control bytes in the table"; else pass; fi

# --- a run in a locale with a decimal comma writes the same file
locale=
for l in de_DE.UTF-8 de_DE.utf8 de_DE fr_FR.UTF-8; do if locale -a 2> /dev/null | grep -qx "$l"; then locale=$l && break; fi; done
if [ -n "$locale" ]; then
    ODD_LOCALE=$locale LC_ALL=$locale run "$tmp/odd" $quick --json "$tmp/locale.json"
    check "locale $locale: a right file" "$tmp/flat" "$tmp/locale.json"
    check_same "locale $locale: params" "$("$tmp/flat" "$tmp/locale.json" | grep '	params	' | cksum)" "$(grep '	params	' "$tmp/flat.txt" | cksum)"
else
    skip "no locale with a decimal comma is installed (tests/host/record_writer.c simulates one)"
fi

# --- --json replaces the whole file, and leaves no temporary file in the directory
mkdir "$tmp/dir"
echo "[ ]" > "$tmp/dir/r.json"
ln "$tmp/dir/r.json" "$tmp/hard_link" # the old file itself must not be written into
run "$tmp/prog" $quick --op mse --json "$tmp/dir/r.json"
check_same "--json replaces" "$("$tmp/flat" "$tmp/dir/r.json" | awk -F'\t' '$2 == "operation" { print $3 }')" '"mse"'
check_same "--json does not write into the old file" "$(cat "$tmp/hard_link")" "[ ]"
check_same "--json leaves no other file" "$(ls -A "$tmp/dir")" r.json
ln -s r.json "$tmp/dir/link.json"
run "$tmp/prog" $quick --op layernorm --json "$tmp/dir/link.json" # one record must replace many
run "$tmp/prog" $quick --op silu --json "$tmp/dir/link.json"
check_rc "--json onto a symbolic link" 0
check "--json onto a symbolic link: readable" "$tmp/flat" "$tmp/dir/link.json"
mkfifo "$tmp/fifo" 2> /dev/null
if [ -p "$tmp/fifo" ]; then
    cat "$tmp/fifo" > "$tmp/from_fifo" &
    reader=$!
    run "$tmp/prog" $quick --op mse --jsonl "$tmp/fifo"
    kill $reader 2> /dev/null
    wait $reader 2> /dev/null
    if [ "$rc" -eq 0 ]; then check "--jsonl into a pipe" "$tmp/flat" --lines "$tmp/from_fifo"; else check_rc "--jsonl into a pipe, refused" 2; fi
fi
# --- the record has the commit of the working folder's repository, worktree or submodule
mkdir -p "$tmp/outer/.git" "$tmp/outer/src" "$tmp/outer/tree"
echo 0123456789abcdef0123456789abcdef01234567 > "$tmp/outer/.git/HEAD"
echo 'gitdir: ../elsewhere' > "$tmp/outer/tree/.git"
there=$tmp/prog && case $there in /*) ;; *) there=$(pwd)/$there ;; esac
for folder in src tree; do
    (cd "$tmp/outer/$folder" && "$there" $quick --op mse --json commit.json > /dev/null 2>&1)
    "$tmp/flat" "$tmp/outer/$folder/commit.json" > "$tmp/flat.txt"
    want='"0123456789abcdef0123456789abcdef01234567"' && [ $folder = tree ] && want=null
    check_same "git_commit in $folder" "$(value 0 git_commit)" "$want"
done
run "$tmp/prog" $quick --op mse --json "$tmp/both.json" --json "$tmp/both2.json"
if [ $rc -eq 2 ] || [ -s "$tmp/both2.json" ]; then pass; else fail "--json twice: $(said)"; fi
finish
