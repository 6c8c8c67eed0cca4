#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --shard K/N and its environment variables. Every case is in exactly one shard, together with the cases that
# it is compared with. Shards have about the same work, and merged shards give the complete plan.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
program many tests/cli/many_benchmarks.c
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP SLURM_ARRAY_TASK_COUNT
prog=$tmp/prog

# spread WHAT N COMMAND...: the N shards together are the complete list, no group is in two shards, and groups are
# evenly distributed
group() { sed 's,/impl=[^/]*,,' "$1" | sort -u; }
spread() {
    what=$1 n=$2 k=0 && shift 2
    "$@" --list > "$tmp/all"
    : > "$tmp/parts"
    : > "$tmp/groups"
    : > "$tmp/sizes"
    while [ $((k += 1)) -le $n ]; do
        "$@" --list --shard $k/$n > "$tmp/part" 2> /dev/null || fail "$what: --shard $k/$n: exit code $?"
        awk 'NR == FNR { at[$0] = FNR; next } at[$0] <= last { bad = 1 } { last = at[$0] } END { exit bad }' "$tmp/all" "$tmp/part" ||
            fail "$what: the cases of shard $k of $n are not in the plan's order"
        cat "$tmp/part" >> "$tmp/parts"
        group "$tmp/part" >> "$tmp/groups"
        wc -l < "$tmp/part" >> "$tmp/sizes"
    done
    check_same "$what in $n: each case once" "$(sort "$tmp/parts" | cksum)" "$(sort "$tmp/all" | cksum)"
    check_same "$what in $n: a group stays together" "$(sort "$tmp/groups" | uniq -d | wc -l | tr -d ' ')" 0
    # the sizes of shards differ at most by the number of cases in the largest group
    most=$(sed 's,/impl=[^/]*,,' "$tmp/all" | sort | uniq -c | sort -n | tail -n 1 | awk '{ print $1 }')
    apart=$(sort -n "$tmp/sizes" | awk 'NR == 1 { least = $1 } { most = $1 } END { print most - least }')
    if [ "$apart" -le "$most" ]; then pass; else fail "$what in $n: shards differ by $apart cases: $(tr '\n' ' ' < "$tmp/sizes")"; fi
}
for n in 1 2 3 4 5 7 13; do spread "prog" $n "$prog"; done
spread "more shards than groups" 20 "$prog" --op softmax
spread "some of it" 4 "$prog" --size small,batch -a batch_size=1:12
spread "shuffled" 3 "$prog" --shuffle --seed 7
export MANY=3000 PEERS=0
spread "many" 7 "$tmp/many"
unset MANY RIVALS
large=$("$prog" --op layernorm --impl naive --size small,large --list --shard 1/2 | grep -c tensor_dimension=256)
check_same "sizes are spread over two shards" "$large" 1

# --- records contain the shard and the position; merged records are in the order of the plan
some="--op softmax,layernorm --iters 3 --warmup 1 --no-progress"
"$prog" $some --list > "$tmp/list"
for k in 3 1 2; do
    run "$prog" $some --shard $k/3 --jsonl "$tmp/$k.jsonl"
    check_rc "shard $k" 0
    check_same "shard $k: the key" "$(grep -c "\"shard\": \"$k/3\", \"place\": [0-9]" "$tmp/$k.jsonl")" "$(wc -l < "$tmp/$k.jsonl" | tr -d ' ')"
done
run "$prog" $some --json "$tmp/whole.json"
check_same "without shards: null" "$(grep -c '"shard": null' "$tmp/whole.json")" "$(wc -l < "$tmp/list" | tr -d ' ')"
run "$prog" --load "$tmp/3.jsonl" "$tmp/1.jsonl" "$tmp/2.jsonl" --json "$tmp/merged.json"
check_rc "merged" 0
check_same "merged: the plan's order" "$(sed -n 's/^{"name": "\([^"]*\)".*/\1/p' "$tmp/merged.json")" "$(cat "$tmp/list")"
shape() { awk '{ print $1 }' "$1" | grep -E '^[a-z]' | grep -vE 'FEW|kbench'; }
shape "$out" > "$tmp/merged.txt"
run "$prog" --load "$tmp/whole.json"
shape "$out" > "$tmp/whole.txt"
check "merged: the table's rows are those of the whole" cmp "$tmp/merged.txt" "$tmp/whole.txt"
# records without shard and position (kb_write_json) keep their place in the file
run "$prog" --op silu --iters 3 --warmup 1 --no-progress --jsonl "$tmp/silu.jsonl"
sed 's/"place": [0-9]*/"place": null/' "$tmp/silu.jsonl" > "$tmp/plain.jsonl"
n=$(wc -l < "$tmp/3.jsonl" | tr -d ' ')
name='s/^{"name": "\([^"]*\)".*/\1/p'
run "$prog" --load "$tmp/3.jsonl" "$tmp/plain.jsonl" "$tmp/1.jsonl" "$tmp/2.jsonl" --json "$tmp/merged.json"
check_same "merged: what has no shard stays" "$(sed -n "$name" "$tmp/merged.json")" \
    "$(head -n "$n" "$tmp/list"; sed -n "$name" "$tmp/plain.jsonl"; tail -n "+$((n + 1))" "$tmp/list")"
# the second sweep's records follow those of the first
for k in 1 2 3; do
    "$prog" $some --seed 7 --shard $k/3 --jsonl "$tmp/again.jsonl" > "$tmp/out" 2>&1
done
run "$prog" --load "$tmp/again.jsonl" "$tmp/2.jsonl" "$tmp/3.jsonl" "$tmp/1.jsonl" --json "$tmp/merged.json"
check_same "two sweeps: one after the other" "$(sed -n 's/^{"name": "\([^"]*\)".*"seed": \([0-9]*\).*/\2 \1/p' "$tmp/merged.json")" \
    "$(sed 's/^/7 /' "$tmp/list"; sed 's/^/42 /' "$tmp/list")"
run "$prog" --load "$tmp/1.jsonl"
check_err "one is missing" 'no record of shards 2/3, 3/3'
"$prog" $some --shard 2/2 --jsonl "$tmp/other.jsonl" > "$tmp/out" 2>&1
run "$prog" --load "$tmp/1.jsonl" "$tmp/other.jsonl"
check_err "of 3 and of 2" 'runs of the shards used different numbers of shards'

# --- an empty shard is no failure, and writes the files that a script may wait for
run "$prog" --op silu --shard 2/2 --json "$tmp/none.json" --jsonl "$tmp/none.jsonl" --csv "$tmp/none.csv" --no-progress
check_rc "nothing to do" 0
check_err "nothing to do" 'shard 2/2 has nothing to do'
check_same "nothing to do: no record" "$(tr -d '\n' < "$tmp/none.json")" "[]"
check "nothing to do: files" test -f "$tmp/none.jsonl" -a -f "$tmp/none.csv"
run "$prog" --op silu --shard 2/2 --list
check_rc "nothing to list" 0

# --- invalid shards
for bad in 0/3 4/3 3 /3 1/ 1/0 a/b 1/3/5 -1/3 "1 /3" 1/99999999 ""; do
    run "$prog" --list "--shard=$bad"
    check_rc "--shard '$bad'" 2
    check_err "--shard '$bad'" 'takes K/N'
done
run "$prog" --list --shard 1/2 --shard 2/2
check_rc "twice" 2
for k in 1 2; do sed "s/\"gpu\": [^,]*,/\"gpu\": \"GPU $k\",/" "$tmp/$k.jsonl" > "$tmp/gpu$k.jsonl"; done
run "$prog" --load "$tmp/gpu1.jsonl" "$tmp/gpu2.jsonl"
check_rc "shards of two GPUs" 2
check_err "shards of two GPUs" 'shard 1/3 ran on GPU 1, and shard 2/3 on GPU 2\. .*--ignore-env'
run "$prog" --load "$tmp/gpu1.jsonl" "$tmp/gpu2.jsonl" --ignore-env
check_rc "shards of two GPUs, all the same" 0
run "$prog" --load "$tmp/gpu1.jsonl"
check_rc "shards of one GPU" 0
run "$prog" --load "$tmp/1.jsonl" --shard 1/2
check_rc "--load" 2
run "$prog" --dry-run --shard 2/3
check_out "--dry-run" '; shard 2/3$'

# --- tasks of a Slurm array: task ids with any first id and equal steps
run "$prog" --list --shard auto
check_rc "no array" 2
check_err "no array" 'job array.*--shard K/N'
array() { SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_MIN=$2 SLURM_ARRAY_TASK_MAX=$3 SLURM_ARRAY_TASK_STEP=$4 SLURM_ARRAY_TASK_COUNT=$5 "$prog" --list --shard auto; }
check_same "array 0-3" "$(array 0 0 3 1 4)" "$("$prog" --list --shard 1/4)"
check_same "array 1-4" "$(array 4 1 4 1 4)" "$("$prog" --list --shard 4/4)"
check_same "array 3-9:2" "$(array 7 3 9 2 4)" "$("$prog" --list --shard 3/4)"
check_same "array 3-10:2, which ends at 9" "$(array 7 3 9 2 4)" "$("$prog" --list --shard 3/4)"
check_same "a Slurm that tells no count" "$(unset SLURM_ARRAY_TASK_COUNT; SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=2 "$prog" --list --shard auto)" "$("$prog" --list --shard 3/4)"
run array 3 1 7 1 3
check_rc "array 1,3,7" 2
check_err "array 1,3,7" 'have equal steps'
finish
