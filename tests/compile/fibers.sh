#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Interleaved rounds suspend benchmark functions with ucontext; with musl, which lacks it, with kbench's own code on
# x86-64. On other systems, interleaving is off: the table, the record and --env report it, and several processes are
# compared instead.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

cat > "$tmp/prog.c" << 'EOF'
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#define WORK(n)                               \
    unsigned x = 1;                           \
    KB_TIME(kb) {                             \
        for (int i = 0; i < (n); i++) {       \
            x = x * 1664525u + 1013904223u;   \
            kb_keep(x);                       \
        }                                     \
    }                                         \
    kb_check_that(kb, true, 0, 0, "x");
KBENCH_IMPL(work, a) { WORK(1000) }
KBENCH_IMPL(work, same) { WORK(1000) }
KBENCH_IMPL(work, slower) { WORK(1600) }
#ifdef __cplusplus
KBENCH_IMPL(thrown, a) { WORK(1000) }
KBENCH_IMPL(thrown, throws) {
    int n = 0;
    KB_TIME(kb) {
        if (++n > 3000) throw "enough";
    }
}
#endif
KBENCH_MAIN()
EOF
reader
# field IMPLEMENTATION KEY
field() { awk -F'\t' -v i="\"$1\"" -v k="$2" '$2 == "implementation" { now = $3 } now == i && $2 == k { print $3; exit }' "$tmp/flat.txt"; }
# interleaved WHAT OPTIONS...: runs $tmp/prog, and checks that implementations ran in interleaved rounds
interleaved() {
    what=$1 && shift
    run "$tmp/prog" --no-progress --op work --json "$tmp/out.json" "$@"
    check_rc "$what" 0
    "$tmp/flat" "$tmp/out.json" > "$tmp/flat.txt"
}
decided() {
    check_same "$what: slower" "$(field slower verdict)" '"SLOWER"'
    case $(field same verdict) in '"EQUIVALENT"' | '"UNRESOLVED"') pass ;; *) fail "$what: same: $(field same verdict)" ;; esac
}
own() {
    interleaved "$1"
    decided
    check_not_out "$1" 'one after another'
    run "$tmp/prog" --env
    check_not_out "$1: --env" 'interleaved rounds'
}
if echo 'int x = sizeof(void*) == 8 ? __x86_64__ : 0;' | $CC -x c -c - -o "$tmp/x.o" 2> /dev/null; then
    for options in -O0 -O1 -O2; do
        everything || [ $options = -O1 ] || continue
        check "own switch, $options" $CC $options -Wall -Wextra -Werror -DKBI_UCONTEXT=0 -I. "$tmp/prog.c" -o "$tmp/prog" $libs && own "own switch, $options"
    done
    if everything && have $CXX && check "own switch, C++" $CXX -x c++ -O2 -DKBI_UCONTEXT=0 -I. "$tmp/prog.c" -o "$tmp/prog" $libs; then
        own "own switch, C++"
        run "$tmp/prog" --no-progress --op thrown --json "$tmp/out.json"
        "$tmp/flat" "$tmp/out.json" > "$tmp/flat.txt"
        check_same "an exception on such a stack" "$(field throws status) $(field a status)" '"failed" "ok"'
        check_out "an exception on such a stack" enough
    fi
    if ! everything; then
        :
    elif have musl-gcc; then
        check "musl" musl-gcc -O2 -I. "$tmp/prog.c" -o "$tmp/prog" -lm && own "musl"
    else
        skip "no musl-gcc on this machine"
    fi
else
    skip "own switch: not x86-64"
fi

off='one after another, not in interleaved rounds'
build "without fibers" $CC -O1 -DKBI_FIBERS=0 -I. "$tmp/prog.c" -o "$tmp/prog" $libs
interleaved "without fibers"
check_out "without fibers: the table" "$off"
check_same "without fibers: nothing is decided in one process" "$(field slower verdict)" '"UNRESOLVED"'
case $(field slower message) in *"$off"*) pass ;; *) fail "without fibers: message $(field slower message)" ;; esac
run "$tmp/prog" --env
check_out "without fibers: --env" 'interleaved rounds +off'
everything || finish
interleaved "without fibers, five processes" --procs 5 --max-time 0.2s
decided
check_out "without fibers, five processes: the table" "$off"
finish
