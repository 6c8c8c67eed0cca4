#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Fault injection: each system call of the supervisor fails once while --resume continues a file of records.
# Existing records and lines must be kept, no line may be incomplete, exit code 0 requires that all records are
# written, and nothing may hang. INJECT_CALLS=N tests N evenly spread calls of each kind; "make test-all" tests all
# calls.
. tests/lib.sh
. tests/cli/kit.lib

have strace || { skip "no strace: failing system calls are not tested" && finish; }
program prog tests/cli/sample_program.c
reader
strace -o "$tmp/trace" true 2> /dev/null || { skip "strace may not trace processes here" && finish; }
prog=$tmp/prog
lines=$tmp/d/l.jsonl
limit="timeout -k 1 60"
have timeout || limit=
some="--iters 3 --warmup 1 --no-progress -q --timeout 10s --op silu,mse --resume --jsonl $lines --json $tmp/d/r.json --csv $tmp/d/r.csv"
mkdir "$tmp/d"
"$prog" --iters 3 --warmup 1 --no-progress -q --op softmax,silu --jsonl "$tmp/all" > "$tmp/out" 2>&1
# the file before the run: complete records, a line of another tool, half a record, and a record without a newline
start() {
    rm -rf "$tmp/d" && mkdir "$tmp/d"
    { head -n 5 "$tmp/all" && echo '{"tool": "another"}' && sed -n 6p "$tmp/all" | head -c 200 && echo && sed 1,5d "$tmp/all"; } > "$tmp/lines"
    head -c $(($(wc -c < "$tmp/lines") - 1)) "$tmp/lines" > "$lines"
    cp "$tmp/one.json" "$tmp/d/r.json" 2> /dev/null
    cp "$tmp/one.csv" "$tmp/d/r.csv" 2> /dev/null
}
start
"$prog" --iters 3 --warmup 1 --no-progress -q --op gelu_erf --json "$tmp/one.json" --csv "$tmp/one.csv" > "$tmp/out" 2>&1
grep -v '^.\{200\}$' "$tmp/lines" > "$tmp/kept"
sed -n 6p "$tmp/all" | head -c 200 > "$tmp/half"
start
$limit strace -o "$tmp/trace" "$prog" $some > "$tmp/out" 2> "$tmp/err" < /dev/null
check_same "no fault: exit code" $? 0
check_same "no fault: half a line goes" "$(grep -cxF -f "$tmp/half" "$lines")" 0

# held NAME: checks what must hold after any exit code
held() {
    lost=$(grep -cvxF -f "$lines" "$tmp/kept")
    [ "$lost" -eq 0 ] || { fail "$1: $lost lines of $(wc -l < "$tmp/kept") are lost" && return; }
    grep -vxF -f "$tmp/half" "$lines" | grep -v '"tool": "another"' | grep . > "$tmp/now"
    "$tmp/flat" --lines "$tmp/now" > "$tmp/why" 2>&1 || { fail "$1: a line is incomplete: $(head -c 200 "$tmp/why")" && return; }
    [ $rc -ne 124 ] && [ $rc -ne 137 ] || { fail "$1: the run did not end" && return; }
    cmp -s "$tmp/d/r.json" "$tmp/one.json" || "$tmp/flat" "$tmp/d/r.json" > "$tmp/why" 2>&1 || { fail "$1: --json is neither old nor new: $(head -c 200 "$tmp/why")" && return; }
    cmp -s "$tmp/d/r.csv" "$tmp/one.csv" || [ "$(wc -l < "$tmp/d/r.csv")" -gt 1 ] || { fail "$1: wrong content of the --csv file" && return; }
    if [ $rc -eq 0 ]; then
        [ "$(grep -c '"name": "mse' "$lines")" -eq 1 ] || { fail "$1: exit code 0 without a record" && return; }
        "$tmp/flat" "$tmp/d/r.json" 2> /dev/null | grep -q 'mse' || { fail "$1: exit code 0 without the --json file" && return; }
        grep -q '^mse' "$tmp/d/r.csv" || { fail "$1: exit code 0 without the --csv file" && return; }
    fi
    pass
}
calls=${INJECT_CALLS:-$(everything && echo 1000 || echo 2)}
for how in read:EIO write:ENOSPC openat:EMFILE fsync:EIO rename:EACCES ftruncate:EIO lseek:EIO fcntl:ENOLCK flock:ENOLCK \
    unlink:EACCES fchmod:EPERM fchown:EPERM newfstatat:EIO fstat:EIO stat:EIO lstat:EIO close:EIO readlink:EACCES getdents64:EIO \
    poll:EINTR kill:EPERM; do
    call=${how%:*} error=${how#*:}
    n=$(grep -c "^$call(" "$tmp/trace")
    [ "$n" -gt 0 ] || continue
    step=$(((n + calls - 1) / calls))
    at=$n
    while [ $at -gt 0 ]; do
        start
        $limit strace -o /dev/null -e trace="$call" -e inject="$call:error=$error:when=$at" "$prog" $some > "$tmp/out" 2> "$tmp/err" < /dev/null
        rc=$?
        held "$call $at of $n fails ($error), exit code $rc"
        at=$((at - step))
    done
done
finish
