#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Checks that the functions, tables and files that tests/README.md names exist.
. tests/lib.sh

readme=tests/README.md
words=$(wc -w < $readme | tr -d ' ')
if [ "$words" -le 1300 ]; then pass; else fail "$readme has $words words, bound 1300"; fi
check_same "functions that process a sample" "$(grep -cE '^[0-9]+\. `kbi_' $readme)" 10
for name in $(sed -nE 's/^[0-9]+\. `(kbi_[a-z_]*)`.*/\1/p' $readme); do
    if grep -qE "^[a-z].*[ *]$name\(.*\{\$" kbench.h; then pass; else fail "$readme: kbench.h defines no $name"; fi
    if [ "$(grep -c "\b$name\b" kbench.h)" -ge 2 ]; then pass; else fail "$readme: nothing in kbench.h uses $name"; fi
done
for name in $(grep -oE '`(KB|KBI)_[A-Z_]+`' $readme | tr -d '`' | sort -u); do
    if grep -q "define $name\b" kbench.h; then pass; else fail "$readme: kbench.h has no $name"; fi
done
for name in $(grep -oE '`(kb_add_[a-z]+|kbi_options)`' $readme | tr -d '`' | sort -u); do
    if grep -q "\b$name\b" kbench.h; then pass; else fail "$readme: kbench.h has no $name"; fi
done
for name in KBK_OPS KBK_TABLE; do
    if grep -q "define $name\b" kbench_kernels.cuh; then pass; else fail "$readme: kbench_kernels.cuh has no $name"; fi
done
for name in $(grep -oE '`(tests|cli|gpu|host)/[a-z_]+\.(sh|cu|c|h|py|lib)`' $readme | tr -d '`' | sort -u); do
    if [ -f "$name" ] || [ -f "tests/$name" ]; then pass; else fail "$readme names $name, which does not exist"; fi
done
for word in everything finish check_rc check_out check_err check_same; do
    if grep -qE "^$word\(\)" tests/lib.sh; then pass; else fail "$readme: tests/lib.sh has no $word"; fi
done
finish
