#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests make smoke-gpu without a GPU: scripts replace nvidia-smi, nvcc, the programs that nvcc builds, and Python.
# A part that fails, does not build or hangs does not affect the other parts.
. tests/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS ARCH ARCHFLAGS CI CUDA_HOME PYTHON

make=$(command -v gmake || command -v make)
play=$PWD/$tmp/play
mkdir -p "$play"
cat > "$play/nvidia-smi" << 'EOF'
#!/bin/sh
case $* in -L) echo "GPU 0: Played" ;; *name*) echo "Played GPU" ;; *driver*) echo 999.1 ;; *compute_cap*) echo 9.0 ;; esac
EOF
# The fake nvcc "compiles" FILE.cu: it writes a script that runs $play/FILE. It fails if FILE is $PLAY_BROKEN.
cat > "$play/nvcc" << 'EOF'
#!/bin/sh
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then made=$2; fi
    shift
done
[ -n "$made" ] || exit 0
name=$(basename "$made")
if [ "$name" = "$PLAY_BROKEN" ]; then echo "error: played" && exit 2; fi
printf '#!/bin/sh\nexec sh "%s/%s" "$@"\n' "$(dirname "$0")" "${name%_[0-9]}" > "$made" && chmod +x "$made"
EOF
cat > "$play/selftest" << 'EOF'
[ -z "$PLAY_HANGS" ] || sleep 100
echo "kbench 0 self-test, short version"
echo "pass  planted mistakes               19 of 19 were flagged and reported without a time"
echo "skip  L2 evicted (counters)          no permission to read the counters"
echo "passed on the GPU, in 1 s"
EOF
cat > "$play/cases" << 'EOF'
while [ $# -gt 1 ]; do shift; done
echo "[{\"status\": \"ok\", \"verified\": true, \"time_ms\": ${PLAY_MS:-0.02}}]" > "$1"
EOF
echo 'echo "pass  add fwd unroll bf16            equals its reference in two launches"' > "$play/kernels"
echo 'echo "pass  Python, mode cold              20 us"' > "$play/face"
printf '#!/bin/sh\ncase $1 in *python_times.py) exec sh "%s/face" ;; esac\n' "$play" > "$play/python3"
echo 'exit 7' > "$play/misuse" # ends early
chmod +x "$play/nvidia-smi" "$play/nvcc" "$play/python3"
# smoke WHAT SETTING...
smoke() {
    what=$1 && shift
    run env PATH="$play:$PATH" BUILD="$tmp/build" NVCC="$play/nvcc" "$@" sh tests/smoke_gpu.sh
    check_rc "$what" 1 # the mistakes' program is none
    check_out "$what: mistakes" '^FAIL +mistakes in a timed block'
}
closing='\(Played GPU, driver 999\.1, (no commit known|commit [0-9a-f]+).*, 20[0-9-]+\)$'
kernel_parts=$(grep -cE '^#(if|elif|else)' tests/smoke/kernels.cu)
good=$((1 + 8 + kernel_parts + 1)) # self-test, timers, kernels, Python
smoke "all parts"
check_same "all parts: the last line" "$(tail -n 1 "$out" | grep -cE "^$good passed, 1 failed, 1 skipped $closing")" 1
check_out "a bar of the self-test" '^pass +planted mistakes +19 of 19'
check_same "a line for each part" "$(grep -cE '^(pass|FAIL|skip) ' "$out")" $((good + 2))
smoke "a build that fails" PLAY_BROKEN=kernels_2
check_out "a build that fails: its name and the error" '^FAIL +build of kernels_2 .*error: played'
check_same "a build that fails costs itself alone" "$(tail -n 1 "$out" | grep -cE "^$((good - 1)) passed, 2 failed, 1 skipped ")" 1
smoke "a part that hangs" PLAY_HANGS=1 SMOKE_LIMIT=2
check_out "a part that hangs" '^FAIL +self-test +not done after 2 s'
check_same "a part that hangs costs itself alone" "$(tail -n 1 "$out" | grep -cE "^$((good - 1)) passed, 2 failed, 0 skipped ")" 1
smoke "a case without a time" PLAY_MS=null
check_same "a case without a time: each timer that compares fails" "$(grep -c '^FAIL  *timer ' "$out")" 8
run env PATH="$play:$PATH" "$make" -n smoke-gpu NVCC="$play/nvcc"
check_out "make smoke-gpu builds for the GPU here" "ARCHFLAGS='.*smoke_gpu.sh"

printf '#!/bin/sh\nexit 9\n' > "$play/nvidia-smi"
for how in "no GPU" "no nvcc"; do
    run env PATH="$play:$PATH" "$make" smoke-gpu NVCC="$([ "$how" = "no nvcc" ] || echo "$play/nvcc")"
    if [ $rc -ne 0 ]; then pass; else fail "$how: exit code 0"; fi
    check_err "$how" "make smoke-gpu: $how"
    printf '#!/bin/sh\necho "GPU 0: Played"\n' > "$play/nvidia-smi"
done
finish
