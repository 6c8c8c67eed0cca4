#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# merge.sh - what the tasks of sweep.sbatch left, put together in the order of the plan, and shown.
#
#   sh examples/slurm/merge.sh [results] [--csv all.csv --report report ...]
#
# Writes all.json into the folder of results. It takes the tool (make tool, or KBENCH=PATH); every benchmark program
# does as well: KBENCH=./suite. It says which shards have left no record: their tasks have not run yet, or there were
# fewer comparison groups than tasks.

results=results
case ${1--} in
-*) ;;
*) results=$1 && shift ;;
esac
set -- "$results"/*-of-*.jsonl --json "$results/all.json" "$@"
[ -e "$1" ] || {
    echo "merge.sh: no file $1" >&2
    exit 2
}
exec "${KBENCH:-build/kbench}" --load "$@"
