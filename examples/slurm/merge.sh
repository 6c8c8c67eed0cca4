#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# merge.sh - merges the records of all tasks of sweep.sbatch, in the order of the plan, and prints the table.
#
#   sh examples/slurm/merge.sh [results] [--csv all.csv --report report ...]
#
# Writes all.json into the folder results. Uses the tool build/kbench (make tool), or another benchmark program with the
# add-on kbench_report.h: KBENCH=./suite. Reports shards without records. A shard has no record if its task has not run
# yet, or if there were fewer comparison groups than tasks.

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
