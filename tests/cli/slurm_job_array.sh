#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests examples/slurm on a Slurm of one node, started here on loopback as the current user. One task of a job
# array is killed and requeued. The merged records must equal the records of a run in a single process.
. tests/lib.sh
. tests/cli/kit.lib

PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch srun squeue scancel scontrol; do
    have $program && continue
    skip "no $program (Debian: munge slurmctld slurmd slurm-client)"
    finish
done

root=$(pwd)
slurm=$(mktemp -d "${TMPDIR:-/tmp}/kbench-slurm.XXXXXX") || exit 2 # short: a socket's path has 107 characters at most
end() { # the daemons that were started here
    for pid in slurmd.pid slurmctld.pid munge/pid; do
        [ -s "$slurm/$pid" ] && kill "$(cat "$slurm/$pid")" 2> /dev/null
    done
    i=0
    while [ $i -lt 50 ] && { [ -e "$slurm/slurmd.pid" ] || [ -e "$slurm/slurmctld.pid" ]; }; do sleep 0.1 && i=$((i + 1)); done
    rm -rf "$slurm"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

mkdir -p "$slurm/state" "$slurm/spool" "$slurm/munge"
chmod 700 "$slurm/munge"
head -c 1024 /dev/urandom > "$slurm/munge/key"
chmod 600 "$slurm/munge/key"
port=$((20000 + $$ % 10000 * 2))
node=$(hostname | sed 's/\..*//')
# a requeued task waits until the credential of its first run expires
cat > "$slurm/slurm.conf" << END
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munge/socket,cred_expire=5
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
KillWait=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$node NodeAddr=127.0.0.1 CPUs=8 RealMemory=512 State=UNKNOWN
PartitionName=p Nodes=$node Default=YES State=UP
END
export SLURM_CONF="$slurm/slurm.conf"
# starts WHAT COMMAND...: a daemon; skips the test if it fails
starts() {
    what=$1 && shift
    "$@" > "$tmp/start" 2>&1 && return
    skip "$what does not start here: $(tail -n 1 "$tmp/start" | cut -c 1-160)"
    finish
}
starts munged munged --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" --pid-file="$slurm/munge/pid" \
    --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed"
starts slurmctld slurmctld
starts slurmd slurmd
i=0
while [ "$(sinfo -h -o %T 2> /dev/null)" != idle ] && [ $i -lt 100 ]; do sleep 0.1 && i=$((i + 1)); done
starts "a node" test "$(sinfo -h -o %T)" = idle

program sweep tests/cli/slurm_job_array.c
tool kbench
options="--device script --rounds 16 --warmup 1"
export RESULTS="$tmp/results" KBENCH="$tmp/kbench"

# --- the whole sweep in one process
run "$tmp/sweep" $options --no-progress --json "$tmp/whole.json"
check_rc "the whole sweep" 0
cp "$out" "$tmp/whole.txt"
"$tmp/sweep" --list > "$tmp/list"

# --- as a job array: one task is killed after its first group, and continues when it is requeued
export HELD="$RESULTS/5-of-8.jsonl" HELD_TASK=5
run sbatch --array=3-17:2 --output="$tmp/task.%a" examples/slurm/sweep.sbatch "$tmp/sweep" $options
check_rc "sbatch" 0
job=$(tr -dc 0-9 < "$out")
lines=$HELD
i=0
while [ ! -s "$lines" ] && [ $i -lt 300 ]; do sleep 0.1 && i=$((i + 1)); done
scancel --signal=KILL "${job}_5.0"
i=0
while squeue -h -r -j "${job}_5" -o %T 2> /dev/null | grep -q RUNNING && [ $i -lt 300 ]; do sleep 0.1 && i=$((i + 1)); done
cp "$lines" "$tmp/killed.jsonl"
run scontrol requeue "${job}_5"
check_rc "requeue" 0
i=0
while [ -n "$(squeue -h -r -j "$job" -o %T 2> /dev/null)" ] && [ $i -lt 600 ]; do sleep 0.2 && i=$((i + 1)); done
check_same "all tasks have ended" "$(squeue -h -r -j "$job" -o %T 2> /dev/null)" ""
# The kill may end the worker before the supervisor. The supervisor then records the waiting case as failed. Only
# the records with status ok are therefore counted as finished.
grep '"status": "ok".*}$' "$tmp/killed.jsonl" > "$tmp/finished"
kept=$(wc -l < "$tmp/finished" | tr -d ' ') all=$(wc -l < "$lines" | tr -d ' ')
if [ "$kept" -gt 0 ] && [ "$kept" -lt "$all" ]; then pass; else fail "the killed task wrote $kept of $all records; some, but not all, were expected"; fi
check_same "what was there when it was killed is kept" "$(head -n "$kept" "$lines" | cksum)" "$(cksum < "$tmp/finished")"
if grep -q "$kept of $all cases have a record" "$tmp/task.5"; then pass; else fail "the requeued task: $(tr '\n' '~' < "$tmp/task.5")"; fi
check_same "a file a task" "$(ls "$RESULTS" | wc -l | tr -d ' ')" 8
check_same "each case once" "$(cat "$RESULTS"/*.jsonl | sed 's/^{"name": "\([^"]*\)".*/\1/' | sort)" "$(sort "$tmp/list")"

# --- the merged records of all tasks equal the records of the whole sweep
run sh examples/slurm/merge.sh "$RESULTS"
check_rc "merge.sh" 0
cp "$out" "$tmp/merged.txt"
run "$KBENCH" --load "$tmp/whole.json"
check "the merged table is that of the whole sweep, loaded" cmp "$out" "$tmp/merged.txt"
check "and that of the run itself" cmp "$tmp/whole.txt" "$tmp/merged.txt"
check_same "the merged records: the plan's order" "$(sed -n 's/^{"name": "\([^"]*\)".*/\1/p' "$RESULTS/all.json")" "$(cat "$tmp/list")"
run "$KBENCH" --load "$RESULTS/all.json" --sort time
cp "$out" "$tmp/merged.txt"
run "$KBENCH" --load "$tmp/whole.json" --sort time
check "sorted, too" cmp "$out" "$tmp/merged.txt"
rm "$RESULTS/7-of-8.jsonl"
run sh examples/slurm/merge.sh "$RESULTS"
check_rc "a task has not run" 0
check_err "a task has not run" 'no record of shard 3/8'
finish
