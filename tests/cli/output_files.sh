#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the output files of options: files of other programs, one file for two options, pipes without a reader,
# full disks, links, permissions, long names, a non-blocking stdout. Existing data must be kept, measured data must
# be written, and nothing may hang.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
reader
prog=$PWD/$tmp/prog
quick="--iters 3 --warmup 1 --no-progress -q --op mse"
plain="json jsonl csv md gbench go html svg trace" # options that take a file; --svg needs --plot
of() { # OPTION FILE: the words
    [ "$1" = svg ] && printf '%s ' --plot samples
    printf '%s %s' "--$1" "$2"
}
"$prog" $quick --json "$tmp/one.json" --jsonl "$tmp/one.jsonl" > "$tmp/out" 2>&1

# --- files of other programs are not changed
mkdir "$tmp/theirs"
printf '[package]\nname = "x"\n' > "$tmp/theirs/Cargo.toml"
printf '{\n  "name": "x",\n  "operation": 1,\n  "version": "1.0"\n}\n' > "$tmp/theirs/package.json"
printf '{"name": "x", "version": "1.0"}\n' > "$tmp/theirs/small.json"
printf '[core]\n\tbare = false\n' > "$tmp/theirs/config"
printf '[a link](x) and text, kbenchmark 1\n' > "$tmp/theirs/README.md"
printf '[1, 2, 3]\n' > "$tmp/theirs/list.json"
printf '{"context": {"date": "today"}, "benchmarks": []}\n' > "$tmp/theirs/gbench.json"
printf '<!DOCTYPE html>\n<title>mine</title>\n' > "$tmp/theirs/index.html"
printf 'name,age\nx,1\n' > "$tmp/theirs/x.csv"
turn=0
for file in "$tmp"/theirs/*; do
    before=$(cksum < "$file")
    for option in $plain history; do
        turn=$((turn + 1))
        everything || [ $((turn % 3)) = 0 ] || continue
        run "$prog" $quick $(of $option "$file")
        check_rc "--$option ${file##*/}" 2
        check_same "--$option ${file##*/}: it stays" "$(cksum < "$file")" "$before"
    done
done
check_same "nothing is left beside them" "$(ls "$tmp/theirs" | wc -l | tr -d ' ')" 9
for name in report.md comparison.md comparison.csv; do
    mkdir "$tmp/report" && echo "my notes" > "$tmp/report/$name"
    run "$prog" $quick --report "$tmp/report"
    check_rc "--report over another $name" 2
    check_same "--report: $name stays" "$(cat "$tmp/report/$name"; ls "$tmp/report")" "my notes
$name"
    rm -r "$tmp/report"
done
for option in $plain; do # own files and empty files are replaced
    : > "$tmp/own.$option"
    for i in 1 2; do
        run "$prog" $quick $(of $option "$tmp/own.$option")
        check_rc "--$option, time $i" 0
    done
done
for i in 1 2; do
    run "$prog" $quick --report "$tmp/report"
    check_rc "--report, time $i" 0
done
run "$prog" $quick --jsonl "$tmp/one.json"
check_rc "--jsonl on an array" 2
run "$prog" $quick --json "$tmp/one.jsonl"
check_rc "--json on lines" 2
# an environment variable cannot overwrite a file
echo "my notes" > "$tmp/notes"
KBENCH_PROFILED=$tmp/notes run "$prog" $quick
check_rc "KBENCH_PROFILED on another file" 2
check_same "KBENCH_PROFILED: the file stays" "$(cat "$tmp/notes")" "my notes"

# --- one file for two options
cp "$tmp/one.jsonl" "$tmp/r" && ln -s r "$tmp/soft"
for first in $plain history; do
    for second in $plain history; do
        [ $first = $second ] && continue
        for names in "$tmp/r $tmp/./r" "$tmp/r $tmp/soft" "$tmp/new $tmp/../${tmp##*/}/new"; do
            turn=$((turn + 1))
            everything || [ $((turn % 4)) = 0 ] || continue
            "$prog" $quick $(of $first "${names% *}") $(of $second "${names#* }") > "$tmp/out" 2> "$tmp/err"
            rc=$?
            [ $rc -eq 2 ] && grep -q 'are one file' "$tmp/err" || fail "--$first --$second $names: exit code $rc: $(cat "$tmp/err")"
        done
    done
    pass
done
check_same "one file under two options: it stays" "$(cksum < "$tmp/r")" "$(cksum < "$tmp/one.jsonl")"
if [ -e "$tmp/new" ]; then fail "kbench created a file that two options name"; else pass; fi
run "$prog" $quick --report "$tmp/report" --md "$tmp/report/comparison.md"
check_rc "--report and --md" 2
for option in $plain; do
    "$prog" $quick $(of $option "$tmp/out.txt") > "$tmp/out.txt" 2> "$tmp/err"
    check_same "--$option to the file that stdout goes to" $? 2
    rm -f "$tmp/out.txt"
done
run "$prog" $quick --json /dev/null --csv /dev/null
check_rc "/dev/null twice" 0
run "$prog" $quick --json /dev/stdout
check_rc "/dev/stdout" 0
check "/dev/stdout: records alone" "$tmp/flat" "$out"

# --- no wait for a pipe without a reader, or for a file of an enclosing folder that is a pipe
mkfifo "$tmp/pipe"
mkdir -p "$tmp/git/a" && mkfifo "$tmp/git/.git"
mkdir -p "$tmp/head/.git" "$tmp/head/a" && mkfifo "$tmp/head/.git/HEAD"
limit="timeout 20"
have timeout || limit=
for option in $plain history; do
    run $limit "$prog" $quick $(of $option "$tmp/pipe")
    check_rc "--$option: a pipe that nobody reads" 2
done
run $limit "$prog" $quick --resume --jsonl "$tmp/pipe"
check_rc "--resume: a pipe" 2
run $limit "$prog" --list --resume --jsonl "$tmp/pipe"
check_rc "--list --resume: a pipe" 2
for option in --load --baseline; do
    run $limit "$prog" $quick $option "$tmp/pipe"
    check_rc "$option: a pipe that nobody writes to" 2
done
for folder in git head; do
    (cd "$tmp/$folder/a" && $limit "$prog" $quick > ../said 2>&1)
    check_same "$folder: a pipe in its place" $? 0
done
mkdir -p "$tmp/base/.kbench" && mkfifo "$tmp/base/.kbench/pipe.json" && echo "my notes" > "$tmp/base/.kbench/notes.json"
for name in pipe notes; do
    (cd "$tmp/base" && $limit "$prog" $quick --save-baseline $name > said 2>&1)
    check_same "--save-baseline over $name" $? 2
    check_same "--save-baseline over $name: nothing ran" "$(grep -c '^mse' "$tmp/base/said")" 0
done
check_same "--save-baseline: the file stays" "$(cat "$tmp/base/.kbench/notes.json")" "my notes"
rm "$tmp/pipe"

# --- full disks and links
for option in $plain history; do
    [ $option = history ] || run "$prog" $quick $(of $option /dev/full)
    [ $option = history ] || check_rc "--$option /dev/full" 2
    [ $option = history ] || check_err "--$option /dev/full" 'no space left'
    rm -rf "$tmp/disk" && mkdir "$tmp/disk"
    "$prog" $quick $(of $option "$tmp/disk/old") > "$tmp/out" 2>&1
    chmod 600 "$tmp/disk/old" && ln -s old "$tmp/disk/link"
    before=$(cksum < "$tmp/disk/old")
    (ulimit -f 0; "$prog" $quick $(of $option "$tmp/disk/link") 2>&1; echo "exit code $?") | cat > "$tmp/out"
    if grep -q 'File too large' "$tmp/out" && grep -q 'exit code 2' "$tmp/out"; then pass; else fail "--$option, a full disk: $(cat "$tmp/out")"; fi
    check_same "--$option, a full disk: the old file stays" "$(cksum < "$tmp/disk/old")" "$before"
    run "$prog" $quick $(of $option "$tmp/disk/link")
    check_rc "--$option through a link" 0
    check_same "--$option through a link: its mode" "$(ls -l "$tmp/disk/old" | cut -c 1-10)" "-rw-------"
    check_same "--$option through a link: nothing else" "$(ls "$tmp/disk" | tr '\n' ' ')" "link old "
    if [ -L "$tmp/disk/link" ]; then pass; else fail "--$option: the symbolic link was replaced by a file"; fi
done

# --- names of 255 bytes
long=$(printf '%255s' '' | tr ' ' l)
for option in $plain history; do
    rm -rf "$tmp/disk" && mkdir "$tmp/disk"
    for i in 1 2; do
        run "$prog" $quick $(of $option "$tmp/disk/$long")
        check_rc "--$option, a name of 255 bytes, time $i" 0
    done
    check_same "--$option, a name of 255 bytes: nothing else" "$(ls "$tmp/disk")" "$long"
done

# --- an option in the place of a file name is rejected
for option in $plain history report save-baseline baseline load compare; do
    run "$prog" $quick $(of $option -x)
    check_rc "--$option -x" 2
    if [ -e ./-x ] || [ -e .kbench/-x.json ]; then fail "--$option makes a file -x"; else pass; fi
done

# --- a non-blocking stdout gets everything
if have python3; then
    cat > "$tmp/slow.py" << 'end'
import os, subprocess, sys, time, fcntl, socket
def go(kind, args):
    if kind == "pipe":
        r, w = os.pipe()
    else:
        a, b = socket.socketpair()
        r, w = a.detach(), b.detach()
    fcntl.fcntl(w, fcntl.F_SETFL, fcntl.fcntl(w, fcntl.F_GETFL) | os.O_NONBLOCK)
    p = subprocess.Popen(args, stdout=w, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(w)
    time.sleep(0.5)
    n = []
    while True:
        s = os.read(r, 3000)
        if not s: break
        n.append(s)
        if len(n) < 40: time.sleep(0.01)
    os.close(r)
    return p.wait(), b"".join(n)
sys.exit(0 if go(sys.argv[1], sys.argv[3:]) == (0, open(sys.argv[2], "rb").read()) else 1)
end
    i=0
    while [ $i -lt 7 ]; do
        "$prog" --iters 30 --warmup 1 --no-progress -q --op softmax,layernorm --jsonl "$tmp/much" > "$tmp/out" 2>&1
        i=$((i + 1))
    done
    for kind in pipe socket; do
        for option in json jsonl csv md gbench go html; do
            everything || [ $kind = pipe ] || [ $option = jsonl ] || continue
            "$prog" --load "$tmp/much" -q --$option - > "$tmp/wanted" 2> "$tmp/err"
            check "--$option - on a $kind that does not block" python3 "$tmp/slow.py" $kind "$tmp/wanted" "$prog" --load "$tmp/much" -q --$option -
        done
        "$prog" --load "$tmp/much" --columns name,time_ms -q > "$tmp/wanted" 2> "$tmp/err"
        check "the table on a $kind that does not block" python3 "$tmp/slow.py" $kind "$tmp/wanted" "$prog" --load "$tmp/much" --columns name,time_ms -q
    done
else
    skip "no python3: a non-blocking stdout is not tested"
fi
finish
