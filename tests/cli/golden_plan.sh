#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Golden test (tests/golden.lib) of plans and of messages about command lines.
. tests/lib.sh
. tests/cli/kit.lib
. tests/golden.lib
unset SLURM_ARRAY_TASK_ID

if everything; then
    build "prog.c" $CC $looks_out -w -D__OPTIMIZE__=1 -DTEST_SANITIZE -I. -Itests tests/cli/sample_program.c tests/cli/kit.c -o "$tmp/prog" $libs
else
    program prog tests/cli/sample_program.c
fi
cd "$tmp" || exit 2
tmp=.
: > said
ASAN_OPTIONS=detect_leaks=0 && export ASAN_OPTIONS # a failed run has leaks
# says OPTIONS...: prints command line, exit code, stdout and stderr
says() {
    run ./prog "$@"
    { echo "\$ prog $*" && echo "[$rc]" && cat "$out" "$err" && echo; } >> said
}
# each: passes each line of stdin to `says`
idle=
each() {
    while read -r line; do
        case $line in *--list* | *--dry*) ;; *) line="$line $idle" ;; esac
        eval "says $line"
    done
}
each << 'end'
--help
--help all
--list
--list-ops
--list-sizes
--list --op layernorm --size large,batch
--list --op layernorm --impl fused --dtype bf16
--list -a rows=8 -a cols=16:64:*2
--list -a cols=32:96:32 --op softmax
--list --op dropout -a p=0.25,0.75 -a mode=eval
--list --op gelu
--list --filter 'softmax.*fwd' --exclude f16
--list layernorm.*large
--list --op silu,mse,cross_entropy --shuffle --seed 7
--list --op softmax --shuffle --seed 8
--list --shard 1/3
--list --shard 3/3
--list --shard 2/40
--list --op slow
--dry-run
--dry-run --fast
--dry-run --thorough --op softmax
--dry-run --iters 30 --warmup 5 --op softmax
--dry-run --procs 5 --op softmax --max-time 1s
--dry-run --shard 2/3 --op layernorm
--dry-run --budget 1m
--dry-run --budget 10ms --op softmax
--op lyernorm
--op layernorm --size lrge
--list --impl fsed
--list --dtype f23
--list -a rws=4
--list -a rows=4:2
--list -a rows=1:8:*1
--list -a rows=
--list -a rows=1:9:x
--list --size tiny
--list --filter '('
--list --shard 4/3
--list --shard 0/3
--list --shard x
--iters 0
--iters 3 --warmup -1
--iters
--warmup 3parsecs
--max-time 0s
--precision 0
--precision x
--procs 0
--rounds 0
--seed -1
--device gpu
--sort nothing
--columns time,,cv
--cpu x
--cpu 99999
--alpha 0.1
--threshold 5
--plot speed
--where a=b
--resume
--json --list
--json= --list
--no-such
--lst
-z
--list=3
--compare one
--race
--load
--load nothing.json
--trace
--counters=few,many
--shard auto
--fast --thorough
--hot --rotate
--quiet --verbose --list --op mse
--max-time 1s --min-time 2s --list --op mse
--part 1s --budget 1s
--launches 0
--timeout 0
--timeout x
end
while read -r mode; do
    for beside in --list --html=x --json=x --procs=2 --threshold=3 --noise=2 --ignore-env --fail-on=change --goal='speed>=1' \
        --budget=3s --sort=time --md=x --resume '--svg=x --plot=time' --save-baseline=x --history=x --env --no-isolate; do
        says $mode $beside
    done
done << 'end'
--race ./none ./nothing
--load nothing.json
--compare nothing.json none.json
end
idle=--list-ops # nothing of these is to run
each << 'end'
--all
--compare
--compare one --list
--compare none.json nothing.json --ignore-env
--race ./none
--svg x
--where op=x
--plot nothing --svg x
--svg x --plot time --where x
--resume --jsonl -
--procs 2 --no-isolate
--energy
--ncu
--ncu=full --device cpu
--nsys --list
--nsys=
--ncu='a b'
--save-baseline ''
--save-baseline .x
--save-baseline a/b
--threshold -1
--threshold 1e9
--memory-threshold x
--alpha 0
--alpha 1
--alpha 0.5 --list
--noise 101
--fail-on x
--goal speed
--goal 'speed>=x'
--color x
--budget 0s
--columns time,,cv --list
--columns flags
--columns tme
--columns quite_another_name
--columns counter:
--sort -,x
--benchmark_filter=softmax.*f16 --benchmark_list_tests
--benchmark_format=json
--benchmark_out_format=csv
--benchmark_out=x --gbench y
--benchmark_repetitions=0
--benchmark_display_aggregates_only=false
--filter 'softmax{3}|a*b+c?[[:alpha:]x]y' --list
--filter 'soft[m]ax.*cols=(32|64)$' --exclude 'naive|bwd' --list
--filter '((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))' --list
--filter '[[.a.]-c]' --list
--filter '[]x]*' --list-ops
--cpu 0-
--cpu 3-1
--cpu ,
--seed 99999999999999999999
--iters 1e3
--timeout 1d
--max-time 5
--max-time 1h --min-time 59m --list-ops
--max-time -1s
--warmup 1s --list-ops
--warmup 5.5
--precision 150
--procs 100000
--rounds 17 --list-ops
--launches 3 --list-ops
--axis
-a rows
-a =3
-a rows=1:5:+2,9 --op softmax --dtype f32 --list
-a rows=4:1:*2
-a rows=2:4:+0
-a rows=9223372036854775807,9223372036854775808 --list
-a p=0.1:0.5:+0.2 -a mode=train --list
-a mode=train,nothing --op dropout --list
--op , --list
--op softmax, --list
--op gelu,swish,loss --list
--impl fused,naive --dtype bf16 --list
--size small,large --list-sizes
--shard 1/3 --shuffle --seed 3 --list
--shard 2/2 --op layernorm --list
--shard 1/100000
--shard auto
--json x --jsonl x
--md x --csv x
--counters= --list
--version=3
--no-color --color always --list-ops
--quick --list-ops
end
while read -r first second beside; do
    export "$first" "$second"
    says $beside --list
    unset "${first%%=*}" "${second%%=*}"
done << 'end'
SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MAX=4 --shard auto --op layernorm
SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MAX=4 --shard auto
SLURM_ARRAY_TASK_ID=x SLURM_ARRAY_TASK_MAX=4 --shard auto
SLURM_ARRAY_TASK_ID=3 NOTHING=1 --shard auto
end
SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_MAX=8 SLURM_ARRAY_TASK_STEP=3
export SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP
for SLURM_ARRAY_TASK_ID in 2 4 5 8; do
    export SLURM_ARRAY_TASK_ID
    says --shard auto --op softmax --list
done
SLURM_ARRAY_TASK_COUNT=2 && export SLURM_ARRAY_TASK_COUNT
says --shard auto --op softmax --list

# widths of columns, features of the build and paths depend on the machine
sed 's/on [0-9]* processors*/on N processors/; s/may run on [0-9,-]* only/may run on N only/' said > plan
same plan.txt plan
finish
