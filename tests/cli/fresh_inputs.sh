#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --fresh: kernels that return stored results get a flag, and kernels that compute their results keep their
# time.
. tests/lib.sh
. tests/cli/kit.lib

program fresh tests/cli/fresh_inputs.c -O2
reader
# of NAME KEY: prints a value of the record, as JSON
of() { awk -F'\t' -v name="\"$1\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
# notes NAME: prints the notes without those of kbench itself
notes() { of "$1" message | sed -E 's/; (other programs|the hypervisor|the mean is)[^"]*//'; }
measure() { # OPTIONS: leaves the records in flat.txt
    run "$tmp/fresh" --fast "$@" --json "$tmp/fresh.json"
    "$tmp/flat" "$tmp/fresh.json" > "$tmp/flat.txt"
}
wrong() { # NAME FLAG MESSAGE
    check_same "$1: status" "$(of "$1" status)" '"failed"'
    check_same "$1: no number" "$(of "$1" time_ms)" null
    case $(of "$1" flags) in *"\"$2\""*) pass ;; *) fail "$1: flags $(of "$1" flags), not $2" ;; esac
    case $(of "$1" message) in *"$3"*) pass ;; *) fail "$1: message $(of "$1" message), not $3" ;; esac
}
right() { # NAME
    check_same "$1: status" "$(of "$1" status)" '"ok"'
    check_same "$1: verified" "$(of "$1" verified)" true
}
measure
check_rc "without --fresh nobody sees it" 0
for name in caches caches_half caches_later filled constant; do right $name/impl=default; done
check_same "without --fresh: one seed" "$(notes honest/impl=default)" '"seed 42"'
memory=$(of honest/impl=default host_memory_mb)

measure --fresh
check_rc "--fresh" 1
for name in honest/impl=default in_place/impl=default adds_up/impl=default other_size/impl=default rivals/impl=plain rivals/impl=other; do right $name; done
check_same "three seeds, the outputs still there" "$(notes honest/impl=default)" '"seed 42; seed 43; what was there; seed 44"'
check_same "amounts are those of the inputs that were timed" "$(of honest/impl=default bytes)" 1042
check_same "no more memory than without" "$(of honest/impl=default host_memory_mb)" "$memory"
wrong caches/impl=default STALE "with fresh inputs (seed 43) before the samples"
wrong caches_half/impl=default VERIFY_FAIL "with fresh inputs (seed 43) before the samples"
wrong caches_later/impl=default STALE "with fresh inputs (seed 44) after the samples"
wrong rivals/impl=caches_later STALE "with fresh inputs (seed 44) after the samples"
wrong filled/impl=default STALE "with fresh inputs (seed 43) before the samples"
wrong filled_by_hand/impl=default STALE "with fresh inputs (seed 43)"
wrong constant/impl=default VERIFY_FAIL "(seed 43) before the samples; compute the expected values from these inputs"
check_same "nobody checks: as ever" "$(of unchecked/impl=default status) $(of unchecked/impl=default verified) $(notes unchecked/impl=default)" '"ok" null "seed 42"'
case $(of unchecked/impl=default flags) in *UNVERIFIED*) pass ;; *) fail "unchecked: flags $(of unchecked/impl=default flags)" ;; esac
check_same "not checked with each: not verified" "$(of checked_once/impl=default status) $(of checked_once/impl=default verified)" '"ok" null'
check_same "the one who remembers has no speedup" "$(of rivals/impl=caches_later speedup)" null

measure --fresh --seed 7 --op caches --no-isolate
wrong caches/impl=default STALE "with fresh inputs (seed 8)"
run "$tmp/fresh" --fresh --no-verify
check_rc "--fresh --no-verify" 2
check_err "--fresh --no-verify" "exclude each other"
finish
