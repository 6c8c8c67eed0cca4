#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# tests/gpu/peers.py without a GPU: scripts stand in for the programs and modules, and write invented times in the
# formats of kbench and of nvbench's JSON (1.0.0).
# only in make test-all
. tests/lib.sh

if ! have python3; then
    skip "no python3"
    finish
fi
py=$(command -v python3)
# kbench: the true times are 10, 20 and 40 us; the medians are 0.05 us longer, except for one kernel
cat > "$tmp/accuracy" << EOT2
#!$py
import json, os, sys
args = sys.argv[1:]
times = {"spin/impl=one/cycles=500": 0.010, "copy/impl=one/kib=16": 0.020, "shared_memory/impl=default": 0.040}
own = 0 if "cupti" in args else 0.00005
if "-a" in args:
    first, last, step = args[args.index("-a") + 1].replace("kib=", "").replace("+", "").split(":")
    times = {"copy/impl=one/kib=%d" % k: 0.001 for k in range(int(first), int(last) + 1, int(step))}
records = [{"name": n, "time_ms": t + own * (20 if "shared" in n else 1), "samples": 30, "precision": 0.001, "flags": [],
            "wall_ms": 100, "gpu": "Some GPU", "driver": "580.1", "cuda": "13.0", "date": "2026-11-22T00:00:00Z",
            "message": None} for n, t in times.items()]
if os.environ.get("NO_CUPTI") and "cupti" in args:
    for r in records: r.update(time_ms=None, message="--timer cupti: libcupti.so is not found")
json.dump(records, open(args[args.index("--json") + 1], "w"))
EOT2
# nvbench: times are 2 us too long (3 us with default options), and 1 us more in every second process
cat > "$tmp/peers_nvbench" << EOT2
#!$py
import json, os, sys
args = sys.argv[1:]
cases = [("spin", "cycles", 500, 10), ("copy", "kib", 16, 20), ("shared_memory", None, 0, 40)]
if "-b" in args and args[args.index("-b") + 1] == "shared_memory": cases = cases[2:]
if "-a" in args: cases = [("copy", "kib", int(k), 4) for k in args[args.index("-a") + 1][5:-1].split(",")]
count = "$tmp/nvbench.count"
n = int(open(count).read()) if os.path.exists(count) else 0
open(count, "w").write(str(n + 1))
more = (2 if "--no-batch" in args else 3) + n % 2
benchmarks = {}
for name, axis, value, us in cases:
    def summary(tag, value, kind="float64"):
        return {"tag": tag, "name": "x", "data": [{"name": "value", "type": kind, "value": str(value)}]}
    state = {"name": "Device=0", "axis_values": [{"name": axis, "type": "int64", "value": str(value)}] if axis else None,
             "summaries": [summary("nv/cold/sample_size", 1000, "int64"), summary("nv/cold/walltime", 0.1),
                           summary("nv/cold/time/gpu/mean", (us + more + 0.5) * 1e-6),
                           summary("nv/cold/time/gpu/median", (us + more) * 1e-6),
                           summary("nv/cold/time/gpu/stdev/relative", 0.02), summary("nv/batch/walltime", 0.5),
                           {"tag": "nv/json/bin:nv/cold/sample_times", "data":
                            [{"name": "filename", "type": "string", "value": "x/0.bin"}]}], "is_skipped": False}
    benchmarks.setdefault(name, {"name": name, "states": []})["states"].append(state)
version = {"string": "0.1.0", "git_sha": "0123456789abcdef"}
json.dump({"meta": {"version": {"nvbench": version}}, "benchmarks": list(benchmarks.values())},
          open(args[args.index("--json") + 1], "w"))
EOT2
chmod +x "$tmp/accuracy" "$tmp/peers_nvbench"
# do_bench: times are always 4 us too long; the fake module torch has a CUDA stream
mkdir -p "$tmp/modules/triton"
cat > "$tmp/modules/torch.py" << 'EOT2'
class _Stream:
    cuda_stream = 4096
class cuda:
    is_available = staticmethod(lambda: True)
    current_stream = staticmethod(lambda: _Stream)
EOT2
: > "$tmp/modules/triton/__init__.py"
cat > "$tmp/modules/triton/testing.py" << 'EOT2'
def do_bench(fn, warmup=25, rep=100, return_mode="mean"):
    return (4 + {1: 10, 2: 20, 3: 40}[fn()]) / 1000 if return_mode == "median" else -1
EOT2
cat > "$tmp/library.c" << 'EOT2'
static int now; // 1 to 3, negative while it is only tried
static const char* const names[] = { "spin/impl=one/cycles=500", "copy/impl=one/kib=16", "shared_memory/impl=default", 0 };
const char* peers_name(int i) { return names[i]; }
int peers_open(int i) { return now = -(i + 1), 0; }
int peers_launch(void* stream) { return now < 0 ? (now = -now, stream != (void*)4096) : now; }
EOT2
build "library.c" $CC -shared -fPIC "$tmp/library.c" -o "$tmp/library.so"

peers() { env PYTHONPATH="$tmp/modules" NVBENCH_PROGRAM="$tmp/peers_nvbench" PEERS_LIBRARY="$tmp/library.so" python3 tests/gpu/peers.py "$tmp/accuracy" "$tmp/out.json" "$@"; }
run peers --rounds 4
check_rc "peers.py" 0
check_not_out "nothing is left out" 'left out'
check_out "the truth first" '^truth by CUPTI [0-9.]+ s$'
check_out "nvbench by its defaults" '^nvbench with default options took [0-9.]+ s; [0-9]+ s since the start$'
check_out "a round with all" '^round 1: .*do_bench [0-9.]+ s'
if grep '^round 2:' "$out" | grep -q do_bench; then fail "do_bench in every round"; else pass; fi
check_out "a line of the table" '^spin/cycles=500 +10\.000 \| +10\.050 +0\.000 +0\.00  \| +12\.500 +1\.000 +8\.00\* \|'
check_out "by default" '^shared_memory +40\.000 \|.* 44\.000 +0\.000 +0\.00  \|$'
check_out "kbench: two right" '^kbench median +spread within .*: +3 of 3; median within .* of CUPTI: +2 of 3, mean error +1\.1 %$'
check_out "nvbench: none, and wide" '^nvbench median +spread within .*: +0 of 3; .* of CUPTI: +0 of 3, mean error +14\.6 %; kbench.s spread no wider: 3 of 3$'
check_out "do_bench" '^do_bench median +spread .*: +3 of 3; .* of CUPTI: +0 of 3, mean error +23\.3 %'
check_out "one process" '^nvbench default +one process; median within .* of CUPTI: +0 of 3'
check_out "the wall" '^median run time of a process in s: kbench [0-9.]+, nvbench [0-9.]+, do_bench [0-9.]+; nvbench options: --timeout 0.1 --no-batch; total [0-9]+ s$'
check "the record" python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["truth"]["spin/impl=one/cycles=500"] == 10 and r["rounds"] == 4 and len(r["runs"]) == 5
assert "nvbench 0.1.0 01234567, Some GPU, driver 580.1, CUDA 13.0, 2026-11-22" in r["what"], r["what"]
assert r["runs"][1]["meta"]["nvbench"]["samples"]["copy/impl=one/kib=16"] == 1000' "$tmp/out.json"

run peers --sweep --full "--timeout 0.1"
check_rc "--sweep" 0
check_out "kbench sweeps all" '^kbench with default options: 200 cases in [0-9.]+ s$'
check_out "nvbench a twentieth" '^nvbench with default options: 10 cases in .* times as long as kbench$'
check_out "--full" '^nvbench with --timeout 0.1: 200 cases in '
check "its record" python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert [c["kib"] for c in r["nvbench_part"]] == list(range(16, 3201, 320)), r["nvbench_part"]
assert len(r["kbench"]) == len(r["nvbench_full"]) == 200 and r["nvbench_part"][0]["batch_s"] == 0.5' "$tmp/out.json"

run env -u NVBENCH -u NVBENCH_PROGRAM PYTHONPATH="$tmp/none" python3 tests/gpu/peers.py "$tmp/accuracy" "$tmp/out.json" --rounds 2
check_rc "no peer" 0
check_out "no nvbench" '^nvbench is left out: NVBENCH=DIR does not name a checkout of nvbench'
check_out "kbench alone" '^kbench median '
check_not_out "of peers nothing" '^nvbench (median|default)'
run env NVBENCH="$tmp" python3 tests/gpu/peers.py "$tmp/accuracy" "$tmp/out.json" --rounds 2
check_out "no checkout" "^nvbench is left out: .* is not a checkout of nvbench"
mkdir -p "$tmp/checkout" && echo 'message(FATAL_ERROR "of no use")' > "$tmp/checkout/CMakeLists.txt"
run env NVBENCH="$tmp/checkout" BUILD="$tmp" python3 tests/gpu/peers.py "$tmp/accuracy" "$tmp/out.json" --rounds 2
check_rc "a checkout that does not build" 0
check_out "a checkout that does not build" '^nvbench is left out: cmake (is not found|-S failed: )'
NO_CUPTI=1 run peers --rounds 2
check_rc "no truth" 1
check_err "no truth" 'libcupti.so is not found'
run peers --rounds 1
check_rc "one round has no spread" 2
finish
