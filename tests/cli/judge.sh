#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The judge for Python functions: planted tricks are found, honest functions pass. PYTHON is the interpreter.
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null; then
    skip "no Python from 3.8 on ($PYTHON)"
    finish
fi
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE CC
unset KBENCH_H KBENCH_LIB KBENCH_NO_CUDA CFLAGS

run "$PYTHON" tests/cli/python/judge.py tricks honest others arrays
grep '^FAIL: ' "$out" | sed "s/^FAIL: /FAIL: $me: /"
grep -q '^SKIP: ' "$out" && skip "$(sed -n 's/^SKIP: //p' "$out")"
last=$(tail -n 1 "$out")
case $last in
*" passed, "*" failed")
    passed=${last%% passed*} last=${last#*passed, }
    failed=${last%% failed*}
    ;;
*) fail "ended early; $(said)" ;;
esac
finish
