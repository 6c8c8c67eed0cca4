#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Command lines that would need too much memory, time or disk are rejected at once, with the reason. Programs start
# in unusual environments and with unusual resource limits.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
prog=$tmp/prog
quick="--iters 3 --warmup 1 --no-progress"
# small COMMAND...: runs in 200 MB and a few seconds
small() { run sh -c 'ulimit -v 200000 2> /dev/null; exec "$@"' sh timeout 10 "$@"; }
# refused WHAT MESSAGE OPTION...
refused() {
    what=$1 message=$2 && shift 2
    small "$prog" "$@"
    check_rc "$what" 2
    check_err "$what" "$message"
    check_same "$what: one line" "$(wc -l < "$err" | tr -d ' ')" 1
    check_same "$what: nothing on stdout" "$(wc -c < "$out" | tr -d ' ')" 0
}
# taken WHAT LINES OPTION...
taken() {
    what=$1 lines=$2 && shift 2
    small "$prog" --list "$@"
    check_rc "$what" 0
    check_same "$what: cases" "$(wc -l < "$out" | tr -d ' ')" "$lines"
}

# --- patterns
many() { awk -v s="$1" -v n="$2" 'BEGIN { while (n-- > 0) printf "%s", s }'; }
refused "no pattern" 'is not a regular expression' --list --filter '(mse'
taken "a pattern that searches for long elsewhere" 1 --op mse --filter '(((.*)*)*)*e'
taken "groups in groups" 1 --op mse "$(many '(' 64)m$(many ')' 64)"
taken "repeats as people write them" 2 --filter '^softmax/dir=bwd.*/dtype=f[0-9]{1,3}/rows=[[:digit:]]+/cols=32$'
taken "what stands in brackets is no reference, no group, no repeat" 1 --filter '^ms[]\1({]*e'
taken "an alternative for each of 200 names" 1 --filter "^(mse|$(many 'layernorm_of_another_kind|' 150)x)/"

# --- axes
for list in 10^400 10^-400 1e400 1e-400 nan nan^0 1^inf '' , 1, 0:1:+1e-300 1:2:+0 1:2:+-1 2:1 1:2:*1 -1:2:*2 1:inf 1:1e300:+1; do
    refused "-a p=$list" '-a p=.*: .*; as in p=1,2' --list -a "p=$list" --op dropout
done
for list in 1:1e18:+1 1:9e14:+1 1e15 9223372036854775808 -1e18 2^62 0.5 inf 1:4097; do
    refused "-a n=$list" '-a n=.*: .*; as in n=1,2' --list -a "n=$list" --op dropout
done
refused "more than a million cases" 'more than 1000000 cases' --list --op dropout -a n=1:4096 -a p=1:4096
refused "-a without a name's list" 'takes NAME=LIST' --list -a n
refused "-a of nothing" 'takes NAME=LIST' --list -a ''
taken "infinities are values" 8 --op dropout -a p=inf,-inf,0,1e308
taken "15 digits" 4 --op dropout -a n=999999999999999
taken "4096 values" 16384 --op dropout -a n=1:4096

# --- files of other programs
for o in json jsonl csv md go gbench; do
    cp tests/cli/awkward_strings.c "$tmp/odd.c"
    small "$prog" $quick --op mse --$o "$tmp/odd.c"
    check_rc "--$o over a source file" 2
    check_err "--$o over a source file" 'not replaced; name another file'
    check "--$o over a source file: it is as it was" cmp tests/cli/awkward_strings.c "$tmp/odd.c"
    rm -f "$tmp/again"
    for i in 1 2; do
        run "$prog" $quick --op mse --$o "$tmp/again"
        check_rc "--$o over its own, $i" 0
    done
done
refused "--json and an option" 'needs FILE after it' --json -q --op mse
refused "one file for two" 'are one file; give each its own' --json "$tmp/x.json" --jsonl "$tmp/x.json" --op mse
refused "no time at all" 'a time above 0' --timeout 0s --op mse
refused "--device -1, though nothing runs" 'a number, all or cpu' --device -1 --list
refused "--device 1.5" 'a number, all or cpu' --device 1.5 --list

# --- unusual environments
run sh -c 'ulimit -n 20 && exec "$@"' sh "$prog" $quick --op mse --procs 2 --json "$tmp/few.json" --jsonl "$tmp/few.jsonl"
check_rc "20 open files" 0
binary() { grep -o '"binary": "[0-9a-f]*"' "$1" | head -n 1; }
run "$prog" $quick --op mse --json "$tmp/plain.json"
loader=$(LC_ALL=C readelf -l "$prog" 2> /dev/null | sed -n 's/.*interpreter: \(.*\)]/\1/p')
if [ -x "$loader" ]; then
    run "$loader" "$prog" $quick --op mse --json "$tmp/loader.json"
    check_rc "started through its loader" 0
    check_same "started through its loader: the executable is not known" "$(grep -o '"binary": [^,]*' "$tmp/loader.json" | head -n 1)" '"binary": null'
else
    skip "no readelf, or no loader: starting a program through the loader is not tested"
fi
if unshare -m true 2> /dev/null && unshare -m sh -c 'mount -t tmpfs none /proc' 2> /dev/null; then
    run unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$prog" $quick --op mse --json "$tmp/no_proc.json"
    check_rc "without /proc" 1
    check_err "without /proc" 'cannot start a worker: .*; --no-isolate needs none'
    run unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$prog" $quick --op mse --no-isolate --json "$tmp/no_proc.json"
    check_out "without /proc, --no-isolate" '^mse +[0-9.]+ '
    check_same "without /proc: which program it is is not known" "$(grep -c '"binary": null' "$tmp/no_proc.json")" 1
else
    skip "no mount namespace: a run without /proc is not tested"
fi
if have valgrind && [ "$(valgrind -q true 2>&1)" = "" ]; then
    run valgrind -q --error-exitcode=9 "$prog" --no-progress --op mse,softmax --json "$tmp/valgrind.json"
    check_rc "under valgrind" 0
    check_not_err "under valgrind: no error of memory" '^==[0-9]+=='
    check_same "under valgrind: every case ran and was checked" "$(grep -o '"verified": true' "$tmp/valgrind.json" | wc -l | tr -d ' ')" 13
    check_same "under valgrind: none has a time" "$(grep -o '"time_ms": null' "$tmp/valgrind.json" | wc -l | tr -d ' ')" 13
    check_same "under valgrind: the records say so" "$(grep -o '"tool": "valgrind"' "$tmp/valgrind.json" | wc -l | tr -d ' ')" 13
    check_same "under valgrind: it is the same program" "$(binary "$tmp/valgrind.json")" "$(binary "$tmp/plain.json")"
else
    skip "no working valgrind: a run under valgrind is not tested"
fi
finish
