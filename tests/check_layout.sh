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
    check_same "$f: the contents begin in columns" "$(awk '/^\*\//{ exit } / \*\/$/ { exit } /^ +>>[a-z_]+ / { print index($0, ">") }' $f | sort -u | wc -l | tr -d ' ')" 1
    if [ "$(echo $placed | wc -w)" -ge 5 ]; then pass; else fail "$f: hardly any section was found: $placed"; fi
    none "$f: a section does not say what is public and who uses it" "$(awk '
        /^  >>[a-z_]+ / && open { tag = $1; left = 4; public = 0 } { open = /^\/\*-----/ }
        left > 0 && /Public:.*Used by:|Public:/ { public = 1 }
        left > 0 { if (--left == 0 && !public) print tag }' $f)"
    none "$f: lines over 120 columns" "$(awk 'length($0) > 120 { print FILENAME ":" NR }' $f)"
    none "$f: includes that cost seconds" "$(grep -nE '#[[:space:]]*include[[:space:]]*<(cub/|thrust/|cooperative_groups|cuda/|curand|mma\.h|vector|string>|iostream|map>|algorithm|memory>|functional|chrono|thread|mutex|array>|utility|type_traits|c(std)?[a-z]+>)' $f | grep -vE '<(ctype|cublas|cuda_)')"
    none "$f: words of unfinished work" "$(grep -nwE 'TODO|FIXME|XXX|HACK|not implemented' $f)"
    none "$f: tabs and trailing blanks" "$(grep -nE "$(printf '\t')|[[:space:]]\$" $f)"
    none "$f: fall-through comments, which nvcc drops" "$(grep -niE '/[/*] *fall[- ]?through' $f)"
    if tail -n 60 $f | grep -q 'MIT' && tail -n 60 $f | grep -qi 'public domain'; then pass; else fail "$f: no licence at the end"; fi
done

# the kernels' instructions that have a name in >>asm, or in >>hopper, are written nowhere else
if [ -f kbench_kernels.cuh ]; then
    # written PATTERN SECTION FILE: lines outside of that section where it stands
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

# kbench.h: its stages, who uses what, and how long things are; tests/layout.py says what the rules are
layout() { run python3 tests/layout.py "$@"; }
# new EXPECTED: the last run has a line that fits and that it does not have for kbench.h as it stands
new() { sed 's/[0-9][0-9]*/N/g' "$out" | grep -vxF -f "$tmp/as_it_stands" | grep -qE -e "$1"; }
# found NAME EXPECTED: the copy with that one thing wrong is refused, and for that
found() {
    rm -f "$tmp/left/$1.h"
    layout "$tmp/planted/$1.h"
    check_rc "planted $1" 1
    if new "$2"; then pass; else fail "planted $1: no new '$2'; $(said)"; fi
}
if have python3; then
    # lengths, of the kernels: sections, functions, whatever their signatures look like, and those of structs
    if [ -f kbench_kernels.cuh ]; then
        layout kbench_kernels.cuh --sizes
        none "kbench_kernels.cuh" "$(cat "$out")"
        body=$(awk 'BEGIN { for (i = 0; i < 60; i++) print "    x++;" }')
        # sees WHAT TEXT: the kernels with that before a section have a function too long
        sees() {
            echo "$2" > "$tmp/text"
            awk -v file="$tmp/text" '/^\/\*-----/ { held = $0; next }
                held { if (/^  >>rows /) while ((getline line < file) > 0) print line; print held; held = "" } { print }' \
                kbench_kernels.cuh > "$tmp/planted.cuh"
            layout "$tmp/planted.cuh" --sizes
            check_out "a long function, $1" '^kbki_planted, line [0-9]+, has 6[0-9] lines'
        }
        sees "its parameters on two lines" "template <class T>
__global__ void __launch_bounds__(256)
    kbki_planted(T x,
                 int y) {
$body
}"
        sees "with a default among the template's" "template <class T, int Lanes = (2 > 1 ? 32 : 8)> __device__ void kbki_planted(T x) {
$body
}"
        sees "of a struct" "template <class T> struct kbki_holds {
    static constexpr int lanes = 32;
    __device__ __forceinline__ void kbki_planted(T x) const {
$body
    }
};"
    fi

    layout kbench.h
    sed 's/[0-9][0-9]*/N/g' "$out" > "$tmp/as_it_stands"
    echo >> "$tmp/as_it_stands" # grep -f takes an empty file for no pattern, or for any
    if [ "$rc" -eq 0 ] && [ ! -s "$out" ]; then pass; else
        fail "python3 tests/layout.py kbench.h: $(grep -c '^[^ ]' "$out") lines: $(cat "$out" "$err" | grep '^[^ ]' |
            cut -c 1-160 | head -n 5 | tr '\n' ';')"
    fi

    layout kbench.h --plant "$tmp/planted"
    check_rc "planting" 0
    cp -r "$tmp/planted" "$tmp/left"
    s='>>[a-z_]+ '
    found measure_reads_option "^$s\(measure\) reads the command line's options: kbi_options, line N in kbi_planted"
    found record_reads_option "^$s\(record\) reads the command line's options: KBI_OPTION_json, line N in kbi_planted"
    found render_calls_judge "^$s\(render\) calls kbi_[a-zA-Z_]+ of $s\(judge\), line N in kbi_planted"
    found judge_calls_render "^$s\(judge\) calls kbi_[a-zA-Z_]+ of $s\(render\), line N in kbi_planted"
    found declare_calls_plan "^$s\(declare\) calls kbi_[a-zA-Z_]+ of $s\(plan\), line N in kbi_planted"
    found judge_declares_render "^$s\(judge\) declares kbi_[a-zA-Z_]+ of $s\(render\), line N"
    found judge_uses_type_of_plan "^$s\(judge\) uses kbi_planned of $s\(plan\), line N in kbi_planted"
    found render_measures "^$s\(render\) calls kbi_[a-zA-Z_]+ of $s\(measure\), .*kbi_planted \(through KB_TIME\)"
    found used_by_names_stranger '"Used by:" names >>[a-z_]+, which uses nothing of it; right is'
    found used_by_lacks_user '"Used by:" lacks >>'
    found used_by_unknown_word '"Used by:" says "whoever likes it"'
    found used_by_not_everything '"Used by:" says everything after it: of the N later sections N use it'
    found public_names_stranger '"Public:" names kb_planted, which it does not define'
    found public_lacks_function '"Public:" .*lacks kb_planted'
    found no_stage_word "bears no stage's word"
    found stages_out_of_order 'out of the order of the stages'
    found contents_other_stage '^>>[a-z_]+: the contents say judge, its header says render'
    found contents_out_of_order '^the contents have >>[a-z_]+ where the file has >>'
    found contents_lack_section '^the contents lack >>'
    found untagged '^untagged: kbi_planted, line N, stands between'
    found long_section '^>>[a-z_]+ has N lines'
    found long_function '^kbi_planted, line N, has N lines'
    found long_api '^the API half ends at line N'
    found open_brace 'a declaration does not end'
    none "planted, and not asked for here" "$(ls "$tmp/left")"

    # --fix touches headers alone, leaves nothing to be fixed, and has then nothing to do
    cp kbench.h "$tmp/fixed.h"
    layout "$tmp/fixed.h" --fix --public
    check_not_out "--fix leaves what it mends" '"(Public|Used by):"'
    cp "$tmp/fixed.h" "$tmp/again.h"
    layout "$tmp/again.h" --fix --public
    check "--fix twice" cmp "$tmp/fixed.h" "$tmp/again.h"
    none "--fix changes more than headers" "$(diff kbench.h "$tmp/fixed.h" | grep '^[<>]' | grep -vE '^[<>] {15}')"
    cp "$tmp/planted/used_by_lacks_user.h" "$tmp/mended.h"
    layout "$tmp/mended.h" --fix
    if new '"Used by:" lacks'; then fail "--fix: $(said)"; else pass; fi
else
    skip "no python3: stages, who uses what, and lengths in kbench.h are not looked at"
fi

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
none "a test where tests/run.sh does not look" "$(find tests -name '*.sh' ! -path 'tests/host/*' ! -path 'tests/compile/*' ! -path 'tests/cli/*' ! -path 'tests/cpu/*' \
    ! -path 'tests/gpu/*' ! -path 'tests/check_*' | grep -vxE 'tests/(run|lib|compile_time)\.sh')"
finish
