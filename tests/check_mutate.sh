#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Runs tests/mutate.py on a header of a few lines, and checks which mutants are caught, survive, are discarded, or
# are never generated.
# only in make test-all
. tests/lib.sh

for need in python3 gcc gcov; do
    have $need || { skip "no $need" && finish; }
done
toy=$tmp/toy
mkdir -p "$toy/tests/host" "$toy/tests/cli"
cp tests/test.h tests/json.h tests/lib.sh "$toy/tests"
cat > "$toy/kbench.h" << 'end'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int above(int x) { return x + 1; }
/*---------------------------------------------------------------------------------------------------------------
  Stop here if you only want the API.
---------------------------------------------------------------------------------------------------------------*/
/*---------------------------------------------------------------------------------------------------------------
  >>looked    at
---------------------------------------------------------------------------------------------------------------*/
#if 1 + 1 == 2 // no + of the code's
int sum(int a, int b) { return a + b; /* + */ }
#endif
int kbi_far(int a) { return a + 7; }
static int weak(int n) { // calls itself for ever with another sign
    if (n > 0) return weak(n - 1);
    return above(n) == 0;
}
int ends(int n) { return weak(n); }
/*---------------------------------------------------------------------------------------------------------------
  >>not_looked at
---------------------------------------------------------------------------------------------------------------*/
int nobody(int a, int b) { return a + b; }
int later(int a) { return a + 1; }
int unlooked(int a) {
    char room[64];
    return snprintf(room, sizeof room, "%d + 1", a) + 2 * a;
}
int behind(int n) { // the sum of none of the list's, or of one behind its last
    static const int list[2] = { 1, 2 };
    int at = 2, all = 0;
    while (at < n) all += list[at++];
    return all;
}
int same(int a) { return a * 0 + 0 * above(a); }
int cut(const char* text) { // how much of a text a buffer takes
    char part[8];
    snprintf(part, sizeof part - 1, "%s", text);
    return (int)strlen(part);
}
int sized(int n) {
    const char* names[12] = { "a", "b" };
    unsigned low[13], high[14];
    low[n] = high[n] = 2;
    return n * names[n][0] + sum((int)low[n], (int)high[n]);
}
int room_for(int n) {
    char* p = (char*)malloc((size_t)n + 9);
    int fine = p != NULL;
    free(p);
    return fine;
}
int numbered(int a) {
    a = a +
        0;
    return a + __LINE__;
}
end
cat > "$toy/tests/host/t.c" << 'end'
#include "test.h"
#include "kbench.h"
#include <signal.h>
int main(void) {
    CHECK_INT(sum(2, 3), 5);
    ends(3);
    unlooked(1);
    same(1);
    numbered(1);
    CHECK_INT(cut("abc"), 3);
    CHECK_INT(room_for(3), 1);
    CHECK_INT(sized(0), 4);
    behind(2);
    raise(SIGCONT);
    later(2);
    return test_end();
}
end
cat > "$toy/tests/cli/u.sh" << 'end'
. tests/lib.sh
echo '#include "kbench.h"
int main(void) { return sum(1, 1) != 2; }' > "$tmp/u.c"
build "u.c" $CC -I. "$tmp/u.c" -o "$tmp/u"
check "u" "$tmp/u"
finish
end
echo '#include "kbench.h"' > "$toy/tests/host/brings.h"
cat > "$toy/tests/host/far.c" << 'end'
#include "test.h"
#include "brings.h"
int main(void) {
    CHECK_INT(kbi_far(1), 8);
    return test_end();
}
end
cp "$toy/kbench.h" "$tmp/before.h"
unset MUTATE_COVERAGE
mutate() { run env BUILD=build python3 tests/mutate.py --root "$toy" "$@"; }
at() { grep -nF -e "$1" "$toy/kbench.h" | head -n 1 | cut -d: -f1; }

mutate --coverage
check_rc "--coverage" 0
check_out "--coverage: what no test executes" "^>>not_looked .* [1-9][0-9]* not executed .*$(at 'int nobody')"
check_out "--coverage: what tests execute" '^>>looked .* 0 not executed'
mutate --list
check_not_out "--list: comments, #if, sizes of arrays, what stands above" '(at|/\*) \[\+|room\[|\[9 ->|\[1[234] ->|#if|return x'
check_out "--list: what is no size, in a call" '^not_looked .*\(int\)high\[\[n -> '
check_out "--list: the code" '^looked .*a \[\+ -> -\] b'
mutate --at "$(at 'int sum'):plus"
check_rc "a sum that is a difference" 0
check_out "a sum that is a difference: is caught, by what checks it" '^looked .* plus +caught'
check_out "a sum that is a difference: by which test" '^ +(host/t: .*sum\(2, 3\) is -1, not 5|cli/u: )'
mutate --at "$(at 'int kbi_far'):plus"
check_out "a header that another header brings: is the mutant's" '^looked .* plus +caught'
mutate --at "$(at 'int unlooked'):plus" # a line that has none
check_rc "nothing to be drawn is no success" 1
mutate --at "$(at 'return snprintf'):plus"
check_rc "what is executed and not looked at" 1
check_out "what is executed and not looked at: survives" '^not_looked .* plus +SURVIVED'
check_out "what is executed and not looked at: tests were run" '^ +1 tests'
mutate --at "$(at 'int later'):plus"
check_out "what is executed behind a signal: tests were run" '^ +1 tests'
mutate --at "$(at 'int nobody'):plus"
check_rc "what no test executes" 1
check_out "what no test executes: survives at once" '^ +no test executes it'
if echo 'int main(void) { return 0; }' | $CC -fsanitize=address,undefined -x c - -o "$tmp/empty" 2> /dev/null && "$tmp/empty"; then
    mutate --at "$(at 'while (at < n)'):less"
    check_out "what only a sanitizer sees is caught" '^ +host/t, sanitized: crash'
fi
if echo 'int main(void) { return 0; }' | clang -x c - -o "$tmp/empty" 2> /dev/null; then
    mutate --at "$(at 'sizeof part'):plus"
    check_out "what only a checked buffer sees is caught" '^ +host/t, fortified: crash'
fi
mutate --at "$(at 'int nobody'):plus" --least 0
check_rc "--least" 0
mutate --at "$(at 'int same'):plus"
check_out "a mutant of the same object code is none" '0 of 0 caught; discarded: 0 .* 1 with the same object code'
mutate --at "$(at 'a = a +'):delete"
check_out "a mutant moves no line" '0 of 0 caught; discarded: 0 .* 1 with the same object code'
mutate --at "$(at 'if (n > 0)'):plus" --json "$tmp/result.json"
check_out "a mutant that ends the process is caught" '^looked .* plus +caught'
check_out "a mutant that ends the process: how" '^ +host/t: (crash|time)'
mutate --only looked --count 5 --seed 3 --json "$tmp/result.json"
check_not_out "--only" '^not_looked '
cp "$out" "$tmp/first"
mutate --only looked --count 5 --seed 3
check_same "a seed gives the same mutants" "$(grep -c '^looked' "$tmp/first") $(sed '/^ /d' "$tmp/first" | cksum)" \
    "$(grep -c '^looked' "$out") $(sed '/^ /d' "$out" | cksum)"
mutate --again "$tmp/result.json"
check_same "--again: those that survived" "$(grep -c '^looked' "$out")" "$(grep -c 'looked .* SURVIVED' "$tmp/first")"
# the coverage of unchanged lines survives a change of the header; a test that fails without a mutation cannot
# catch a mutant
sed '1i // a line more' "$tmp/before.h" > "$toy/kbench.h"
mutate --at "$(at 'int sum'):plus"
check_not_err "another header: nothing is learnt anew" 'learning'
check_out "another header: what tests execute is where it went" '^looked .* plus +caught'
mutate --at "$(at 'int nobody'):plus"
check_out "another header: what no test executes" '^ +no test executes it'
sed 's/return a + b; \/\*/return a + b + 1; \/*/' "$tmp/before.h" > "$toy/kbench.h"
mutate --at "$(at 'return above'):number"
check_err "a header that fails: the tests are not used" 'not used: (host/t|cli/u) fails without any mutation'
check_out "a header that fails: catches nothing" '^looked .* number +SURVIVED'
mutate --at "$(at 'return above'):number" --anew
check_err "--anew" 'learning host/t'
cp "$tmp/before.h" "$toy/kbench.h"
mutate --only nowhere
check_rc "an unknown section" 1
check_err "an unknown section" 'no section nowhere'
check "the header stays as it is" cmp "$toy/kbench.h" "$tmp/before.h"
finish
