#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# What a program would run, and what it says of command lines, word by word as it was: see tests/golden.lib.
. tests/lib.sh
. tests/golden.lib
unset SLURM_ARRAY_TASK_ID GTEST_SHARD_INDEX GTEST_TOTAL_SHARDS

build "prog.c" $CC $looks_out -w -D__OPTIMIZE__=1 -I. tests/cli/prog.c -o "$tmp/prog" $libs
cd "$tmp" || exit 2
tmp=.
: > said
# says OPTIONS...: the command line, its exit code, what is on stdout and stderr
says() {
    run ./prog "$@"
    { echo "\$ prog $*" && echo "[$rc]" && cat "$out" "$err" && echo; } >> said
}
# each LINE: a command line a line on stdin
each() {
    while read -r line; do
        eval "says $line"
    done
}
each << 'end'
--help
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
--dry-run --op layernorm --part 10s
--dry-run --op layernorm,softmax --part 3s --max-time 100ms --warmup 50ms
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
--part 1s --shard 1/2
--launches 0
--timeout 0
--timeout x
end
# the widths of texts, what this build can do, and where it stands are this machine's
sed 's/on [0-9]* processors*/on N processors/; s/it may on [0-9,-]*/it may on N/' said > plan
same plan.txt plan
finish
