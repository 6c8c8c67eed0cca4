#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The shape of the sources: contents and tags agree, nothing grows past its bound, nothing stands where it should not.
. tests/lib.sh

tracked=$(git ls-files -co --exclude-standard 2> /dev/null) || tracked=
[ -n "$tracked" ] || tracked=$(find . -type f ! -path './.git/*' ! -path "./$BUILD/*" ! -name results.json ! -name report.html | sed 's,^\./,,')
# none WHAT LINES: fails with the lines where there are any
none() { if [ -z "$2" ]; then pass; else fail "$1: $(echo "$2" | head -n 5 | tr '\n' ';')"; fi; }

for f in kbench.h kbench_kernels.cuh; do
    if [ ! -f $f ]; then skip "$f is not there" && continue; fi
    # tags of the contents list: lines "    >>tag   text" before the end of the first comment; tags of the sections:
    # lines "  >>tag" right after the opening ruler
    listed=$(awk '/^\*\//{ exit } / \*\/$/ { exit } /^ +>>[a-z_]+ / { print $1 }' $f)
    placed=$(awk 'open && /^  >>[a-z_]+ / { print $1 } { open = /^\/\*-----/ }' $f)
    check_same "$f: contents and sections" "$(echo $placed)" "$(echo $listed)"
    if [ "$(echo $placed | wc -w)" -ge 5 ]; then pass; else fail "$f: hardly any section was found: $placed"; fi
    none "$f: a section does not say what is public and who uses it" "$(awk '
        /^  >>[a-z_]+ / && open { tag = $1; left = 4; public = 0 } { open = /^\/\*-----/ }
        left > 0 && /Public:.*Used by:|Public:/ { public = 1 }
        left > 0 { if (--left == 0 && !public) print tag }' $f)"
    none "$f: sections over 500 lines" "$(awk '
        open && /^  >>[a-z_]+ / { if (tag && tag != ">>ptx" && NR - from > 500) print tag, NR - from; tag = $1; from = NR } { open = /^\/\*-----/ }
        END { if (tag && NR - from > 560) print tag, NR - from }' $f)" # the last holds the licence too
    # a function: a line at the margin that ends with "{" and has a "(", to the line "}"
    none "$f: functions over 60 lines" "$(awk '
        /^[A-Za-z_].*[({].*\{$/ && !/^(typedef|struct|enum|union|namespace|extern)/ { name = $0; from = NR }
        /^}/ { if (name && NR - from + 1 > 60) print NR - from + 1 " lines: " name; name = "" }' $f)"
    none "$f: lines over 120 columns" "$(awk 'length($0) > 120 { print FILENAME ":" NR }' $f)"
    none "$f: includes that cost seconds" "$(grep -nE '#[[:space:]]*include[[:space:]]*<(cub/|thrust/|cooperative_groups|cuda/|curand|mma\.h|vector|string>|iostream|map>|algorithm|memory>|functional|chrono|thread|mutex|array>|utility|type_traits|c(std)?[a-z]+>)' $f | grep -vE '<(ctype|cublas|cuda_)')"
    none "$f: words of unfinished work" "$(grep -nwE 'TODO|FIXME|XXX|HACK|not implemented' $f)"
    none "$f: tabs and trailing blanks" "$(grep -nE "$(printf '\t')|[[:space:]]\$" $f)"
    none "$f: fall-through comments, which nvcc drops" "$(grep -niE '/[/*] *fall[- ]?through' $f)"
    if tail -n 60 $f | grep -q 'MIT' && tail -n 60 $f | grep -qi 'public domain'; then pass; else fail "$f: no licence at the end"; fi
done

# the API half: up to the line that says so
stop=$(grep -n 'Stop here if you only want the API' kbench.h | tail -n 1 | cut -d: -f1)
if [ -n "$stop" ] && [ "$stop" -le 900 ]; then pass; else fail "kbench.h: the API half ends at line '$stop', bound 900"; fi

# versions: macros, title, README
part() { sed -n "s/^#define KBENCH_VERSION_$1 \([0-9]*\)\$/\1/p" kbench.h; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
check_same "KBENCH_VERSION" "$(sed -n 's/^#define KBENCH_VERSION "\(.*\)"$/\1/p' kbench.h)" "$version"
check_same "the title's version" "$(sed -n '1s/.* v\([0-9.]*\) .*/\1/p' kbench.h)" "$version"
check_same "the newest revision" "$(awk '/^LAST REVISIONS/ { on = 1; next } on && NF { print $1; exit }' kbench.h)" "$version"
if [ -f kbench_kernels.cuh ]; then check_same "kbench_kernels.cuh: the title's version" "$(sed -n '1s/.* v\([0-9.]*\) .*/\1/p' kbench_kernels.cuh)" "$version"; fi
if [ -f README.md ]; then
    none "README.md names another version" "$(grep -onE 'v[0-9]+\.[0-9]+\.[0-9]+' README.md | grep -v ":v$version\$")"
fi

none "the top level holds more than the design allows" \
    "$(echo "$tracked" | cut -d/ -f1 | sort -u | grep -vxE 'kbench\.h|kbench_kernels\.cuh|examples|tests|Makefile|README\.md|\..*')"
# a path of one machine, spelt so that this line does not match itself
none "a path of one machine" "$(echo "$tracked" | xargs grep -nIE '(^|[^a-zA-Z0-9._])/(work|home|root|Users|farm|tmp/[a-z])[/_]' 2> /dev/null | grep -v '^tests/check_layout.sh')"
none "products of a build" "$(echo "$tracked" | grep -E '\.(o|obj|exe|out|a|so|ptx|cubin|fatbin|log|pyc)$|^build/|^results\.json$|^report\.html$')"
for f in $tracked; do
    case $f in *.sh | .ci/run) ;; *) continue ;; esac
    shell=$(head -n 1 "$f" | grep -o bash || echo sh)
    if have $shell; then check "$f parses" $shell -n "$f"; else skip "$f: no $shell"; fi
done
# every test is picked up by the runner: nothing stands where it would not look
none "a test where tests/run.sh does not look" "$(find tests -name '*.sh' ! -path 'tests/host/*' ! -path 'tests/compile/*' ! -path 'tests/cli/*' \
    ! -path 'tests/gpu/*' ! -path 'tests/check_*' | grep -vxE 'tests/(run|lib|compile_time)\.sh')"
finish
