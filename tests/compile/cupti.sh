#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that the CUPTI structures that kbench declares match CUPTI's headers, if the headers are installed.
# only in make test-all
. tests/lib.sh

include=$(cuda_headers)
cupti=
for folder in "$include" "$include/../extras/CUPTI/include"; do
    [ -z "$cupti" ] && [ -n "$include" ] && [ -f "$folder/cupti.h" ] && cupti=$folder
done
if [ -z "$cupti" ] || ! have "$CXX"; then
    skip "no cupti.h, or no $CXX"
    finish
fi
cudart= # needed only for linking
for folder in "$include/../lib64" "$include/../lib" "$include/../targets/x86_64-linux/lib"; do
    [ -z "$cudart" ] && [ -f "$folder/libcudart_static.a" ] && cudart="-L$folder -lcudart_static -lrt"
done
if [ -z "$cudart" ]; then
    skip "no libcudart_static.a: the sizes of structures are not tested"
    check "structures" $CXX -std=c++11 -fsyntax-only -w -DKBENCH_CUDA -isystem "$include" -isystem "$cupti" -I. -Itests tests/compile/cupti.cpp
    finish
fi
build "structures" $CXX -std=c++11 -w -DKBENCH_CUDA -isystem "$include" -isystem "$cupti" -I. -Itests tests/compile/cupti.cpp -o "$tmp/cupti" $cudart $libs
check "their sizes" "$tmp/cupti"

# needs no GPU, because CUPTI lists the metrics of every GPU
library=
for folder in "$include/../lib64" "$include/../lib" "$include/../extras/CUPTI/lib64"; do
    for file in "$folder"/libcupti.so.1[2-9]; do [ -z "$library" ] && [ -f "$file" ] && library=$file; done
done
if [ -z "$library" ]; then
    skip "no libcupti.so: names of metrics are not tested"
    finish
fi
cat > "$tmp/chips.c" << 'EOF'
#include "kit.h"
int main(int argc, char** argv) { // LIBRARY CHIP...
    static const char* const sets[] = { "few", "usual", "all" };
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) return puts(dlerror()), 1;
    kbi_range_find(library);
    for (int i = 2; i < argc; i++)
        for (int k = 0; k < 3; k++) {
            int all = 0;
            kbi_insight_clear();
            kbi_range_state.failed = false;
            bool good = kbi_range_configure(argv[i], sets[k]);
            for (int m = 0; m < KBI_COUNT(kbi_chip_metrics); m++) all += kbi_chip_metrics[m].set <= k;
            printf("%s %s %s %d of %d metrics, %d passes %s\n", good ? "good" : "BAD", argv[i], sets[k], kbi_range_state.n, all,
                   kbi_range_state.passes, kbi_meter.insight.head.message);
            kbi_range_end();
        }
    return 0;
}
EOF
build "a program" $CC -w -DKBENCH_CUDA -isystem "$include" -I. -Itests "$tmp/chips.c" -o "$tmp/chips" $cudart $libs -lstdc++
run "$tmp/chips" "$library" GA100 AD102 GH100 GB100
check_rc "metrics of chips" 0
check_not_out "no set is refused" '^BAD'
for chip in GA100 AD102 GH100 GB100; do
    check_out "$chip: few in one or two passes" "^good $chip few 6 of 6 metrics, [12] passes"
    check_out "$chip: usual in three or four" "^good $chip usual 29 of 29 metrics, [34] passes"
    check_out "$chip: all, but for a few names of its own" "^good $chip all 3[4-7] of 37 metrics, [0-9]+ passes"
done
finish
