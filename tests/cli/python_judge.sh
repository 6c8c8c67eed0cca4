#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests kbench.judge: functions with tricks are detected, and correct functions pass. "make test" runs one trick of
# each kind, "make test-all" (TEST_ALL=1) runs all tricks.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

python
export KBENCH_NO_CUDA=1 # nothing here runs on a GPU

task() { printf '%s\n' "def reference(x): return x" "$1" > "$tmp/task.py" && run "$PYTHON" -m kbench judge "$tmp/task.py:reference"; }
task "def inputs(size, seed): return (1,)"
check_rc "inputs of another signature" 2
check_err "inputs of another signature" 'inputs must be a tuple of examples, or a function of a random.Random.*TypeError'
task "inputs = 7"
check_rc "inputs that are no tuple" 2
task "inputs = (1,"
check_rc "a task that is no Python" 2
check_err "a task that is no Python" 'cannot be imported: SyntaxError'

# two processes, because most of the time is waiting
run "$PYTHON" -c 'import kbench; kbench.time(int, host=True, samples=3)'
check_rc "the library" 0
"$PYTHON" tests/cli/python/judge.py tricks > "$tmp/tricks.txt" 2> "$tmp/tricks.err" < /dev/null &
"$PYTHON" tests/cli/python/judge.py $(! everything || echo honest) others stage lists arrays tensors > "$tmp/honest.txt" 2> "$tmp/honest.err" < /dev/null
wait
# tensors without a GPU, if PyTorch is installed
some=returns_nothing,inputs_that_stay,whatever_memory_holds,half_of_the_rows,by_version,by_samples,usual_sizes_alone
some=$some,one_buffer,method_of_its_own,contests_that_lie,reads_a_variable,its_own_kernel_never_runs,bf16,other_strides
some=$some,no_last_tile,no_strides,hides_nan,beside_an_input,addmm,in_place,take,with_names,centred_by_hand
some=$some,the_input_beside_another,one_output_is_rounded
some=$some,layernorm_bwd,cross_entropy_fwd,dropout_fwd,fill_run,chase_run,embedding_bwd,matmul_e4m3_fwd
if "$PYTHON" -c 'import torch' 2> /dev/null; then
    mkdir -p "$tmp/scratch"
    "$PYTHON" tests/gpu/judge.py "$tmp/scratch" --cpu --jobs 2 --only $some > "$tmp/tensors.txt" 2> "$tmp/tensors.err"
    "$PYTHON" tests/gpu/judge.py "$tmp/scratch" --cpu --jobs 2 --only addmm,raises > "$tmp/cut.txt" 2> "$tmp/cut.err" &
    cut=$! tries=0
    until grep -q '^raises ' "$tmp/cut.txt" || [ $tries -ge 1500 ]; do sleep 0.2 && tries=$((tries + 1)); done
    kill "$cut" && wait "$cut"
    check "a judge that is cut off" grep -q '^FAIL: not judged within .*: addmm$' "$tmp/cut.txt"
    check_same "a judge that is cut off: last line" "$(tail -n 1 "$tmp/cut.txt")" "1 passed, 1 failed"
    run "$PYTHON" tests/gpu/judge.py "$tmp/scratch" --cpu --jobs 1 --shard 2/2 --only raises,leaves,zeros --within 0
    check_out "no time" '^FAIL: not judged within [0-9]+ s: (raises|leaves|zeros)$'
    run "$PYTHON" tests/gpu/judge.py "$tmp/scratch" --cpu --jobs 1 --only raises,rises
    check_rc "a name that is none" 2
    check_err "a name that is none" 'there is no rises here'
else
    skip "no PyTorch ($PYTHON): tensors"
    echo "0 passed, 0 failed" > "$tmp/tensors.txt"
fi
for part in tricks honest tensors; do
    sed -n "s/^FAIL: /FAIL: $me: /p" "$tmp/$part.txt"
    if grep -q '^SKIP: ' "$tmp/$part.txt"; then skip "$(sed -n 's/^SKIP: //p' "$tmp/$part.txt")"; fi
    last=$(tail -n 1 "$tmp/$part.txt")
    case $last in
    *" passed, "*" failed")
        passed=$((passed + ${last%% passed*})) last=${last#*passed, }
        failed=$((failed + ${last%% failed*}))
        ;;
    *) fail "$part ended early: $(tail -n 3 "$tmp/$part.err" | tr '\n' '~')" ;;
    esac
done
finish
