#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests benchmarks in a shared library, linked or loaded with dlopen. A function of one instruction must have a
# time, and an empty function must have none. A program linked without -rdynamic must fail with a message that
# names the missing symbol.
. tests/lib.sh
. tests/cli/kit.lib

cat > "$tmp/plugin.c" << 'EOF'
#include "kbench.h"
#define W(n)                                \
    for (int i = 0; i < (n); i++) {         \
        x = x * 1664525u + 1013904223u;     \
        kb_keep(x);                         \
    }
KBENCH_IMPL(so, one) {
    volatile int v = 1;
    KB_TIME(kb) {
        int r = v + 1;
        kb_keep(r);
    }
    kb_check_that(kb, true, 0, 0, "x");
}
KBENCH_IMPL(so, w100) {
    unsigned x = 1;
    KB_TIME(kb) { W(100) }
    kb_check_that(kb, true, 0, 0, "x");
}
KBENCH_IMPL(so, empty) {
    KB_TIME(kb) {}
    kb_check_that(kb, true, 0, 0, "x");
}
EOF
cat > "$tmp/loads.c" << 'EOF'
#include "kbench.h"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) { return dlopen(argv[argc - 1], RTLD_NOW) ? kb_main(argc - 1, argv) : (puts(dlerror()), 9); }
EOF
printf '#include "kbench.h"\nKBENCH_MAIN()\n' > "$tmp/linked.c"
alone
reader
# statuses WHAT PROGRAM [LIBRARY]
statuses() {
    what=$1 && shift
    program=$1 && shift
    run "$program" --max-time 0.1s --no-progress --json "$tmp/out.json" "$@"
    "$tmp/flat" "$tmp/out.json" > "$tmp/flat.txt"
    check_same "$what" "$(awk -F'\t' '$2 == "implementation" { i = $3 } $2 == "status" { print i, $3 }' "$tmp/flat.txt" | sort | tr -d '"' | tr '\n' ',')" \
        "empty failed,one ok,w100 ok,"
}
for cc in $CC clang; do
    have $cc || continue
    for opt in -O2 -O3; do
        everything || [ "$cc $opt" = "$CC -O2" ] || continue
        build "$cc $opt, a library" $cc $opt -shared -fPIC -I. "$tmp/plugin.c" -o "$tmp/libplugin.so"
        build "$cc $opt, dlopen" $cc $opt -rdynamic -I. "$tmp/loads.c" "$kit/plain.o" -o "$tmp/loads" $libs
        statuses "$cc $opt, dlopen" "$tmp/loads" "$PWD/$tmp/libplugin.so"
        build "$cc $opt, linked" $cc $opt -rdynamic -I. "$tmp/linked.c" "$kit/plain.o" -o "$tmp/linked" -Wl,--no-as-needed -L"$tmp" -lplugin -Wl,-rpath,"$PWD/$tmp" $libs
        statuses "$cc $opt, linked" "$tmp/linked"
    done
done
# examples/README.md explains the message of dlopen about the missing symbols
build "without -rdynamic" $CC -I. "$tmp/loads.c" "$kit/plain.o" -o "$tmp/loads" $libs
run "$tmp/loads" "$PWD/$tmp/libplugin.so"
check_rc "without -rdynamic" 9
symbol=$(grep -o 'undefined symbol: kbench_[0-9_]*' "$out")
if [ -n "$symbol" ] && grep -qF "$symbol" examples/README.md && grep -F "$symbol" examples/README.md | grep -q -e -rdynamic; then pass; else fail "without -rdynamic: examples/README.md does not explain '$symbol'; $(said)"; fi
finish
