#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the Makefile on simulated machines: scripts replace nvcc and nvidia-smi.
. tests/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS ARCH ARCHFLAGS NVCC CC CXX CI CUDA_HOME

make=$(command -v gmake || command -v make)
play=$tmp/play
mkdir -p "$play/bin" "$play/smi" "$play/include" "$play/none"
cat > "$play/bin/nvcc" << 'EOF'
#!/bin/sh
case $1 in
--list-gpu-code) printf 'sm_75\nsm_80\nsm_86\nsm_90\nsm_100\nsm_120\n' ;;
--list-gpu-arch) printf 'compute_75\ncompute_80\ncompute_86\ncompute_90\ncompute_100\ncompute_120\n' ;;
esac
EOF
cat > "$play/smi/nvidia-smi" << 'EOF'
#!/bin/sh
[ -n "$PLAY_CAPS" ] || { echo "NVIDIA-SMI has failed because it could not communicate with the driver 5.3"; exit 9; }
case $1 in -L) echo "GPU 0: Played" ;; *) for c in $PLAY_CAPS; do echo "$c"; done ;; esac
EOF
chmod +x "$play/bin/nvcc" "$play/smi/nvidia-smi"
: > "$play/include/cublas_v2.h"
path=$play/bin:$play/smi:$PATH
# arch WHAT WANTED COMMAND...: COMMAND must pass the -gencode options WANTED
arch() {
    what=$1 want=$2 && shift 2
    run env "$@"
    check_rc "$what" 0
    check_same "$what" "$(grep -o "ARCHFLAGS='[^']*'" "$out" | head -n 1 | sed "s/-gencode=arch=//g; s/ *-DKBK_CUBLAS//; s/ARCHFLAGS=//; s/'//g")" "$want"
}
target="$make -n test"

run env PATH="$path" $make
check_rc "make alone" 0
for t in run kernels test test-gpu examples sanitize format clean; do
    check_out "make alone explains $t" "^make $t +[a-z]"
done
check_same "make alone: stderr" "$(cat "$err")" ""
arch "an H200" "compute_90a,code=sm_90a" PATH="$path" PLAY_CAPS=9.0 $target
check_out "cuBLAS where its header is" "DKBK_CUBLAS"
arch "a T4" "compute_75,code=sm_75" PATH="$path" PLAY_CAPS=7.5 $target
arch "an A10" "compute_86,code=sm_86" PATH="$path" PLAY_CAPS=8.6 $target
arch "a B200" "compute_100a,code=sm_100a" PATH="$path" PLAY_CAPS=10.0 $target
arch "two kinds" "compute_80,code=sm_80 compute_90a,code=sm_90a" PATH="$path" PLAY_CAPS="9.0 8.0 9.0" $target
arch "a GPU newer than nvcc" "compute_120,code=compute_120" PATH="$path" PLAY_CAPS=13.0 $target
arch "no GPU" "compute_80,code=sm_80 compute_90,code=sm_90 compute_90,code=compute_90" PATH="$path" PLAY_CAPS= $target
arch "CI does not ask" "compute_80,code=sm_80 compute_90,code=sm_90 compute_90,code=compute_90" PATH="$path" PLAY_CAPS=9.0 CI=true $target
arch "ARCH=sm_86" "compute_86,code=sm_86" PATH="$path" PLAY_CAPS=9.0 $target ARCH=sm_86
arch "ARCH with two words" "compute_90a,code=sm_90a compute_80,code=compute_80" PATH="$path" $target ARCH="sm_90a compute_80"
arch "ARCH as an option" "-arch=native" PATH="$path" $target ARCH=-arch=native

bare=$play/smi:/usr/bin:/bin
for how in "PATH=$play/bin:$bare" "PATH=$bare CUDA_HOME=$play" "PATH=$bare NVCC=$play/bin/nvcc"; do
    arch "$how" "compute_90a,code=sm_90a" $how PLAY_CAPS=9.0 $target
    check_out "$how" "NVCC='[^ ]*$(basename "$play")/bin/nvcc'"
done
if [ -f examples/suite.cu ]; then
    run env PATH="$path" PLAY_CAPS=9.0 $make -n run
    check_out "an nvcc and a GPU: the suite is CUDA" "nvcc .*sm_90a.* examples/suite.cu"
    run env PATH="$path" PLAY_CAPS=9.0 $make -n run NVCC=
    check_rc "NVCC=" 0
    check_out "NVCC= compiles C" "^cc .*-x c .*examples/suite.cu"
    check_not_out "NVCC= means none" nvcc
    run env PATH="$path" PLAY_CAPS= $make -n run
    check_out "an nvcc without a GPU: the suite is C" "-x c .*examples/suite.cu"
    run env PATH="$path" PLAY_CAPS= $make -n run ARCH=sm_90a
    check_out "an nvcc without a GPU, ARCH given: the suite is CUDA" "nvcc .*sm_90a.* examples/suite.cu"
    # types WHAT WANTED SETTING...: make run must build the suite for the element types WANTED; "": all types
    types() {
        what=$1 want=$2 && shift 2
        run env PATH="$path" $make -n run "$@"
        check_rc "$what" 0
        check_same "$what: built" "$(grep -v '^echo' "$out" | grep ' examples/suite.cu' | grep -o 'KBK_TYPES=[^ ]*' | awk '!seen[$0]++' | tr '\n' ' ')" "$want"
    }
    types "kernels" 'KBK_TYPES=bf16\\,f32 ' ARCH=sm_90a
    types "oracles" "" NVCC=
    types "kernels, ARGS of bf16" 'KBK_TYPES=bf16\\,f32 ' ARCH=sm_90a ARGS="--op matmul --dtype bf16"
    types "kernels, ARGS of f16" "" ARCH=sm_90a ARGS="--op matmul --dtype bf16,f16"
    types "kernels, TYPES" "" ARCH=sm_90a TYPES="f32 f16 bf16"
    types "kernels, TYPES=bf16" "KBK_TYPES=bf16 " ARCH=sm_90a TYPES=bf16
    types "oracles, TYPES=f16" "KBK_TYPES=f16 " NVCC= TYPES=f16
    types "oracles, TYPES of two" "KBK_TYPES=bf16,f32 " NVCC= TYPES="f32 bf16"
    for wrong in fp8 "" "f16 x"; do
        run env PATH="$path" $make -n run NVCC= TYPES="$wrong"
        if [ $rc -ne 0 ]; then pass; else fail "TYPES='$wrong' is accepted"; fi
        check_err "TYPES='$wrong'" "one or several of f32, f16 and bf16"
    done
    # records WHERE ARGS...: with each of ARGS, make run must write to WHERE, and name the file if it is not
    # results.json
    records() {
        where=$1 && shift
        for args; do
            run env PATH="$path" $make -n run NVCC= ARGS="$args"
            check_rc "ARGS=$args" 0
            check_same "ARGS=$args" "$(grep '^build/suite' "$out" | tr -s ' ' | sed 's/ $//')" "build/suite${where:+ --json $where --html ${where%results.json}report.html}${args:+ $args}"
            check_same "ARGS=$args: the line that says where" "$(grep -c 'records: build/results.json ' "$out")" \
                "$([ "$where" = build/results.json ] && echo 1 || echo 0)"
        done
    }
    records results.json "" --all --thorough "--seed 7 -v" --seed=7 "--jsonl all.jsonl --no-color" "--timeout 90s --shuffle --quiet"
    records build/results.json "--fast --op layernorm" --quick layernorm "--impl naive" --impl=naive "--dtype f16" "--size small" \
        "--filter add" "--exclude matmul" "-a rows=512" "--axis rows=512" "--axis=rows=512" "--device cpu" --device=all --hot \
        --rotate "--iters 30" "--max-time 100ms" --no-verify "--timer cupti" "--seed 7 add" "--jsonl all.jsonl --fast"
    records "" --list --list-ops "--list-sizes --op add" --dry-run "--explain UV" --env --help -h --version \
        "--json mine.json" "--json=mine.json --fast" "--fast --op add --json -"
    for o in $(sed -n 's/^\(WHOLE\|LOOK\) := //p' Makefile); do
        case $o in
        --*) if grep -qE "^    (x|KBI_[A-Z]+)\((x, )?[a-z_]+, \"$(echo "$o" | sed 's/^--//; s/=%//')\"," kbench.h examples/addons/*; then pass; else fail "the Makefile knows $o, which is no option"; fi ;;
        esac
    done
    # a fake compiler, whose suite ends with the exit code PLAY_EXIT
    mkdir -p "$tmp/dir/examples" && cp Makefile "$tmp/dir" && : > "$tmp/dir/examples/suite.cu"
    printf '#!/bin/sh\nprintf "#!/bin/sh\\nexit %%s\\n" "$PLAY_EXIT" > build/suite && chmod +x build/suite\n' > "$play/bin/playcc"
    chmod +x "$play/bin/playcc"
    playcc=$(cd "$play/bin" && pwd)/playcc
    run env PATH="$path" PLAY_EXIT=0 $make -C "$tmp/dir" run NVCC= CC="$playcc" ARGS="--op add --filter 'a|b'"
    check_rc "make run with a part" 0
    check_out "make run with a part says where" "^records: build/results.json"
    check_out "make run with a part" "^build/suite --json build/results.json --html build/report.html --op add --filter 'a.b'\$"
    run env PATH="$path" PLAY_EXIT=1 $make -C "$tmp/dir" -B run NVCC= CC="$playcc"
    if [ $rc -ne 0 ]; then pass; else fail "make run has exit code 0 although the suite failed"; fi
    check_not_err "make run: nothing was serialised" WARNING
    # ptxas reports serialised wgmma only as a note, so make must repeat the note as a warning
    note="ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to it"
    printf '#!/bin/sh\necho "%s" >&2\necho "ptxas info    : a later message" >&2\n' "$note" > "$play/bin/playnote"
    sed 1d "$play/bin/playcc" >> "$play/bin/playnote" && chmod +x "$play/bin/playnote"
    run env PATH="$path" PLAY_EXIT=0 $make -C "$tmp/dir" -B run NVCC= CC="$(dirname "$playcc")/playnote"
    check_rc "make run with a serialised product" 0
    check_err "make run shows the note" '^ptxas info    : \(C7510\)'
    check_err "make run shows the message after the note" 'a later message'
    check_err "make run with a serialised product" '^WARNING: ptxas serialised wgmma products'
    # if the compiler fails, make run must not run an old suite
    printf '#!/bin/sh\necho "error: no" >&2\nexit 1\n' > "$play/bin/playfail" && chmod +x "$play/bin/playfail"
    run env PATH="$path" $make -C "$tmp/dir" -B run NVCC= CC="$(dirname "$playcc")/playfail"
    if [ $rc -ne 0 ]; then pass; else fail "make run has exit code 0 although the compiler failed"; fi
    check_err "make run shows what the compiler said" 'error: no'
    check_not_out "make run after a compiler that failed" '^build/suite '
    # .ci/run searches the log of ptxas for serialised wgmma: a log with such a note, one without, and a missing
    # log
    eval "$(sed -n '/^no_serialised()/p' .ci/run)"
    log=$tmp/ci.log
    if no_serialised 2> "$err"; then fail "CI: a missing log passes like a log without notes"; else pass; fi
    echo "ptxas info    : Used 168 registers" > "$log.suite"
    check "CI: a log without notes" no_serialised
    for code in C7508 C7510 C7513 C7515 C7517 C7519 C7520; do
        echo "ptxas info    : ($code) Potential Performance Loss: as it is" > "$log.suite"
        if no_serialised > "$out"; then fail "CI: the note $code in the log is not found"; else pass; fi
    done
else
    skip "examples/suite.cu does not exist"
fi
# a fake nvcc reports the times of the two parts of the suite
cat > "$play/bin/playtime" << 'EOF'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --time) csv=$2 ;;
    -o) made=$2 ;;
    *) words="$words $1" ;;
    esac
    shift
done
[ -n "$csv" ] || exit 0
echo "$words" > "$made"
{
    echo "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit"
    echo "suite.cu , cicc , a.ii , b.ptx , compute_90a , nvcc , 1500.0000 , ms"
    echo "suite.cu , $PLAY_PART , b.ptx , c.cubin , sm_90a , nvcc , 2000.0000 , ms"
    echo "suite.cu , gcc (compiling) ,   , d.o , compute_90a , nvcc , 250.0000 , ms"
    echo "suite.cu  , gcc (compiling) , link.stub  , e.o ,  , nvcc , 500.0000 , ms"
} > "$csv"
EOF
chmod +x "$play/bin/playtime"
playtime=$(cd "$play/bin" && pwd)/playtime
run env PATH="$path" PLAY_PART=ptxas NVCC="$playtime" BUILD="$tmp/timed" MAKE="$make" sh tests/compile_time.sh suite
check_rc "what the suite takes" 0
check_out "the command that is timed" 'playtime .*code=sm_90a.* -DKBK_TYPES=bf16[^ ]*,f32 -DSUITE_PART=2 .*-c examples/suite.cu.* & .*-DSUITE_PART=1 '
check_out "all of it" '^all +[0-9.]+ s, of processors [0-9.]+ s and [0-9.]+ s in the kernel$'
check_same "its parts, the longest first, those of one name together" "$(grep -E '^(cicc|ptxas|gcc)' "$out" | tr -s ' ' | tr '\n' ';')" \
    "ptxas 4.0 s;cicc 3.0 s;gcc (compiling) 1.5 s;"
run env PATH="$path" PLAY_PART=other NVCC="$playtime" BUILD="$tmp/timed" MAKE="$make" sh tests/compile_time.sh suite
check_rc "a part that nvcc does not name" 1
run env PATH="$path" $make -n test NVCC=/no/such/nvcc
if [ $rc -ne 0 ]; then pass; else fail "an nvcc that cannot be run is accepted"; fi
check_err "an nvcc that cannot be run" "NVCC=/no/such/nvcc cannot be run"
run env PATH="$path" PLAY_CAPS= $make test-gpu
if [ $rc -ne 0 ]; then pass; else fail "make test-gpu has exit code 0 without a GPU"; fi
check_err "make test-gpu without a GPU" "no GPU"
run env PATH="$path" PLAY_CAPS=9.0 $make test-gpu NVCC=
if [ $rc -ne 0 ]; then pass; else fail "make test-gpu has exit code 0 without nvcc"; fi
check_err "make test-gpu without nvcc" "no nvcc"
run env PATH="$path" PLAY_CAPS=9.0 $make -n kernels BUILD="$tmp/kernels"
check_rc "make kernels" 0
check_out "make kernels: the object" '^[^ ]*nvcc .*code=sm_90a .*-DKBENCH_SHARED -c kbench_kernels.cuh -o .*/kbench_kernels\.o$'
for example in 05_against_library 06_one_rung; do
    check_out "make kernels: $example" "^[^ ]*nvcc .*examples/$example.cu [^ ]*/kbench_kernels.o [^ ]*/kbench.o -o .*/examples/$example\$"
done
run env PATH="$path" $make kernels NVCC=
if [ $rc -ne 0 ]; then pass; else fail "make kernels has exit code 0 without nvcc"; fi
check_err "make kernels without nvcc" "no nvcc"
run env PATH="$path" $make -n examples
check_not_out "make examples does not compile all kernels as an object" "kbench_kernels.o"
: > "$play/bin/compute-sanitizer" && chmod +x "$play/bin/compute-sanitizer"
run env PATH="$path" PLAY_CAPS=9.0 $make -n sanitize
check_out "make sanitize: the tools" '^for tool in memcheck racecheck initcheck synccheck; do'
run env PATH="$path" PLAY_CAPS=9.0 $make -n test-gpu
check_out "make test-gpu lets nothing be skipped" "tests/run.sh --no-skip gpu"
finish
