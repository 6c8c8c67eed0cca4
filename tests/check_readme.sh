#!/bin/sh
# README.md: its programs compile and run as they are printed, its commands exist, it stays short.
. tests/lib.sh

if [ ! -f README.md ]; then skip "README.md is not there" && finish; fi
lines=$(wc -l < README.md)
if [ "$lines" -le 160 ]; then pass; else fail "README.md has $lines lines, bound 160"; fi

# blocks fenced as c, c++, cpp, cuda or cu that have a main or a KBENCH_MAIN: block-N.LANGUAGE
awk -v dir="$tmp" '
    /^```/ { if (out) { close(out); out = ""; next } if ($0 == "```") { other = !other; next } lang = substr($0, 4); sub(/ .*/, "", lang)
             if (lang == "c++") lang = "cpp"; if (lang == "cuda") lang = "cu"
             if (lang ~ /^(c|cpp|cu)$/) { out = dir "/block-" ++n "." lang; printf "" > out } else { out = dir "/other-" ++n; printf "" > out } next }
    out { print > out }' README.md
programs=0
for f in "$tmp"/block-*; do
    [ -f "$f" ] || continue
    if ! grep -qE 'KBENCH_MAIN|int main' "$f"; then continue; fi
    programs=$((programs + 1))
    name="README.md, $(basename "$f")"
    case $f in
    *.c)
        check "$name compiles" $CC -std=c11 -O2 -Wall -Wextra -Werror -I. "$f" -o "$tmp/program" $libs || continue
        run "$tmp/program" --fast --no-progress
        check_rc "$name runs" 0
        ;;
    *.cpp)
        if ! have $CXX; then skip "$name: no C++ compiler" && continue; fi
        check "$name compiles" $CXX -std=c++11 -O2 -Wall -Wextra -Werror -I. "$f" -o "$tmp/program" $libs || continue
        run "$tmp/program" --fast --no-progress
        check_rc "$name runs" 0
        ;;
    *.cu)
        if [ -z "$NVCC" ]; then skip "$name: no nvcc" && continue; fi
        check "$name compiles" $NVCC -O3 $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. "$f" -o "$tmp/program" || continue
        if nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
            run "$tmp/program" --fast --no-progress
            check_rc "$name runs" 0
        else
            run "$tmp/program" --list
            check_rc "$name lists" 0
        fi
        ;;
    esac
done
if [ $programs -ge 1 ]; then pass; else fail "README.md has no program in a fence marked c, c++ or cuda"; fi

# options it names exist in --help
build "plain.c" $CC -O1 -I. tests/compile/plain.c -o "$tmp/plain" $libs
"$tmp/plain" --help > "$tmp/help"
for o in $(grep -oE '(^|[^-a-zA-Z0-9])--[a-z][-a-z]*' README.md | grep -oE -e '--[a-z][-a-z]*' | sort -u); do
    case $o in --query-gpu | --format | --recursive) continue ;; esac # other programs' options
    if grep -qE -e "$o( |,|\)|\$)" "$tmp/help"; then pass; else fail "README.md names $o, which --help does not have"; fi
done
# make targets it names exist
for t in $(grep -oE 'make [a-z][-a-z]*' README.md | sed 's/make //' | sort -u); do
    if grep -qE "^$t:" Makefile; then pass; elif grep -qE "^\.PHONY:.* $t( |\$)" Makefile; then pass; else
        case $t in sure | it | a | the | and) ;; *) fail "README.md says 'make $t', which the Makefile does not have" ;; esac
    fi
done
# files it names exist
for f in $(grep -oE '(examples|tests)/[a-zA-Z0-9_./]+[a-zA-Z0-9]' README.md | sort -u); do
    if [ -e "$f" ]; then pass; else fail "README.md names $f, which is not there"; fi
done
finish
