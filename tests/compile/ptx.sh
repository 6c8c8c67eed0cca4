#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The PTX in kbench.h equals the output of tests/ptx/make.py for tests/ptx/engine.cu. Tests that ptxas assembles
# the PTX for every GPU without spills. The kernels must have the parameters that kbench passes, and the fill
# kernel must give the same bits as the host.
. tests/lib.sh

# --- the header's text, as C sees it
for f in kbench.h examples/addons/selftest.cu; do sed -n '/^\/\/ The PTX was compiled by nvcc from CUDA C/,/^\/\/ clang-format on/p' $f; done > "$tmp/block.h"
cat > "$tmp/print.c" << 'EOT'
#include "kbench.h"
#include <stdio.h>
#include <string.h>
#include "block.h"
static size_t print(const char* path, const char* const* pieces, size_t n) {
    size_t longest = 0;
    FILE* to = fopen(path, "w");
    for (size_t i = 0; i < n && to; i++) {
        if (strlen(pieces[i]) > longest) longest = strlen(pieces[i]);
        fputs(pieces[i], to);
    }
    return to && fclose(to) == 0 ? longest : 1000000;
}
int main(int argc, char** argv) {
    if (argc != 3) return 2;
    size_t one = print(argv[1], kbi_ptx, sizeof kbi_ptx / sizeof *kbi_ptx);
    size_t two = print(argv[2], kbi_ptx_proving, sizeof kbi_ptx_proving / sizeof *kbi_ptx_proving);
    printf("%d\n", (int)(one > two ? one : two));
    return 0;
}
EOT
build "the text in kbench.h" $CC -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -I"$tmp" "$tmp/print.c" -o "$tmp/print"
run "$tmp/print" "$tmp/engine.ptx" "$tmp/proving.ptx"
if [ "$(cat "$out")" -le 4095 ]; then pass; else fail "a literal of $(cat "$out") characters; C promises 4095"; fi
for module in engine proving; do
    check_same "$module: version and target" "$(sed -n '1,3p' "$tmp/$module.ptx" | tr '\n' ' ')" ".version 6.4 .target sm_70 .address_size 64 "
done

# --- kernels and their parameters, as the sections >>device and >>proving launch them
# entries MODULE
entries() {
    tr '\n' ' ' < "$tmp/$1.ptx" | grep -oE '\.entry [a-z_0-9]+\([^)]*\)' |
        sed -E 's/\.entry //; s/\.param \.//g; s/ p[0-9]//g; s/,/ /g' | sort
}
# loaded ARRAY: prints the kernels that kbench loads from the PTX in ARRAY
loaded() { cat kbench.h examples/addons/selftest.cu | sed -n "/$1\\[\\] = {/,/};/p" | grep -oE '"kbi_[a-z0-9]+"' | tr -d '"' | sort; }
check_same "entries and their parameters" "$(entries engine | tr '\n' ';')" \
    "kbi_clock(u64 u64);kbi_copy(u64 u64 u64);kbi_fill(u64 u64 u32 u32 u64 u32);kbi_fma(u64 u64);kbi_null();kbi_read(u64 u64 u64);kbi_spin(u64);kbi_write(u64 u64 u32);"
same="(u64 u64 u32 u64 u64);"
check_same "the self-test's" "$(entries proving | tr '\n' ';')" \
    "kbi_axpy${same}kbi_gather${same}kbi_histogram${same}kbi_product${same}kbi_sums$same"
check_same "what the engine loads" "$(loaded kbi_function_names)" "$(entries engine | sed 's/(.*//')"
check_same "what the self-test loads" "$(loaded kbi_proof_names)" "$(entries proving | sed 's/(.*//')"

# --- ptxas assembles the PTX
ptxas=
for p in "$(dirname "$(command -v "${NVCC:-none}" || echo /none/nvcc)")/ptxas" "$(command -v ptxas)" "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas"; do
    [ -z "$ptxas" ] && [ -x "$p" ] && ptxas=$p
done
if [ -z "$ptxas" ]; then
    skip "no ptxas (beside nvcc, on the PATH, in CUDA_HOME, in /usr/local/cuda)"
else
    sed -n '1,3p' "$tmp/engine.ptx" > "$tmp/nothing.ptx"
    for sm in 70 75 80 90 90a 100 120; do
        case $sm in 70 | 75 | 90a) ;; *) everything || continue ;; esac
        if ! "$ptxas" -arch=sm_$sm "$tmp/nothing.ptx" -o "$tmp/o" > /dev/null 2>&1; then
            # CUDA 13 lacks sm_70, and earlier releases lack later GPUs
            [ $sm = 70 ] || skip "this ptxas does not know sm_$sm"
            continue
        fi
        for module in engine proving; do
            run "$ptxas" -v -arch=sm_$sm "$tmp/$module.ptx" -o "$tmp/o"
            check_rc "ptxas for sm_$sm, $module" 0
            check_same "sm_$sm: entries assembled" "$(cat "$out" "$err" | grep -c 'Compiling entry function')" "$(entries $module | wc -l)"
            check_same "sm_$sm: entries that spill or have a stack" \
                "$(cat "$out" "$err" | grep 'spill stores' | grep -vcE '^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads')" 0
        done
    done
fi

# --- the PTX is that of its source
python=
for p in python3 python; do if [ -z "$python" ] && have $p && $p -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2> /dev/null; then python=$p; fi; done
if [ -z "$NVCC" ]; then skip "no nvcc: the PTX is not compared with its source" && finish; fi
if [ -z "$python" ]; then
    skip "no python3: the PTX is not compared with its source"
else
    run $python tests/ptx/make.py --nvcc "$NVCC"
    case $rc in
    0) pass ;;
    3) skip "$(tail -n 1 "$out"): the text is not compared" ;; # another release of nvcc may order instructions differently
    *) fail "the PTX differs from the compiled source: $(said)" ;;
    esac
    run $python tests/ptx/make.py --text
    check_same "make.py reads the text as C does" "$(cksum < "$out")" "$(cat "$tmp/engine.ptx" "$tmp/proving.ptx" | cksum)"
    if everything; then # a text that was edited by hand is found, and made anew
        sed 's/ld\.param\.u32 %r1,\[p2\]/ld.param.u32 %r2,[p2]/' kbench.h > "$tmp/edited.h"
        run $python tests/ptx/make.py --nvcc "$NVCC" --header "$tmp/edited.h"
        case $rc in 1 | 3) pass ;; *) fail "edited PTX is not detected: $(said)" ;; esac
        check_out "what was edited is shown" '^-.*ld\.param\.u32 %r2,\[p2\]'
        run $python tests/ptx/make.py --nvcc "$NVCC" --write "$tmp/edited.h"
        check_rc "--write" 0
        run $python tests/ptx/make.py --nvcc "$NVCC" --header "$tmp/edited.h"
        check_rc "what --write wrote" 0
        check_same "--write leaves the rest alone" "$(sed '/^\/\/ The PTX was compiled by nvcc/,/^\/\/ clang-format on/d' "$tmp/edited.h" | cksum)" \
            "$(sed '/^\/\/ The PTX was compiled by nvcc/,/^\/\/ clang-format on/d' kbench.h | cksum)"
    fi
fi

# --- the source of the fill kernel, run on the host, gives the same bits
build "fill.cu" $NVCC -O2 -fmad=false -Xcompiler -ffp-contract=off -c tests/ptx/fill.cu -o "$tmp/fill_cu.o"
build "fill.c" $LEAN_CC -std=gnu11 $(everything && echo -O2 || echo -O0) -ffp-contract=off -Wall -Wextra -Werror -I. -Itests -c tests/ptx/fill.c -o "$tmp/fill.o"
build "fill" $NVCC "$tmp/fill.o" "$tmp/fill_cu.o" -o "$tmp/fill"
run "$tmp/fill"
sed '$d' "$out"
last=$(tail -n 1 "$out")
case $last in
[1-9]*" passed, "*" failed, 0 skipped")
    rest=${last#*, }
    passed=$((passed + ${last%% *})) failed=$((failed + ${rest%% *}))
    check_rc "the program's exit code" "$([ "${rest%% *}" = 0 ] && echo 0 || echo 1)"
    ;;
*) fail "fill ended without its summary: $(said)" ;;
esac
finish
