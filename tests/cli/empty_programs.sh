#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that programs without benchmarks and runs without cases print the reason.
. tests/lib.sh
. tests/cli/kit.lib

# in a static library, nothing calls the benchmarks, so the linker drops them
cat > "$tmp/benchmark.c" << 'end'
#include "kbench.h"
KBENCH(in_library) { KB_TIME(kb) { kb_keep(kb); } }
kb_entry entry_of_library;
end
cat > "$tmp/main.c" << 'end'
#include "kbench.h"
#ifdef CALLS
extern kb_entry entry_of_library;
static void body(kb_state* kb) { KB_TIME(kb) { kb_keep(kb); } }
int main(int argc, char** argv) {
    entry_of_library.operation = "added";
    entry_of_library.body = body;
    kb_add(&entry_of_library);
    return kb_main(argc, argv);
}
#else
KBENCH_MAIN()
#endif
end
quick="--iters 3 --warmup 1 --no-progress"
build "benchmark.c" $CC -O1 -I. -c "$tmp/benchmark.c" -o "$tmp/benchmark.o"
build "a library" ar rcs "$tmp/libbenchmark.a" "$tmp/benchmark.o"
program without "$tmp/main.c" "$tmp/libbenchmark.a"
for o in "" --list --list-ops --dry-run "--op in_library" "--filter x" "-a n=1"; do
    run "$tmp/without" $quick $o
    check_rc "a library's benchmarks that the linker left out: $o" 2
    check_err "a library's benchmarks that the linker left out: $o" 'no benchmark is registered .*--whole-archive.*kb_add'
    check_same "a library's benchmarks that the linker left out: $o: lines" "$(wc -l < "$err" | tr -d ' ')" 1
done
run "$tmp/without" --help
check_rc "--help without benchmarks" 0
run "$tmp/without" --env
check_rc "--env without benchmarks" 0
check_out "--env: the compiler by its name" '^ *build  *(gcc|clang|.*clang) [1-9]'
governor=$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2> /dev/null)
if [ -n "$governor" ]; then check_out "--env: the governor that the kernel knows" "^ *cpu_governor  *$governor"; fi
if $CC -O1 -I. "$tmp/main.c" "$kit/kit.o" -Wl,--whole-archive "$tmp/libbenchmark.a" -Wl,--no-whole-archive -o "$tmp/whole" $libs 2> /dev/null; then
    run "$tmp/whole" --list
    check_same "--whole-archive brings them" "$(cat "$out")" "in_library/impl=default"
else
    skip "this linker has no --whole-archive"
fi
program calls "$tmp/main.c" -DCALLS "$tmp/libbenchmark.a"
run "$tmp/calls" --list
check_same "a call of kb_add with an entry of theirs brings them" "$(sort "$out" | tr '\n' ' ')" \
    "added/impl=default in_library/impl=default "

cat > "$tmp/skips.c" << 'end'
#include "kbench.h"
KBENCH(skips) { kb_skip(kb, "not on a Tuesday"); }
KBENCH(runs) { KB_TIME(kb) { kb_keep(kb); } }
KBENCH_MAIN()
end
program skips "$tmp/skips.c"
run "$tmp/skips" $quick --op skips --json "$tmp/skips.json"
check_rc "all skipped" 0
check_err "all skipped" 'nothing was measured: all selected cases were skipped'
run "$tmp/skips" $quick
check_rc "one skipped" 0
check_not_err "one skipped" 'nothing was measured'
finish
