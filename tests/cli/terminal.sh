#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the output on a terminal: rows fit the width, the progress line disappears at the end, colours appear only
# on request, and control characters in names are escaped.
. tests/lib.sh
. tests/cli/kit.lib
unset COLUMNS NO_COLOR CLICOLOR_FORCE FORCE_COLOR LC_ALL LC_CTYPE LANG

program terminal tests/cli/terminal.c
quick="--warmup 1 --iters 5"
esc=$(printf '\033')

# --- output to a pipe has no escape sequences with any TERM, unless --color or an environment variable asks for them
TERM=xterm run "$tmp/terminal" $quick --op contest
check_not_out "a pipe: no escapes" "$esc|$(printf '\r')"
check_not_err "a pipe: no escapes, no progress" "$esc|$(printf '\r')"
# colours WHAT YES|NO OPTIONS [VARIABLE=VALUE]
colours() {
    run env $4 "$tmp/terminal" $quick --op contest -a n=1 $3
    if [ "$2" = yes ]; then check_out "$1" "$esc\\[1m.*short_one.*$esc\\[0;1;32m fastest"; else check_not_out "$1" "$esc"; fi
}
colours "--color always in a pipe" yes "--color always"
colours "--color=always and NO_COLOR" yes "--color=always" NO_COLOR=1
colours "--color auto in a pipe" no "--color auto"
colours "--color never, CLICOLOR_FORCE" no "--color never" CLICOLOR_FORCE=1
colours "CLICOLOR_FORCE" yes "" CLICOLOR_FORCE=1
colours "CLICOLOR_FORCE=0" no "" CLICOLOR_FORCE=0
colours "FORCE_COLOR" yes "" FORCE_COLOR=1
colours "FORCE_COLOR, NO_COLOR" no "" "FORCE_COLOR=1 NO_COLOR=1"
colours "FORCE_COLOR, NO_COLOR empty" yes "" "FORCE_COLOR=1 NO_COLOR="
colours "--no-color, FORCE_COLOR" no "--no-color" FORCE_COLOR=1
run "$tmp/terminal" --color sometimes
check_rc "--color sometimes" 2
check_err "--color sometimes" "takes always,auto,never, not 'sometimes'"
run "$tmp/terminal" --color always --no-color
check_rc "--color beside --no-color" 2

# --- names in messages
run "$tmp/terminal" --op "$esc[2J"
check_err "a command line's own escapes are spelled" 'unknown operation .\\x1b\[2J'
check_not_err "a command line's own escapes" "$esc"

# --- bars: ASCII in every locale
for locale in LC_ALL=en_US.UTF-8 LC_ALL=C; do
    COLUMNS=120 run env $locale "$tmp/terminal" $quick --op sweep
    check_out "$locale: bars" ' [#.]{10} '
done

# --- a terminal window
if ! have python3 || ! python3 -c 'import pty, termios' 2> /dev/null; then skip "no python3 that can open a terminal" && finish; fi
# window COLUMNS OPTION...: puts the final screen into $out, and fails on any error that terminal.py finds
window() {
    columns=$1 && shift
    run python3 tests/cli/terminal.py "$columns" TERM=xterm LANG=C.UTF-8 -- "$tmp/terminal" "$@"
    check_rc "a window of $columns: $*" 0
}
for columns in 40 60 80 100 140 200; do
    window $columns $quick --exclude slow -v
    check_out "a window of $columns: all cases" '123 cases: 121 ok, 2 failed'
    check_out "a window of $columns: a word for a number" 'VERIFY_FAIL'
done
check_out "a long name has a line of its own" '^ an_implementation_with_a_name_that_no_window_has_room_for'
window 80 --op slow,sweep --max-time 100ms --warmup 200ms
check_out "a window with progress" '13 cases: 13 ok'
window 80 --list
check_out "--list: nothing that is obeyed" 'what=\\x1b]0;title\\x07'
window 80 --list-sizes
check_out "--list-sizes: nothing that is obeyed" 'what=\\u202ertl'
run "$tmp/terminal" --list
check_out "--list in a pipe: the same" 'what=\\x1b'
finish
