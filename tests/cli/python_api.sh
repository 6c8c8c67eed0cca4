#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests kbench.py without a GPU: comparisons, checks, errors, the command line, and the wheel.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

python

mkdir -p "$tmp/scratch"
run "$PYTHON" tests/cli/python/api.py "$PWD/$tmp/scratch"
counted "api.py"

# --- the virtual GPU: a separate process measures empty kernels with CUPTI
include=$(cuda_headers)
if [ -z "$include" ]; then
    skip "no cuda_runtime_api.h (beside nvcc, in CUDA_HOME, in /usr/local/cuda)"
else
    check "the virtual GPU as a library" $LEAN_CC -O0 -shared -fPIC -DKBENCH_SHARED -DKBENCH_CUDA \
        -isystem "$include" -I. -Itests -Itests/host tests/cli/python/virtual.c -o "$tmp/libvirtual.so" $libs &&
        run env KBENCH_LIB="$PWD/$tmp/libvirtual.so" "$PYTHON" tests/cli/python/virtual.py && counted "virtual.py"
fi

# --- the CUDA runtime of pip's wheels: no libcudart.so, and no toolkit
for runtime in $(! everything || ls "$include"/../lib64/libcudart.so.* "$include"/../lib/libcudart.so.* 2> /dev/null); do
    case $runtime in *.so.*.*) continue ;; esac
    [ -n "$include" ] && [ -f "$runtime" ] || continue
    mkdir -p "$tmp/site/nvidia/cu/lib"
    ln -sfn "$include" "$tmp/site/nvidia/cu/include" && ln -sf "$runtime" "$tmp/site/nvidia/cu/lib"
    run env PATH=/usr/bin:/bin CUDA_HOME= CFLAGS=-O0 XDG_CACHE_HOME="$PWD/$tmp/cache" PYTHONPATH="$PWD/$tmp/site:$PYTHONPATH" "$PYTHON" -c 'import kbench
kbench._TOOLKIT = "/none"
print(kbench._library().cuda, kbench.time(int, host=True, samples=5))'
    check_out "pip's CUDA: built with it" '^True int/impl=int'
    check_err "pip's CUDA: built with it" "l:$(basename "$runtime")"
    break
done

run "$PYTHON" examples/python/example.py --iters 20 --json "$tmp/example.json"
check_rc "the example" 0
check_out "the example" '4 cases: 4 ok'

# --- examples that need a GPU: --dry-run without one
run "$PYTHON" examples/python/attention_matrix.py --dry-run --shape 2,3,128,64 --dtype bf16
check_rc "attention_matrix" 0
check_out "attention_matrix: its plan" '^2 x 3 x 128 x 64 bf16 full torch math efficient fa2 cudnn kb:naive .*kb:flashpp'
check_same "attention_matrix: one comparison" "$(wc -l < "$out" | tr -d ' ')" 1
run "$PYTHON" examples/python/attention_matrix.py --dry-run
check_same "attention_matrix: five shapes, two types" "$(wc -l < "$out" | tr -d ' ')" 10
run "$PYTHON" examples/python/attention_matrix.py --shape 2,3,128
check_rc "attention_matrix: three sizes" 2
check_err "attention_matrix: three sizes" 'batch,heads,length,dimension'
run "$PYTHON" examples/python/layers.py --dry-run --batch 2,4 --length 512 --dimension 64 --operation silu,layernorm --direction fwd,bwd
check_rc "layers" 0
check_out "layers: its plan" '^LayerNorm bwd bf16 4 x 512 x 64 torch compile$'
check_same "layers: two operations, directions and batches" "$(wc -l < "$out" | tr -d ' ')" 8
run "$PYTHON" examples/python/layers.py --dry-run --operation mse
check_same "layers: two batches, lengths and dimensions" "$(wc -l < "$out" | tr -d ' ')" 8
run "$PYTHON" examples/python/layers.py --dry-run --operation mse --batch 1:64:*4,96 --length 100:350:+100 --dimension 7
check_out "layers: ranges" '^MSE fwd bf16 64 x 300 x 7 torch'
check_same "layers: ranges: five batches, three lengths" "$(wc -l < "$out" | tr -d ' ')" 15
for wrong in 4: 1:8:*1 0 8:1:+1; do
    run "$PYTHON" examples/python/layers.py --dry-run "--batch=$wrong"
    check_rc "layers: --batch $wrong" 2
done
run "$PYTHON" examples/python/layers.py --operation swish
check_rc "layers: no such operation" 2
check_err "layers: no such operation" "one of layernorm, gelu_erf, silu"
for wrong in "--dtype f8" "--direction bwd,up"; do
    run "$PYTHON" examples/python/layers.py --dry-run $wrong
    check_rc "layers: $wrong" 2
    check_err "layers: $wrong" "unknown .*'(f8|up)'; one of"
done
for example in $(! everything || echo attention_matrix) layers; do # attention_matrix builds the kernels first
    run env KBENCH_NO_CUDA=1 "$PYTHON" "examples/python/$example.py" --json "$tmp/none.json"
    check_rc "$example without a GPU" 2
    check_err "$example without a GPU" 'GPU'
done

# --- a script identifies its records: an edited script has none
cp examples/python/example.py "$tmp/edited.py"
run "$PYTHON" "$tmp/edited.py" --iters 5 --jsonl "$tmp/edited.jsonl" -q
check_rc "a script" 0
run "$PYTHON" "$tmp/edited.py" --iters 5 --jsonl "$tmp/edited.jsonl" --resume --list
check_same "the same script: nothing is left" "$(wc -l < "$out" | tr -d ' ')" 0
echo "# edited" >> "$tmp/edited.py"
run "$PYTHON" "$tmp/edited.py" --iters 5 --jsonl "$tmp/edited.jsonl" --resume --list
check_same "an edited script: all is left" "$(wc -l < "$out" | tr -d ' ')" 4

# --- the module's own command line
run "$PYTHON" -m kbench --help
check_rc "--help" 0
check_out "--help" '^python -m kbench judge FILE'
run "$PYTHON" -m kbench
check_rc "no command" 2
check_err "no command" '^python -m kbench judge FILE'
run "$PYTHON" -m kbench juge x.py
check_rc "no such command" 2
check_err "no such command" "there is no command 'juge'"
run "$PYTHON" -m kbench --list
check_rc "no benchmark" 2
check_err "no benchmark" 'no benchmark is registered: use @kbench.bench'

# --- the judge's command line: one JSON verdict on stdout, exit codes 0, 1, 2
task=tests/cli/python/task.py
run "$PYTHON" -m kbench judge tests/cli/python/tricks.py:leaves --task $task
check_rc "judge: a trick" 1
check_out "judge: a trick" '"word": "EXITED"'
check_not_out "judge: what the candidate prints" 'speedup": 1000'
cat tests/cli/python/task.py - > "$tmp/all.py" << 'END'
def candidate(x, a):
    return reference(x, a)
END
run "$PYTHON" -m kbench judge "$tmp/all.py" --max-time 0.1 --seed 7
check_rc "judge: all in one file" 0
check_out "judge: all in one file" '"word": "TASK_SHARED"'
check "judge: JSON" "$PYTHON" -c 'import json, sys
v = json.load(open(sys.argv[1]))
assert v["verdict"] in ("FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED") and v["seed"] == 7 and v["time_ms"] > 0, v
assert v["probes"]["timed outputs"] == "ran" and v["schema"] == 1 and v["candidate"]["name"] == "candidate", v' "$out"
check_err "judge: all in one file" 'is candidate and task, so it can fake its verdict'
if everything; then
    run "$PYTHON" -m kbench judge "$tmp/all.py" --task "$tmp/../${tmp##*/}/all.py" --max-time 0.1
    check_rc "judge: the same file as its task" 0
    check_err "judge: the same file as its task" 'is candidate and task, so it can fake its verdict'
fi
echo 'import os; print("{}", flush=True); os._exit(0)' >> "$tmp/all.py"
run "$PYTHON" -m kbench judge "$tmp/all.py" --max-time 0.1
check_rc "judge: a file that leaves when it is imported" 1
check_err "judge: a file that leaves when it is imported" 'ended the process before there was a verdict'
run "$PYTHON" -m kbench judge tests/cli/python/none.py --task $task
check_rc "judge: no file" 2
check_err "judge: no file" 'there is no file'
run "$PYTHON" -m kbench judge tests/cli/python/honest.py
check_rc "judge: no task" 2
check_err "judge: no task" '--task'
for reference in '1 / 0:the reference raised ZeroDivisionError' 'None:the check passes for a function that returns nothing and does not change its inputs'; do
    printf 'def reference(x):\n    return %s\ninputs = ([1.0, 2.0],)\n' "${reference%%:*}" > "$tmp/task.py"
    run "$PYTHON" -m kbench judge $task:reference --task "$tmp/task.py"
    check_rc "judge: ${reference#*:}" 1
    check_out "judge: ${reference#*:}" "\"evidence\": \"${reference#*:}"
    check_out "judge: ${reference#*:}" '"verdict": "INVALID_TASK"'
done
for wrong in "--max-time nan" "--max-time 0" "--timeout -1" "--rtol nan" "--rtol -1"; do
    run "$PYTHON" -m kbench judge $task:reference --task $task $wrong
    check_rc "judge: $wrong" 2
    check_err "judge: $wrong" "judge: $(echo "${wrong% *}" | tr -d - | sed 's/maxtime/max_time/')=.*must be a number"
done

# --- the wheel: header and module, from a copy of the checkout, without a network
mkdir -p "$tmp/copy/examples"
cp kbench.h kbench_kernels.cuh "$tmp/copy" && cp -r examples/python examples/addons "$tmp/copy/examples"
mkdir "$tmp/sdist" "$tmp/wheels" "$tmp/again"
made='import os, sys
sys.path.insert(0, os.getcwd())
import wheel_of_kbench
print(getattr(wheel_of_kbench, sys.argv[1])(sys.argv[2]))'
run sh -c 'cd "$1" && "$2" -c "$3" build_sdist "$4" && "$2" -c "$3" build_wheel "$5"' - \
    "$tmp/copy/examples/python" "$PYTHON" "$made" "$PWD/$tmp/sdist" "$PWD/$tmp/wheels"
check_out "the sdist" '^kbench-0.1.0.tar.gz$'
check "the sdist: unpacked elsewhere" tar -xzf "$tmp/sdist/kbench-0.1.0.tar.gz" -C "$tmp/sdist"
run sh -c 'cd "$1" && "$2" -c "$3" build_wheel "$4"' - "$tmp/sdist/kbench-0.1.0" "$PYTHON" "$made" "$PWD/$tmp/again"
check_out "the sdist: a wheel of it" '^kbench-0.1.0-py3-none-any.whl$'
wheel=kbench-0.1.0-py3-none-any.whl
check "the sdist: the same wheel" cmp "$tmp/wheels/$wheel" "$tmp/again/$wheel"
check_same "the sdist: what it is" "$(sed -n 's/^Name: //p' "$tmp/sdist/kbench-0.1.0/PKG-INFO")" kbench
if ! everything; then
    :
elif "$PYTHON" -m venv "$tmp/venv" > "$tmp/venv.log" 2>&1; then
    unset PYTHONPATH
    check "pip install" "$tmp/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-index "./$tmp/copy/examples/python"
    rm -rf "$tmp/copy"
    run "$tmp/venv/bin/python" -c 'import kbench; print(kbench._find_header()); print(kbench.time(int, host=True, samples=5))'
    check_rc "installed" 0
    check_out "installed: the header came along" 'site-packages/kbench.h'
    check_out "installed: a time" 'int/impl=int: .* FEW'
    run "$tmp/venv/bin/python" -c 'import kbench; print(kbench.kernels["softmax", "fwd"].oracle([[0.0, 0.0]]))'
    check_out "installed: the kernels came along" '^\[\[0.5, 0.5\]\]$'
else
    skip "no venv: pip install is not tested"
fi
finish
