#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Every file of examples/ and tests/ that can hold a comment has an SPDX license line in its first two lines.
. tests/lib.sh

line='SPDX-License-Identifier: MIT OR Unlicense'
n=0
for f in $(find examples tests -type f ! -path 'tests/evidence/*' ! -path 'tests/fixtures/*' | sort); do
    case $f in
    *.c | *.h | *.cu | *.cuh | *.cpp | *.js) comment='// ' ;;
    *.sh | *.lib | *.py | *.awk | *.sbatch | *.toml) comment='# ' ;;
    *) continue ;;
    esac
    n=$((n + 1))
    case $f in examples/addons/*.h) comment='   ' line='MIT or public domain, as you choose; both texts stand at the end of kbench.h.' ;; *) line='SPDX-License-Identifier: MIT OR Unlicense' ;; esac
    if head -n 2 "$f" | grep -qxF "$comment$line"; then pass; else fail "$f: '$comment$line' is on neither of its first two lines"; fi
done
if [ $n -ge 40 ]; then pass; else fail "only $n files were found"; fi
for f in $(find examples tests -type f ! -path 'tests/evidence/*' ! -path 'tests/fixtures/*' ! -path '*/__pycache__/*'); do
    case $f in *.c | *.h | *.cu | *.cuh | *.cpp | *.sh | *.lib | *.py | *.awk | *.js | *.sbatch | *.toml | *.md) ;; *) fail "$f: this test does not know the kind of the file" ;; esac
done
finish
