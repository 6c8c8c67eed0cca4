#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --ncu and --nsys with scripts in place of NVIDIA's tools: their start, the use of their output, and the fix
# that kbench prints for each failure. The last part uses the virtual GPU of tests/host/cuda.c and needs CUDA's
# headers.
. tests/lib.sh
. tests/cli/kit.lib
unset COLUMNS NO_COLOR CUDA_HOME CUDA_PATH KBENCH_PROFILED

program prog tests/cli/ncu_and_nsys.c
reader
folder=$(cd "$tmp" && pwd)
TMPDIR=$folder/left
FAKE=$folder/fake
export TMPDIR FAKE
mkdir -p "$TMPDIR" "$folder/bin"
prog=$folder/prog
script="--device script --iters 6 --no-progress"

# The scripts in place of ncu and nsys log their command line, and fail in the way that FAKE_ILL names.
# start: runs the profiled program.
cat > "$folder/bin/fake.sh" << 'END'
printf '%s' "${0##*/} " >> "$FAKE"
printf '[%s] ' "$@" >> "$FAKE"
printf 'LC_ALL=%s\n' "$LC_ALL" >> "$FAKE"
start() { # without the virtual GPU, reports the launches of the file FAKE_LAUNCHES
    if [ -n "${FAKE_ILL#*hang}" ] && [ "${FAKE_ILL-}" = no_start ]; then exit 1; fi
    rm -f "$FAKE.launches"
    FAKE_LOOKS=1 NSYS_PROFILING_SESSION_ID=1 VIRTUAL_LAUNCHES=$FAKE.launches "$@"
    code=$?
    [ -f "$FAKE.launches" ] || [ -n "${VIRTUAL-}" ] || cp "$FAKE_LAUNCHES" "$FAKE.launches"
    [ -f "$FAKE.launches" ] || : > "$FAKE.launches"
}
END
cat > "$folder/bin/ncu" << 'END'
#!/bin/sh
. "${0%/*}/fake.sh"
log=
while :; do
    case $1 in
    --csv) shift ;;
    --log-file) log=$2 && shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
    esac
done
error() { printf '%s\n' "==ERROR== $*" "==WARNING== No kernels were profiled." >> "$log"; }
case ${FAKE_ILL-} in
old) echo "==ERROR== unrecognised option '--print-units'. Use --help for further details." && exit 1 ;;
dies) kill -SEGV $$ ;;
hangs) sleep 60 ;;
deaf) trap '' TERM && sleep 20 ;;
silent) exit 3 ;;
lock) error "Failed to open /tmp/nsight-compute-lock: Permission denied" && exit 1 ;;
esac
echo "==PROF== Connected to process $$ ($1)" > "$log"
ls -ld "${log%/*}" | cut -c 1-10 > "$FAKE.rights"
start "$@"
case ${FAKE_ILL-} in
rights) error "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions see https://developer.nvidia.com/ERR_NVGPUCTRPERM" && exit 1 ;;
busy) error 'Failed to profile "scale": a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.' && exit 1 ;;
mig) error "Counters of the whole GPU are not available in a shared MIG instance." && exit 1 ;;
chip) error "Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option." && exit 1 ;;
esac
awk -F'\t' '
    BEGIN {
        head = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\""
        print head ",\"dram__bytes.sum\",\"gpu__time_duration.sum\",\"sm__warps_active.avg.pct_of_peak_sustained_active\""
        print "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"ns\",\"%\""
    }
    $1 == "start" || $1 == "stop" { on = $1 == "start"; next }
    on && $1 !~ /^\[/ {
        print "==PROF== Profiling \"" $1 "\" - " id + 0 ": 0%....100% - 1 pass"
        printf "\"%d\",\"1\",\"prog\",\"127.0.0.1\",\"%s\",\"1\",\"7\",\"(256, 1, 1)\",\"(%d, 1, 1)\",\"0\",\"9.0\"", id++, $1, $2
        printf ",\"%d\",\"%d\",\"62.5\"\n", 1000 * $4, $4
    }' "$FAKE.launches" >> "$log"
if [ "${FAKE_ILL-}" = half ]; then # gives up in the second case's block
    head -n 15 "$log" > "$log.half" && mv "$log.half" "$log"
    echo '==ERROR== Failed to profile "other" in process 42' >> "$log" && exit 1
fi
[ "$code" = 0 ] || echo "==ERROR== The application returned an error code ($code)." >> "$log"
echo "==PROF== Disconnected from process $$" >> "$log"
exit $code
END
cat > "$folder/bin/nsys" << 'END'
#!/bin/sh
. "${0%/*}/fake.sh"
what=$1
shift
if [ "$what" = stats ]; then
    for file; do :; done # the last word
    echo "Generating SQLite file ${file%.*}.sqlite from $file"
    echo "Processing [$file] with [/opt/nsys/reports/cuda_gpu_trace.py]..."
    echo
    echo "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
    awk -F'\t' '$1 ~ /^\[/ { printf "%s,%s,1,,,,,,,,,,0.004,,,,H200 (0),1,,7,%s\n", $3, $4, $1; next }
        $1 != "start" && $1 != "stop" { printf "%s,%s,1,%s,1,1,256,1,1,24,0,0,,,,,H200 (0),1,,7,%s\n", $3, $4, $2, $1 }' "$file"
    exit 0
fi
while :; do
    case $1 in
    --output) report=$2 && shift 2 ;;
    --*) shift ;;
    *) break ;;
    esac
done
[ "${FAKE_ILL-}" = silent ] && echo "Error: no space left on device" && echo "Error: no report" && exit 1
start "$@"
cp "$FAKE.launches" "$report.nsys-rep"
exit $code
END
chmod +x "$folder/bin/ncu" "$folder/bin/nsys"
# launches of the first two cases, as the tools report them
{
    printf 'start\t0\t0\t0\nkbi_null\t1\t10\t5\nscale\t64\t100\t2000\nscale\t64\t3000\t4000\nkbi_null\t2\t8000\t5\nstop\t0\t0\t0\n'
    printf 'start\t0\t0\t0\nkbi_null\t3\t9000\t5\nother\t8\t10000\t1000\nkbi_null\t4\t20000\t5\nstop\t0\t0\t0\n'
} > "$folder/launches"
FAKE_LAUNCHES=$folder/launches
export FAKE_LAUNCHES
system=$PATH
PATH=$folder/bin:$PATH
# try ILL OPTIONS...: runs the program with a tool that fails in the way ILL
try() {
    ill=$1
    shift
    : > "$FAKE"
    run env FAKE_ILL="$ill" "$prog" $script "$@"
}
of() { awk -F'\t' -v name="$1" -v key="$2" '$2 == "name" && index($3, name) { at = $1 } $1 == at && $2 == key { print $3; exit }' "$tmp/flat.txt"; }

# --- how the tool is started, and the results
before=$(umask)
umask 022
try "" --ncu --op op --impl one,two --json "$tmp/ncu.json" --csv "$tmp/ncu.csv" --md "$tmp/ncu.md"
umask "$before"
check_rc "--ncu" 0
check_same "the folder that the tool writes into is nobody else's" "$(cat "$FAKE.rights")" drwx------
check_same "ncu is started once" "$(grep -c . "$FAKE")" 1
for word in '\[--profile-from-start\] \[off\]' '\[--clock-control\] \[none\]' '\[--cache-control\] \[all\]' '\[--page\] \[raw\]' \
    '\[--csv\]' '\[--print-units\] \[base\]' '\[--metrics\] \[gpu__time_duration.sum,' '\[--op\] \[op\] \[--impl\] \[one,two\]' 'LC_ALL=C$'; do
    if grep -q -e "$word" "$FAKE"; then pass; else fail "no $word in: $(cat "$FAKE")"; fi
done
if grep -q -e '\[--ncu' "$FAKE"; then fail "the profiled program started ncu again: $(cat "$FAKE")"; else pass; fi
check_err "the command is printed" "^prog: --ncu: LC_ALL=C KBENCH_PROFILED=[^ ]* $folder/bin/ncu .* $prog --device script .*--impl one,two"
check_out "heading" '^ncu, one run of each timed block: 2 of 2 cases$'
check_out "case" '^op/impl=one$'
check_out "kernel" '^ +2 +6\.000 us +100% +6\.000 +62\.50  scale  \(64, 1, 1\) x \(256, 1, 1\)$'
"$tmp/flat" "$tmp/ncu.json" > "$tmp/flat.txt"
check_same "occupancy in the record" "$(of impl=one occupancy_achieved)" 62.5
counters() { grep "\"name\": \"$2[/\"]" "$1" | sed "s/.*\"counters\": \({[^}]*}\).*/\1/"; }
check_same "counters in the record" "$(counters "$tmp/ncu.json" op/impl=one)" \
    '{"dram__bytes.sum": 6000000, "gpu__time_duration.sum": 6000, "sm__warps_active.avg.pct_of_peak_sustained_active": 62.5}'
check_same "another case's" "$(counters "$tmp/ncu.json" op/impl=two | cut -c 1-27)" '{"dram__bytes.sum": 1000000'
if grep -q '"counter_units": {"dram__bytes.sum": "byte", "gpu__time_duration.sum": "ns"' "$tmp/ncu.json"; then pass; else fail "units: $(cat "$tmp/ncu.json")"; fi
if head -n 1 "$tmp/ncu.csv" | grep -q 'counter:dram__bytes.sum,'; then pass; else fail "CSV: $(head -n 1 "$tmp/ncu.csv")"; fi
if grep -q dram "$tmp/ncu.md"; then fail "Markdown output must not contain metrics: $(cat "$tmp/ncu.md")"; else pass; fi
check_same "files that are left" "$(ls "$TMPDIR")" ""
# by_hand writes the command that --ncu printed to a script. The temporary folder of the command was deleted, so
# the script uses files in $TMPDIR.
by_hand() { sed -n 's/^prog: --ncu: //p' "$err" | sed "s|KBENCH_PROFILED=[^ ]*|KBENCH_PROFILED=$TMPDIR/told|; s|--log-file [^ ]*|--log-file $TMPDIR/csv|" > "$tmp/by_hand"; }
by_hand
check "the command by hand" sh "$tmp/by_hand"
check_same "the command by hand: how far it came" "$(tail -n 1 "$TMPDIR/told")" done
rm "$TMPDIR/told"
try "" --ncu --filter "" --exclude "it's \"\$HOME\" a  b\$"
check_rc "words with quotes" 0
by_hand
check "words with quotes by hand" sh "$tmp/by_hand"
check_same "words with quotes by hand: how it is started" "$(sed -n '2s/.*\[--metrics\]//p' "$FAKE")" "$(sed -n '1s/.*\[--metrics\]//p' "$FAKE")"
rm -f "$TMPDIR/told" "$TMPDIR/csv"
run "$prog" --load "$tmp/ncu.json" --columns time,counter:dram__bytes.sum --sort=-counter:dram__bytes.sum
check_out "--load: a metric as a column" 'one +5\.000 +6000000 '
try "" --ncu=full --hot
check_rc "--ncu=full --hot" 0
check_err "--ncu=full --hot" 'cache-control none .*--set full'
try "" --ncu=sm__cycles_active.avg,dram__bytes.sum
check_err "metrics" '--metrics sm__cycles_active.avg,dram__bytes.sum'
try "" --nsys --op op --impl one,two
check_rc "--nsys" 0
check_err "the command" "$folder/bin/nsys profile --trace=cuda,nvtx .*--output [^ ]* $prog --device script"
check_out "heading" '^nsys, one run of each timed block: 2 of 2 cases$'
check_out "kernel" '^ +2 +6\.000 us +100% +24\.00  scale'
check_err "the report's commands" "--nsys: LC_ALL=C $folder/bin/nsys stats --format csv --force-export=true --report cuda_gpu_trace [^ ]*/report.nsys-rep$"
check_same "nsys leaves nothing" "$(ls "$TMPDIR")" ""
printf 'start\t0\t0\t0\nkbi_null\t1\t10\t5\nscale\t64\t100\t1000\nother\t8\t2000\t3000\nkbi_null\t2\t8000\t5\nstop\t0\t0\t0\n' > "$folder/two"
FAKE_LAUNCHES=$folder/two try "" --ncu --op op --impl one
check_out "two kernels: what takes most" '^ +1 +3\.000 us +75\.0% +3\.000 +62\.50  other  \(8, 1, 1\)'
check_out "two kernels: what takes less" '^ +1 +1\.000 us +25\.0% +1\.000 +62\.50  scale  \(64, 1, 1\)'
try half --ncu
check_rc "half" 2
check_out "half: a case that was not profiled to its end" '^op/impl=two: not profiled$'
try "" --nsys="$tmp/kept.nsys-rep"
check_rc "--nsys=FILE" 0
check_out "--nsys=FILE" '^nsys, one run of each timed block: 2 of 3 cases$'
check "--nsys=FILE: its report is kept" test -s "$tmp/kept.nsys-rep"
try "" --ncu --nsys --quiet
check_rc "both" 0
check_out "both: ncu" '^ncu,'
check_out "both: nsys" '^nsys,'
check_same "both, --quiet: stderr" "$(wc -c < "$err" | tr -d ' ')" 0

# --- a case that ends the program, or never ends: later cases are not profiled
CRASH=1 && export CRASH
try "" --ncu
check_rc "a crash under ncu" 0
check_err "a crash under ncu" 'op/impl=two ended the program under ncu, so the cases after it were not profiled'
check_same "a crash under ncu: starts" "$(grep -c . "$FAKE")" 1
check_out "a crash under ncu: the case's own time stands" 'two +5\.000'
CRASH=hang
try "" --timeout 100ms --ncu
check_rc "a hang under ncu" 0
check_err "a hang under ncu" 'op/impl=two ended the program under ncu'
unset CRASH
run env WRONG=1 "$prog" $script --ncu
check_rc "a case that is wrong" 1

# --- an interrupted run: the profiler ends, and no process or file is left
build_heeds
FAKE_ILL=hangs "$heeds" "$prog" $script --ncu --json "$tmp/cut.json" > "$tmp/out" 2> "$tmp/err" &
sleep 1
kill -INT $!
wait $!
check_same "interrupted: exit code" $? 130
check_same "interrupted: files that are left" "$(ls "$TMPDIR")" ""

# --- failures: kbench prints one line with the fix, prints the results of the cases, and ends with exit code 2
ill() { # ILL OPTION ERE
    try "$1" "$2" --json "$tmp/ill.json" --op op --impl one
    check_rc "$1" 2
    check_err "$1" "error: $2: .*$3"
    check_same "$1: errors" "$(grep -c 'error: ' "$err")" 1
    check_out "$1: the case's own results" 'one +5\.000'
    check "$1: its record" "$tmp/flat" "$tmp/ill.json"
    check_same "$1: files that are left" "$(ls "$TMPDIR")" ""
}
ill rights --ncu 'administrator.*root.*SYS_ADMIN.*NVreg_RestrictProfilingToAdminUsers=0'
ill busy --ncu 'another profiler .*dcgmi profile --pause'
ill mig --ncu 'MIG.*nvidia-smi -mig 0'
ill chip --ncu 'cannot profile this GPU. Try a newer ncu'
ill lock --ncu 'Set TMPDIR to a folder of your own'
ill old --ncu 'does not know the options above'
ill dies --ncu 'ncu failed .signal 11'
ill silent --ncu 'ncu failed \(exit code 3\); its output: nothing'
ill half --ncu 'ncu failed \(exit code 1\); its output: ==ERROR== Failed to profile "other"'
check_same "half: what was seen is in the record" "$(counters "$tmp/ill.json" op/impl=one | cut -c 1-27)" '{"dram__bytes.sum": 6000000'
check_out "half: heading" '^ncu, one run of each timed block: 1 of 1 cases$'
ill silent --nsys 'nsys failed .*no space left on device'
try hangs --ncu --timeout 100ms --op op --impl one
check_rc "a tool that gets nowhere" 2
check_err "a tool that gets nowhere" 'error: --ncu: ncu was stopped, because there was no progress in 1 s; raise --timeout'
run timeout 15 env FAKE_ILL=deaf "$prog" $script --ncu --timeout 100ms --op op --impl one
check_rc "a tool that gets nowhere and does not want to end" 2
check_err "a tool that gets nowhere and does not want to end" 'ncu was stopped, because there was no progress'
check_same "a tool that was stopped: files that are left" "$(ls "$TMPDIR")" ""
rm -f "$FAKE"
run env PATH="$system" "$prog" $script --ncu --json "$tmp/not.json"
if [ -x /usr/local/cuda/bin/ncu ] || env PATH="$system" sh -c 'command -v ncu' > /dev/null; then
    skip "ncu is installed: the message about a missing ncu is not tested"
else
    check_rc "no ncu" 2
    check_err "no ncu" 'error: --ncu: ncu is neither in PATH nor in the CUDA Toolkit .*NVIDIA Nsight Compute'
    check_same "no ncu: nothing was run" "$(wc -c < "$out" | tr -d ' ')" 0
fi
run env NSYS_PROFILING_SESSION_ID=1 "$prog" $script --nsys
check_rc "under another profiler" 2
check_err "under another profiler" 'already runs under a profiler'
mkdir -p "$tmp/home/bin" && cp "$folder/bin/ncu" "$folder/bin/fake.sh" "$tmp/home/bin"
run env PATH="$system" CUDA_HOME="$tmp/home" "$prog" $script --ncu
check_rc "ncu in CUDA_HOME" 0

# --- the command line
for line in "--device script --ncu --list:--list measures no case: leave out --ncu" "--ncu --device all:this option profiles one GPU" \
    "--nsys --device cpu:--device cpu and a build without CUDA cannot run" "--ncu=:takes a set of ncu" "--nsys=:takes a file" "--ncu=a;b:takes a set" "--ncu --ncu=full:given twice"; do
    run "$prog" ${line%%:*}
    check_rc "${line%%:*}" 2
    check_err "${line%%:*}" "${line#*:}"
done
run "$prog" --ncu
check_rc "no CUDA" 2
check_err "no CUDA" 'build without CUDA'
plain less tests/cli/ncu_and_nsys.c
run "$tmp/less" $script --ncu
check_rc "without add-ons" 2
check_err "without add-ons" '--ncu is an option of examples/addons/kbench_inspect.h: include it after kbench.h'

# --- with a virtual GPU
include=$(cuda_headers)
if [ -z "$include" ]; then
    skip "no cuda_runtime_api.h: tests with the virtual GPU are not run"
    finish
fi
virtual_gpu cuda
prog=$folder/cuda script="--iters 5 --no-progress" VIRTUAL=1
export VIRTUAL
try "" --op several,copies,nothing,rivals --ncu --nsys --json "$tmp/virtual.json"
check_rc "a virtual GPU" 1 # the cases copies and nothing contain deliberate mistakes
check_out "ncu" '^ncu, one run of each timed block: 6 of 6 cases$'
check_out "ncu: both kernels" '^ +2 +7\.000 us +100% +7\.000 +62\.50  known'
check_out "ncu: no kernel" '^copies/impl=default: no GPU work$'
check_out "nsys: a copy" ' 0\.004.*\[CUDA memcpy Host-to-Device\]$'
try "" --op breaks,several --ncu
check_err "a GPU that is lost under ncu" 'breaks/impl=default ended the program under ncu'
check_out "a GPU that is lost under ncu" '^ncu, one run of each timed block: 1 of 2 cases$'
VIRTUAL_DEVICES=2 && export VIRTUAL_DEVICES
try "" --device 1 --op several --nsys
check_rc "another GPU" 0
check_out "another GPU" '^nsys, one run of each timed block: 1 of 1 cases$'
VIRTUAL_DEVICES=0
try "" --op several --ncu
check_rc "no GPU" 77
check_err "no GPU" 'no GPU: none found'
check_same "no GPU: errors" "$(grep -c 'error: ' "$err")" 1
finish
