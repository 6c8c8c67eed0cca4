#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The layout of the headers: contents lists match the sections, sizes stay within their limits, and declarations are
# in the right section.
. tests/lib.sh

tracked=$(git ls-files -co --exclude-standard 2> /dev/null) || tracked=
[ -n "$tracked" ] || tracked=$(find . -type f ! -path './.git/*' ! -path "./$BUILD/*" ! -name results.json ! -name report.html | sed 's,^\./,,')
none() { if [ -z "$2" ]; then pass; else fail "$1: $(echo "$2" | head -n 5 | tr '\n' ';')"; fi; }

for f in kbench.h kbench_kernels.cuh; do
    if [ ! -f $f ]; then skip "$f does not exist" && continue; fi
    placed=$(awk 'open && /^  >>[a-z_]+ / { print $1 } { open = /^\/\*-----/ }' $f)
    if [ "$(echo $placed | wc -w)" -ge 5 ]; then pass; else fail "$f: fewer than 5 sections were found: $placed"; fi
    none "$f: lines over 120 columns" "$(awk 'length($0) > 120 { print FILENAME ":" NR }' $f)"
    none "$f: includes that cost seconds" "$(grep -nE '#[[:space:]]*include[[:space:]]*<(cub/|thrust/|cooperative_groups|cuda/|curand|mma\.h|vector|string>|iostream|map>|algorithm|memory>|functional|chrono|thread|mutex|array>|utility|type_traits|c(std)?[a-z]+>)' $f | grep -vE '<(ctype|cublas|cuda_)')"
    none "$f: words of unfinished work" "$(grep -nwE 'TODO|FIXME|XXX|HACK|not implemented' $f)"
    none "$f: tabs and trailing blanks" "$(grep -nE "$(printf '\t')|[[:space:]]\$" $f)"
    none "$f: fall-through comments, which nvcc drops" "$(grep -niE '/[/*] *fall[- ]?through' $f)"
    if tail -n 60 $f | grep -q 'MIT' && tail -n 60 $f | grep -qi 'public domain'; then pass; else fail "$f: no licence at the end"; fi
done

# an instruction that has a wrapper in >>asm or >>hopper must not occur in other sections
if [ -f kbench_kernels.cuh ]; then
    # written PATTERN SECTION FILE: prints matching lines outside the section
    written() { awk -v what="$1" -v home="$2" '/^  >>[a-z_]+ / { tag = $1 } tag != home && tag != "" && $0 ~ what { print tag ", line " NR }' "$3"; }
    common='__cvta_generic_to_shared|"cp\.async\.(c[ag]\.shared|commit_group|wait_group %)|"ldmatrix\.sync|"stmatrix\.sync|"mma\.sync\.aligned|"red\.global\.add\.v4\.f32 [[]|bar\.(sync|arrive|red)[. ][%o]|"ld\.shared\.v4\.u32'
    late='cluster_ctarank|cluster_nctarank|barrier\.cluster|mbarrier\.(init|arrive|try_wait)|mapa\.|"cp\.async\.bulk'
    none "kbench_kernels.cuh: an instruction of >>asm" "$(written "$common" '>>asm' kbench_kernels.cuh)"
    none "kbench_kernels.cuh: an instruction of >>hopper" "$(written "$late" '>>hopper' kbench_kernels.cuh)"
    for planted in '__device__ void again(void* p) { asm("ldmatrix.sync"); }' 'int at = (int)__cvta_generic_to_shared(p);'; do
        { cat kbench_kernels.cuh; echo "$planted"; } > "$tmp/again.cuh"
        if [ -n "$(written "$common" '>>asm' "$tmp/again.cuh")" ]; then pass; else fail "not seen: $planted"; fi
    done
fi

# contents, order of stages, calls to later stages, prefixes, size: rules in tests/layout.py
layout() { run python3 tests/layout.py "$@"; }
# found WHAT PROGRAM EXPECTED: tests/layout.py must report EXPECTED for a kbench.h edited by the awk program
# PROGRAM
found() {
    mkdir -p "$tmp/planted"
    awk "$2" kbench.h > "$tmp/planted/kbench.h"
    layout "$tmp/planted/kbench.h"
    check_rc "planted: $1" 1
    check_out "planted: $1" "$3"
}
if have python3; then
    for f in kbench.h kbench_kernels.cuh examples/addons/kbench_report.h examples/addons/kbench_inspect.h; do
        layout $f
        check_rc "python3 tests/layout.py $f: $(head -n 3 "$out" | tr '\n' ';')" 0
    done
    # before TAG TEXT: prints an awk program that inserts TEXT before the section TAG
    before() { printf '/^\\/\\*-----/ { held = $0; next } held { if (/^  >>%s /) print "%s"; print held; held = "" } { print }' "$1" "$2"; }
    found "a call to a later stage" "$(before json 'static void kbi_plan_make(int x);')" \
        '^>>fields \(foundation\) calls kbi_plan_make of >>plan \(plan\)'
    found "a later stage's public function" "$(before verdict 'static void kbi_planted(void) { kb_print(0, 0); }')" \
        '^>>[a-z_]+ \(measure\) calls kb_print of >>[a-z_]+ \(render\)'
    found "a stage that reads options" "$(before comparison 'static int kbi_planted = KBI_OPTION_json;')" \
        "^>>verdict \(judge\) reads the command line's options"
    found "stages out of order" '/^  >>registry / { sub("declare", "render") } { print }' 'is out of the order of the stages'
    found "no stage" '/^  >>plan +plan:/ { sub("plan:", "") } { print }' '>>plan: its header bears no stage'
    found "contents that lack a section" '/^    foundation / { sub(" >>stats", "") } { print }' '^contents: the list has >>spread where the file has >>stats'
    found "a macro without a prefix" "$(before verdict '#define PLANTED 1')" '^macro without a prefix: PLANTED'
    found "a file beyond its budget" '{ print; print "" }' '^size: [0-9]+ lines'
else
    skip "no python3: contents, stages, prefixes and sizes are not checked"
fi

# versions: macros, title, README
part() { sed -n "s/^#define KBENCH_VERSION_$1 \([0-9]*\)\$/\1/p" kbench.h; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
check_same "KBENCH_VERSION" "$(sed -n 's/^#define KBENCH_VERSION "\(.*\)"$/\1/p' kbench.h)" "$version"
check_same "the title's version" "$(sed -n '1s/.* v\([0-9.]*\) .*/\1/p' kbench.h)" "$version"
if [ -f kbench_kernels.cuh ]; then check_same "kbench_kernels.cuh: the title's version" "$(sed -n '1s/.* v\([0-9.]*\) .*/\1/p' kbench_kernels.cuh)" "$version"; fi
if [ -f README.md ]; then
    none "README.md names another version" "$(grep -onE 'v[0-9]+\.[0-9]+\.[0-9]+' README.md | grep -v ":v$version\$")"
fi

none "the top level holds more than the design allows" \
    "$(echo "$tracked" | cut -d/ -f1 | sort -u | grep -vxE 'kbench\.h|kbench_kernels\.cuh|examples|tests|Makefile|README\.md|\..*')"
# finds paths that exist only on one machine; the pattern does not match its own line
none "a path of one machine" "$(echo "$tracked" | xargs grep -nIE '(^|[^a-zA-Z0-9._])/(work|home|root|Users|farm|tmp/[a-z])[/_]' 2> /dev/null | grep -v '^tests/check_layout.sh')"
none "products of a build" "$(echo "$tracked" | grep -E '\.(o|obj|exe|out|a|so|ptx|cubin|fatbin|log|pyc)$|^build/|^results\.json$|^report\.html$')"
for f in $tracked; do
    case $f in *.sh | .ci/run) ;; *) continue ;; esac
    shell=$(head -n 1 "$f" | grep -o bash || echo sh)
    if have $shell; then check "$f parses" $shell -n "$f"; else skip "$f: no $shell"; fi
done
none "a test where tests/run.sh does not look" "$(find tests -name '*.sh' ! -path 'tests/host/*' ! -path 'tests/compile/*' ! -path 'tests/cli/*' ! -path 'tests/cpu/*' \
    ! -path 'tests/gpu/*' ! -path 'tests/check_*' | grep -vxE 'tests/(run|lib|compile_time|smoke_gpu)\.sh')"
finish
