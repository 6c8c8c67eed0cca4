#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Golden test (tests/golden.lib) of the records of runs with a scripted clock or on the virtual GPU. Values that
# depend on this machine are left out.
# takes long
. tests/lib.sh
. tests/cli/kit.lib
. tests/golden.lib

program script tests/cli/table.c
own='wall_ms|date|command|run_id|preemptions|cpu_waited|cpu_stolen|host|cpu|cpus|cpu_clock_mhz|cpu_governor|cpu_boost'
own="$own|kernel_version|environment|binary|git_commit|build|samples_ms|kbench_version|schema"
# records FILE: prints a field per line, numbers with four digits
records() {
    sed -E "s/\"($own)\": (\"[^\"]*\"|\[[^]]*\]|\{[^}]*\}|[^\",{}]*), //g; s/\"[a-z_0-9]*\": null(, )?//g" "$1" |
        awk '{
            while (match($0, /[0-9]+\.[0-9]+(e[-+]?[0-9]+)?/)) {
                printf "%s%.4g", substr($0, 1, RSTART - 1), substr($0, RSTART, RLENGTH)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print
        }' | sed 's/, "/,\
  "/g'
}
# recorded NAME CODE COMMAND...: compares the records; up to three attempts, because a busy machine can delay the
# gate or the watchdog
recorded() {
    name=$1 code=$2 && shift 2
    for attempt in 1 2 3; do
        run "$@" -q --no-progress --json "$tmp/$name.json"
        records "$tmp/$name.json" > "$tmp/$name.txt"
        if [ "$rc" -eq "$code" ] && cmp -s "$tmp/$name.txt" "$golden/runs/$name.txt"; then break; fi
    done
    check_rc "$*" "$code"
    same "runs/$name.txt" "$tmp/$name.txt"
}

recorded script 1 "$tmp/script" --device script --iters 40 --warmup 3
recorded script_procs 0 "$tmp/script" --device script --op sure,unsure,bare --iters 30 --warmup 3 --procs 3

include=$(cuda_headers)
if [ -z "$include" ]; then
    skip "no cuda_runtime_api.h (beside nvcc, in CUDA_HOME, in /usr/local/cuda): nothing runs on the virtual GPU"
    finish
fi
virtual_gpu cuda
virtual_gpu profiling
gpu="$tmp/cuda --iters 30 --warmup 3"
recorded gpu 1 $gpu --op several,nothing,copies,greedy,allocates,sets,by_default,isolated,unjoined,invalidates,errs,hosts,resets,skips,strays_not,shrinks,wears_off,every_second,submits_less,product,stored,computes,leaks,caches
recorded gpu_rivals 0 $gpu --op rivals,shrinking_rival,turns
recorded gpu_hot 0 $gpu --op known,several,rivals --hot
recorded gpu_rotate 1 $gpu --op turns,rivals --rotate
recorded gpu_cupti 0 env VIRTUAL_CUPTI=1 $gpu --op several,known,rivals --timer cupti
recorded gpu_both 0 env VIRTUAL_CUPTI=1 $gpu --op several,known,rivals --timer both
recorded gpu_procs 0 $gpu --op several,rivals --procs 3
recorded gpu_launches 0 $gpu --op shaped,rivals --launches 4
recorded gpu_throttled 0 env VIRTUAL_THROTTLE=0x48 $gpu --op several
recorded gpu_counters 0 env VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:500000000,lts__t_bytes.sum:2000000000,dram__throughput.avg.pct_of_peak_sustained_elapsed:91 \
    $tmp/profiling --iters 30 --warmup 3 --op one,declares,mixed --counters

for attempt in 1 2 3; do
    run env VIRTUAL_CUPTI=1 $tmp/profiling --iters 20 --warmup 3 --op one,mixed,rivals,many --no-progress --profile -v --trace $tmp/trace
    grep '^    ' "$out" > "$tmp/profile.txt"
    sed -E 's/"ts":[0-9.]*,//' "$tmp/trace" > "$tmp/trace.txt"
    if [ "$rc" -eq 1 ] && cmp -s "$tmp/profile.txt" "$golden/runs/profile.txt"; then break; fi
done
check_rc "a profile" 1 # one of the rivals is wrong
same runs/profile.txt "$tmp/profile.txt"
same runs/trace.txt "$tmp/trace.txt"

: > "$tmp/none"
# asks NAME COMMAND...: compares how often a process calls each function of CUDA and CUPTI
asks() {
    name=calls_$1 && shift
    for attempt in 1 2 3 4; do
        cp "$tmp/none" "$tmp/calls"
        run env VIRTUAL_CUPTI=1 VIRTUAL_CALLS="$tmp/calls" "$@" --iters 30 --warmup 3 --no-isolate -q --no-progress
        { echo "exit code $rc" && grep -v EntryPoint "$tmp/calls" | sort; } > "$tmp/$name.txt"
        if cmp -s "$tmp/$name.txt" "$golden/runs/$name.txt"; then break; fi
    done
    same "runs/$name.txt" "$tmp/$name.txt"
}
works=several,rivals,turns,leaks,caches,computes,resets,stored
asks cold "$tmp/cuda" --op $works
asks fails "$tmp/cuda" --op nothing,copies,greedy,allocates,by_default,unjoined,invalidates,errs,hosts,skips,shaped
asks hot "$tmp/cuda" --op $works --hot
asks rotate "$tmp/cuda" --op $works --rotate
asks cupti "$tmp/cuda" --op $works --timer cupti
asks launches "$tmp/cuda" --op shaped,rivals --launches 4
asks unverified "$tmp/cuda" --op $works --no-verify --no-audit
asks fresh "$tmp/cuda" --op $works --fresh
asks profile "$tmp/profiling" --op one,mixed,rivals,many --profile
asks counters env VIRTUAL_METRICS=dram__bytes.sum:500000000 "$tmp/profiling" --op one,mixed --counters
finish
