#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests benchmarks in C++20 modules that include the header in the global module fragment. Each benchmark is
# registered once, regardless of how many files import the module.
. tests/lib.sh
. tests/cli/kit.lib

cat > "$tmp/bench.cppm" << 'EOF'
module;
#include "kbench.h"
export module bench;
KBENCH(in_module) {
    unsigned x = 1;
    KB_TIME(kb) { x = x * 3 + 1; kb_keep(x); }
}
KBENCH_IMPL(in_module, second) {
    unsigned x = 1;
    KB_TIME(kb) { x = x * 5 + 1; kb_keep(x); }
}
export int answer() { return 42; }
EOF
cat > "$tmp/main.cpp" << 'EOF'
#include "kbench.h"
import bench;
int other();
KBENCH(in_main) {
    unsigned x = 1;
    KB_TIME(kb) { x = x * 7 + 1; kb_keep(x); }
}
int main(int argc, char** argv) { return answer() + other() == 84 ? kb_main(argc, argv) : 9; }
EOF
printf 'import bench;\nint other();\nint other() { return answer(); }\n' > "$tmp/other.cpp"
alone
lists() {
    run "$tmp/program" --list
    check_rc "$1" 0
    check_same "$1: benchmarks" "$(sort "$out" | tr '\n' ' ')" "in_main/impl=default in_module/impl=default in_module/impl=second "
    check_not_err "$1" "twice"
}
root=$PWD seen=
for cxx in $CXX clang++ clang++-16 clang++-17 clang++-18 clang++-19; do
    have $cxx && $cxx --version | grep -q clang || continue
    $cxx -std=c++20 -O1 -I. --precompile "$tmp/bench.cppm" -o "$tmp/bench.pcm" > "$tmp/log" 2>&1 || continue
    seen=1
    $cxx -std=c++20 -O1 -c "$tmp/bench.pcm" -o "$tmp/bench.o"
    check "$cxx" $cxx -std=c++20 -O1 -I. -fprebuilt-module-path="$tmp" "$tmp/main.cpp" "$tmp/other.cpp" "$tmp/bench.o" "$kit/plain.o" -o "$tmp/program" $libs &&
        lists "$cxx"
done
[ -n "$seen" ] || skip "no clang++ that supports modules"
if ! everything; then
    :
elif (cd "$tmp" && g++ -std=c++20 -fmodules-ts -O1 -I"$root" -x c++ -c bench.cppm -o bench.o > log 2>&1); then
    if (cd "$tmp" && g++ -std=c++20 -fmodules-ts -O1 -I"$root" main.cpp other.cpp bench.o "$root/$kit/plain.o" -o program $libs > log 2>&1); then pass; else fail "g++: $(head -c 300 "$tmp/log")"; fi
    lists "g++"
else
    skip "no g++ that supports modules"
fi
finish
