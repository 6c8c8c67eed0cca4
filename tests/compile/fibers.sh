#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Interleaved rounds suspend benchmark functions with ucontext, which musl lacks. Without it, the table, the record
# and --env must say that rounds are not interleaved, and kbench compares several processes instead.
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
KBENCH_MAIN()
EOF
reader
# field IMPLEMENTATION KEY
field() { awk -F'\t' -v i="\"$1\"" -v k="$2" '$2 == "implementation" { now = $3 } now == i && $2 == k { print $3; exit }' "$tmp/flat.txt"; }
# interleaved WHAT OPTIONS...: $tmp/prog must interleave rounds
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
off='one after another, not in interleaved rounds'
build "without fibers" $CC -O1 -DKBI_FIBERS=0 -I. "$tmp/prog.c" -o "$tmp/prog" $libs
interleaved "without fibers"
check_out "without fibers: the table" "$off"
check_same "without fibers: nothing is decided in one process" "$(field slower verdict)" '"UNRESOLVED"'
case $(field slower message) in *"$off"*) pass ;; *) fail "without fibers, the message of the slower case is wrong: $(field slower message)" ;; esac
run "$tmp/prog" --env
check_out "without fibers: --env" 'interleaved rounds +off'
everything || finish
interleaved "without fibers, five processes" --procs 5 --max-time 0.2s
decided
check_out "without fibers, five processes: the table" "$off"
finish
