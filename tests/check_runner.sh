#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The runner itself: nothing that goes wrong in a test is lost on the way to the last line.
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
finish
