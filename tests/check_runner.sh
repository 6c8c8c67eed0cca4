#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests tests/run.sh: its last line must count every kind of failure of a test.
. tests/lib.sh
unset TEST_AGAIN

# case_of NAME WANTED OPTIONS C-STATEMENTS: the last line for a program of these statements
case_of() {
    printf '#include "test.h"\n#include <stdlib.h>\nint main(void) { (void)test_skip; %s }\n' "$4" > "$tmp/$1.c"
    run env BUILD="$tmp/build" TEST_TIMEOUT=2 sh tests/run.sh $3 "$tmp/$1.c"
    check_same "$1" "$(tail -n 1 "$out")" "$2"
    case $2 in *" 0 failed"*) check_rc "$1" 0 ;; *) check_rc "$1" 1 ;; esac
}
case_of passes "2 passed, 0 failed, 0 skipped" "" "CHECK(1); CHECK_INT(2, 2); return test_end();"
case_of fails "1 passed, 1 failed, 0 skipped" "" "CHECK(1); CHECK_STR(\"a\", \"b\"); return test_end();"
check_out "fails: the line of the test" '^FAIL  .*fails +[0-9]+ s, [0-9]+\.[0-9] s of CPU   1 passed, 1 failed, 0 skipped$'
check_out "fails: what all tests took" '^[0-9]+ s, [0-9]+\.[0-9] s of CPU$'
check_out "fails: says what and where" 'FAIL .*fails.c:3: .*is "a", not "b"'
case_of skips "1 passed, 0 failed, 1 skipped" "" 'CHECK(1); SKIP("no %s", "moon"); return test_end();'
check_out "skips: lists the reason" '1 x .*no moon'
case_of skips_none "1 passed, 1 failed, 1 skipped" "--no-skip" 'CHECK(1); SKIP("no moon"); return test_end();'
case_of crashes "0 passed, 1 failed, 0 skipped" "" "CHECK(1); abort();"
case_of crashes_at_the_end "1 passed, 1 failed, 0 skipped" "" "CHECK(1); test_end(); abort();"
case_of says_nothing "0 passed, 1 failed, 0 skipped" "" "return 0;"
case_of wrong_exit_code "1 passed, 1 failed, 0 skipped" "" "CHECK(1); test_end(); return 3;"
case_of does_not_compile "0 passed, 1 failed, 0 skipped" "" "this is not C;"
case_of warns "0 passed, 1 failed, 0 skipped" "" "int unused; return test_end();"
if have timeout; then case_of hangs "0 passed, 1 failed, 0 skipped" "" "for (;;) {}"; else skip "no timeout: a test that hangs is not ended"; fi
now_and_then='FILE* f = fopen(getenv("ONCE"), "r"); CHECK(f); if (!f) fclose(fopen(getenv("ONCE"), "w")); return test_end();'
ONCE=$tmp/once.0 && export ONCE
case_of first_time "0 passed, 1 failed, 0 skipped" "" "$now_and_then"
ONCE=$tmp/once.1 TEST_AGAIN=1 && export TEST_AGAIN
case_of second_time "1 passed, 0 failed, 0 skipped" "" "$now_and_then"
check_out "second time: says why" '^again .*second_time.c:3: '
case_of each_time "0 passed, 1 failed, 0 skipped" "" "CHECK(0); return test_end();"
case_of silent_each_time "0 passed, 1 failed, 0 skipped" "" "return 3;"
check_out "silent: says that it was taken again" '^again .*silent_each_time: exit code 3$'
unset TEST_AGAIN
printf '. tests/lib.sh\npass\nfail "a reason"\nfinish\n' > "$tmp/script.sh"
run env BUILD="$tmp/build" sh tests/run.sh "$tmp/script.sh" "$tmp/passes.c"
check_same "a script and a program" "$(tail -n 1 "$out")" "3 passed, 1 failed, 0 skipped"
check_out "a script: says what" 'FAIL .*a reason'
run env BUILD="$tmp/build" sh tests/run.sh no/such/test.c
check_rc "a test that is not there" 2

# --- in parallel, and one at a time
for me_and_other in "one two" "two one"; do
    set -- $me_and_other
    printf '. tests/lib.sh\n: > "%s"\nn=0\nwhile [ ! -f "%s" ] && [ $n -lt 20 ]; do sleep 1 && n=$((n + 1)); done\ncheck met [ $n -lt 20 ]\nfinish\n' \
        "$tmp/met_$1" "$tmp/met_$2" > "$tmp/$1.sh"
done
for name in first second; do # of the tests that measure time
    printf '# measures time\n. tests/lib.sh\ncheck "no other of its kind runs" mkdir "%s"\nsleep 1\nrmdir "%s"\nfinish\n' "$tmp/alone" "$tmp/alone" > "$tmp/$name.sh"
done
run env BUILD="$tmp/build" TEST_JOBS=3 sh tests/run.sh "$tmp/first.sh" "$tmp/second.sh" "$tmp/one.sh" "$tmp/two.sh"
check_same "two tests at once, and one at a time that measures" "$(tail -n 1 "$out")" "4 passed, 0 failed, 0 skipped"
run env BUILD="$tmp/build" TEST_JOBS=1 sh tests/run.sh "$tmp/first.sh" "$tmp/second.sh"
check_same "one at a time" "$(tail -n 1 "$out")" "2 passed, 0 failed, 0 skipped"
printf '# takes long\n. tests/lib.sh\npass\nfinish\n' > "$tmp/slow.sh"
run env BUILD="$tmp/build" TEST_JOBS=1 sh tests/run.sh "$tmp/script.sh" "$tmp/slow.sh"
check_same "long ones first" "$(sed -nE 's,^(ok|FAIL) .*/([a-z]*) .* s of CPU.*,\2,p' "$out" | tr '\n' ' ')" "slow script "

# --- tests that make test leaves out
toy=$tmp/toy
mkdir -p "$toy/tests/cli" "$toy/tests/host"
cp tests/run.sh tests/lib.sh tests/test.h tests/json.h tests/guarded.h "$toy/tests"
printf '. tests/lib.sh\npass\nfinish\n' > "$toy/tests/cli/short.sh"
printf '# only in make test-all\n. tests/lib.sh\npass && pass\nfinish\n' > "$toy/tests/cli/long.sh"
printf '. tests/lib.sh\n! everything || pass\npass\nfinish\n' > "$toy/tests/cli/both.sh"
toy() { run sh -c 'cd "$1" && shift && env BUILD=build TEST_ALL= sh tests/run.sh "$@"' toy "$toy" "$@"; }
toy
check_same "make test" "$(tail -n 1 "$out")" "2 passed, 0 failed, 0 skipped"
check_out "make test says what it leaves out" '^only in make test-all: cli/long $'
toy --all
check_same "make test-all" "$(tail -n 1 "$out")" "5 passed, 0 failed, 0 skipped"
toy --rest
check_same "what make test-all adds" "$(tail -n 1 "$out")" "4 passed, 0 failed, 0 skipped"
toy tests/cli/long.sh
check_same "a test by its name" "$(tail -n 1 "$out")" "2 passed, 0 failed, 0 skipped"

# --- programs of tests/host, compiled together
cat > "$toy/tests/kit.h" << 'EOF'
#include <stdbool.h>
#include <stddef.h>
typedef struct kb_entry {
    const char* file;
    struct kb_entry* next;
} kb_entry;
static struct {
    kb_entry* entries;
    int entry_count;
} kbi_process;
EOF
for n in 1 2; do # of the same names; one of them passes, one fails
    cat > "$toy/tests/host/number_$n.c" << EOF
#include "test.h"
#include "kit.h"
#define NUMBER $n
static kb_entry own = { __FILE__, NULL };
__attribute__((constructor)) static void add(void) { own.next = kbi_process.entries, kbi_process.entries = &own, kbi_process.entry_count++; }
int main(int argc, char** argv) {
    (void)argc, (void)argv;
    CHECK_INT(NUMBER, 1);
    CHECK_THAT(kbi_process.entry_count == 1 && kbi_process.entries == &own, "benchmarks of others");
    return test_end();
}
EOF
done
if have $CXX && $CXX -std=gnu++20 -x c++ -fsyntax-only /dev/null 2> /dev/null; then
    toy host
    check_same "together" "$(tail -n 1 "$out")" "3 passed, 1 failed, 0 skipped"
    check_out "together: a line each" '^ok +host/number_1 .* 2 passed, 0 failed'
    check_out "together: the name of the file" '^FAIL +\.?/?tests/host/number_2\.c:[0-9]+: NUMBER is 2, not 1'
    check_same "together: one program" "$(ls "$toy/build/test/together/number_1" "$toy/build/test/host" | grep -c number)" 1
    echo 'int class = 1;' >> "$toy/tests/host/number_1.c"
    toy host
    check_same "what is not C++ is built by itself" "$(tail -n 1 "$out")" "3 passed, 1 failed, 0 skipped"
    check_out "what is not C++: where that is said" 'does not compile as C\+\+20 .*log'
else
    skip "no C++20 compiler: tests of tests/host are not compiled together"
fi
finish
