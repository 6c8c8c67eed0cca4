# SPDX-License-Identifier: MIT OR Unlicense
"""Compares kbench with nvbench and Triton's do_bench: the kernels of accuracy.cu with a cold cache, in new processes.

    NVBENCH=DIR python3 tests/gpu/peers.py build/accuracy OUT.json [--rounds 10]
    NVBENCH=DIR python3 tests/gpu/peers.py build/accuracy OUT.json --sweep [--full "OPTIONS"]

The first command compares the medians of each harness with CUPTI's durations, and prints how much the medians
differ between processes. nvbench runs once with its default options, which takes minutes, then in every round with
--timeout 0.1 --no-batch (or --nvbench-options). do_bench runs with its default options, in every second round,
because it starts slowly. The second command (--sweep) times 200 copies of different sizes. kbench times all copies
with its default options; nvbench times every twentieth copy with its default options. With --full, nvbench also
times all copies with the given options.

NVBENCH is the folder of a checkout of nvbench. cmake builds nvbench together with tests/gpu/peers.cu, and
downloads the dependencies of nvbench. NVBENCH_PROGRAM is a program that was already built from nvbench and
peers.cu. PEERS_LIBRARY is peers.cu as a shared library; by default NVCC builds it. do_bench needs torch and triton
in the Python that runs this script."""
import argparse
import ctypes
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "build")
CMAKE = """cmake_minimum_required(VERSION 3.30.4)
project(peers LANGUAGES CUDA CXX)
add_subdirectory("{nvbench}" nvbench)
add_executable(peers_nvbench "{here}/peers.cu")
target_compile_definitions(peers_nvbench PRIVATE PEERS_NVBENCH)
target_link_libraries(peers_nvbench PRIVATE nvbench::main)
"""
PEERS = ("kbench median", "nvbench median", "nvbench mean", "do_bench median", "nvbench default")
SWEEP = range(16, 3201, 16)


def do_bench_child(library):
    import torch
    from triton.testing import do_bench
    lib = ctypes.CDLL(os.path.abspath(library))
    lib.peers_name.restype = ctypes.c_char_p
    times, i = {}, 0
    while lib.peers_name(i):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if lib.peers_open(i) or lib.peers_launch(stream):
            sys.exit("%s does not run" % lib.peers_name(i).decode())
        times[lib.peers_name(i).decode()] = 1000 * do_bench(lambda: lib.peers_launch(stream), return_mode="median")
        i += 1
    json.dump(times, sys.stdout)


def last_line(text):
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["no word why"])[-1]


def built(commands, program):
    for command in commands:
        if not shutil.which(command[0]):
            return None, "%s is not found" % command[0]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return None, "%s failed: %s" % (" ".join(command[:2]), last_line(done.stdout))
    return program, None


def find_nvbench():
    if os.environ.get("NVBENCH_PROGRAM"):
        return os.environ["NVBENCH_PROGRAM"], None
    checkout = os.environ.get("NVBENCH", "")
    if not os.path.exists(os.path.join(checkout, "CMakeLists.txt")) or not checkout:
        return None, ("NVBENCH=DIR does not name a checkout of nvbench" if not checkout else
                      f"{checkout} is not a checkout of nvbench")
    folder = os.path.join(BUILD, "nvbench")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
        f.write(CMAKE.format(nvbench=os.path.abspath(checkout), here=HERE))
    into = os.path.join(folder, "build")
    return built([["cmake", "-S", folder, "-B", into, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CUDA_ARCHITECTURES=native",
                   "-DNVBench_ENABLE_EXECUTABLES=OFF"],
                  ["cmake", "--build", into, "--target", "peers_nvbench", "-j", str(os.cpu_count() or 1)]],
                 os.path.join(into, "peers_nvbench"))


def find_do_bench():
    look = "import torch, triton.testing, sys; sys.exit(not torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", look], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None, last_line(done.stderr) if done.stderr.strip() else "torch sees no GPU"
    if os.environ.get("PEERS_LIBRARY"):
        return os.environ["PEERS_LIBRARY"], None
    library = os.path.join(BUILD, "peers.so")
    nvcc = os.environ.get("NVCC") or "nvcc"
    return built([[nvcc, "-O3", "-arch=native", "-shared", "-Xcompiler", "-fPIC", os.path.join(HERE, "peers.cu"), "-o",
                   library]], library)


def run(command):
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall = time.monotonic() - began
    return done, wall


def kbench(program, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kbench.json")
        done, wall = run([program, "--no-progress", "--json", path, *options])
        if not os.path.exists(path):
            sys.exit("%s left no record (exit code %d): %s" % (program, done.returncode, last_line(done.stderr)))
        with open(path) as f:
            return json.load(f), wall


def nvbench(program, *options):
    """Returns a dictionary, the duration of the run in seconds, and nvbench's version. The dictionary has the
    summaries of each case under the name that kbench gives the case."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nvbench.json")
        done, wall = run([program, "--json", path, *options])
        if done.returncode or not os.path.exists(path):
            sys.exit("%s failed (exit code %d): %s" % (program, done.returncode, last_line(done.stderr + done.stdout)))
        with open(path) as f:
            root = json.load(f)
    states = {}
    for benchmark in root["benchmarks"]:
        for state in benchmark["states"] or []:
            axes = ["%s=%s" % (a["name"], a["value"]) for a in state["axis_values"] or []]
            name = "/".join([benchmark["name"], "impl=one" if axes else "impl=default"] + axes)
            states[name] = {s["tag"]: float(d["value"]) for s in state["summaries"] or [] for d in s.get("data", [])
                            if d["name"] == "value" and d["type"] != "string"}
    version = root["meta"]["version"]["nvbench"]
    return states, wall, "nvbench %s %s" % (version["string"], version["git_sha"][:8])


def microseconds(states, what):
    tag = "nv/cold/time/gpu/" + what
    return {name: 1e6 * s[tag] for name, s in states.items() if tag in s}


def machine(records):
    r = records[0]
    return "%s, driver %s, CUDA %s, %s" % (r["gpu"], r["driver"], r["cuda"], r["date"][:10])


def measure(program, peers, options, by_default):
    names = [p for p in ("kbench", "nvbench", "do_bench") if p in peers]
    random.shuffle(names)
    times, meta = {}, {}
    for name in names:
        if name == "kbench":
            records, wall = kbench(program)
            times["kbench median"] = {r["name"]: 1000 * r["time_ms"] for r in records if r["time_ms"]}
            meta[name] = {"wall_s": wall, "samples": {r["name"]: r["samples"] for r in records},
                          "flags": {r["name"]: r["flags"] for r in records}}
        elif name == "nvbench":
            states, wall, _ = nvbench(peers[name], *([] if by_default else options))
            times["nvbench default" if by_default else "nvbench median"] = microseconds(states, "median")
            if not by_default:
                times["nvbench mean"] = microseconds(states, "mean")
            meta[name] = {"wall_s": wall, "samples": {n: s.get("nv/cold/sample_size") for n, s in states.items()},
                          "noise": {n: s.get("nv/cold/time/gpu/stdev/relative") for n, s in states.items()}}
        else:
            done, wall = run([sys.executable, os.path.abspath(__file__), "--do-bench-child", peers[name]])
            if done.returncode:
                sys.exit("do_bench failed: " + last_line(done.stderr))
            times["do_bench median"] = json.loads(done.stdout)
            meta[name] = {"wall_s": wall}
    return {"times": times, "meta": meta}


def bar(us):
    return max(0.15, 0.01 * us)


def column(runs, peer, name):
    return [r["times"][peer][name] for r in runs if name in r["times"].get(peer, {})]


def table(truth, runs, rounds):
    shown = [p for p in PEERS if any(p in r["times"] for r in runs)]
    print("\ntimes in us from %d rounds of new processes; med: median, spr: max - min, *: spr above max(1 %%, 0.1 us)"
          % rounds)
    print("%-25s %8s |" % ("", "CUPTI") + " |".join(p.center(26) for p in shown) + " |")
    print("%-25s %8s |" % ("kernel", "truth") + " |".join("%10s%8s%7s " % ("med", "spr", "%") for _ in shown) + " |")
    for name in truth:
        line = "%-25s %8.3f |" % (name.replace("/impl=one", "").replace("/impl=default", ""), truth[name])
        for peer in shown:
            us = column(runs, peer, name)
            if not us:
                line += "%26s |" % "no number"
                continue
            median, spread = statistics.median(us), max(us) - min(us)
            wide = spread > max(0.01 * median, 0.1)
            line += "%10.3f%8.3f%7.2f%s |" % (median, spread, 100 * spread / median, "*" if wide else " ")
        print(line)
    spread = {p: {n: max(column(runs, p, n)) - min(column(runs, p, n)) for n in truth if column(runs, p, n)}
              for p in shown}
    for peer in shown:
        medians = {n: statistics.median(column(runs, peer, n)) for n in spread[peer]}
        if not medians:
            print("%-16s no median (nvbench reports medians since 2026)" % peer)
            continue
        tight = sum(spread[peer][n] <= max(0.01 * us, 0.1) for n, us in medians.items())
        right = sum(abs(us - truth[n]) <= bar(truth[n]) for n, us in medians.items())
        error = statistics.mean(abs(us - truth[n]) / truth[n] for n, us in medians.items())
        line = "%-16s spread within max(1 %%, 0.1 us): %2d of %d; " % (peer, tight, len(truth))
        if len([r for r in runs if peer in r["times"]]) < 2:
            line = "%-16s one process; " % peer
        line += "median within max(0.15 us, 1 %%) of CUPTI: %2d of %d, mean error %6.1f %%" % (right, len(truth),
                                                                                             100 * error)
        if peer != shown[0] and "one process" not in line:
            both = [n for n in spread[peer] if n in spread[shown[0]]]
            narrow = sum(spread[shown[0]][n] <= spread[peer][n] for n in both)
            line += "; %s's spread no wider: %d of %d" % (shown[0].split()[0], narrow, len(both))
        print(line)
    walls = ["%s %.1f" % (p, statistics.median(r["meta"][p]["wall_s"] for r in runs if p in r["meta"] and not
                                               r.get("by_default"))) for p in ("kbench", "nvbench", "do_bench")
             if any(p in r["meta"] and not r.get("by_default") for r in runs)]
    return ", ".join(walls)


def compare(o, peers):
    began = time.monotonic()
    records, wall = kbench(o.program, "--timer", "cupti")
    truth = {r["name"]: 1000 * r["time_ms"] for r in records if r["time_ms"]}
    if not truth:
        sys.exit("no truth: %s" % (records[0]["message"] if records else "no record"))
    print("truth by CUPTI %.1f s" % wall)
    options, runs, version = o.nvbench_options.split(), [], ""
    if "nvbench" in peers:
        version = nvbench(peers["nvbench"], "-b", "shared_memory")[2] + ", "
        for _ in range(o.default_rounds):
            runs.append(measure(o.program, {"nvbench": peers["nvbench"]}, [], True))
            runs[-1]["by_default"] = True
            print("nvbench with default options took %.1f s; %.0f s since the start" %
                  (runs[-1]["meta"]["nvbench"]["wall_s"], time.monotonic() - began), flush=True)
    for i in range(o.rounds):
        here = {p: f for p, f in peers.items() if p != "do_bench" or i % 2 == 0}
        runs.append(measure(o.program, here, options, False))
        took = ", ".join("%s %.1f s" % (p, m["wall_s"]) for p, m in runs[-1]["meta"].items())
        print("round %d: %s; %.0f s since the start" % (i + 1, took, time.monotonic() - began), flush=True)
    walls = table(truth, runs, o.rounds)
    print("median run time of a process in s: %s; nvbench options: %s; total %.0f s" % (walls, o.nvbench_options,
                                                                               time.monotonic() - began))
    what = ("tests/gpu/accuracy's kernels, cold, in %d rounds of fresh processes of %s, %s%s; medians in us; "
            "truth: CUPTI")
    return {"what": what % (o.rounds, ", ".join(peers), version, machine(records)), "rounds": o.rounds,
            "nvbench_options": options, "unit": "us", "truth": truth,
            "truth_flags": {r["name"]: r["flags"] for r in records}, "runs": runs}


def sweep(o, peers):
    def of(states):
        return [{"kib": int(n.split("kib=")[1]), "us": 1e6 * s["nv/cold/time/gpu/mean"],
                 "samples": s.get("nv/cold/sample_size"), "noise": s.get("nv/cold/time/gpu/stdev/relative"),
                 "cold_s": s.get("nv/cold/walltime"), "batch_s": s.get("nv/batch/walltime")} for n, s in states.items()]

    def axis(values):
        return ["-b", "copy", "-a", "kib=[%s]" % ",".join(map(str, values))]

    records, wall = kbench(o.program, "copy", "-a", "kib=%d:%d:+%d" % (SWEEP[0], SWEEP[-1], SWEEP.step))
    print("kbench with default options: %d cases in %.1f s" % (len(records), wall), flush=True)
    keep = ("name", "time_ms", "samples", "precision", "flags", "wall_ms")
    out = {"what": "%d copies of %d to %d KiB, default options: kbench times all of them, nvbench every "
                   "twentieth, %s" % (len(SWEEP), SWEEP[0], SWEEP[-1], machine(records)),
           "kbench_wall_s": wall, "kbench": [{k: r[k] for k in keep} for r in records]}
    if "nvbench" in peers:
        part = SWEEP[::20]
        states, took, version = nvbench(peers["nvbench"], *axis(part))
        out.update(what=out["what"] + ", " + version, nvbench_part_wall_s=took, nvbench_part=of(states))
        each = took / len(part)
        print("nvbench with default options: %d cases in %.1f s, %.1f s per case, %.0f times as long as kbench" %
              (len(part), took, each, each * len(records) / wall), flush=True)
        if o.full is not None:
            states, took, _ = nvbench(peers["nvbench"], *axis(SWEEP), *o.full.split())
            out.update(nvbench_full_wall_s=took, nvbench_full_options=o.full, nvbench_full=of(states))
            print("nvbench with %s: %d cases in %.1f s, %.1f times as long as kbench" %
                  (o.full, len(states), took, took / wall))
    return out


def main():
    if sys.argv[1:2] == ["--do-bench-child"]:
        return do_bench_child(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tests/gpu/accuracy.cu, built")
    parser.add_argument("out", help="JSON file for all measured values")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--default-rounds", type=int, default=1, help="rounds of nvbench with its default options")
    parser.add_argument("--nvbench-options", default="--timeout 0.1 --no-batch", metavar="OPTIONS")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--full", metavar="OPTIONS", help="also run nvbench with OPTIONS on all copies of the sweep")
    o = parser.parse_args()
    if o.rounds < 2:
        parser.error("--rounds must be 2 or more, because the spread is computed")
    if o.full is not None and not o.sweep:
        parser.error("--full needs --sweep")
    o.program = os.path.abspath(o.program)
    peers = {"kbench": o.program}
    for name, find in [("nvbench", find_nvbench), ("do_bench", find_do_bench)][:1 if o.sweep else 2]:
        found, why = find()
        if found:
            peers[name] = found
        else:
            print("%s is left out: %s" % (name, why), flush=True)
    with open(o.out, "w") as f:
        json.dump(sweep(o, peers) if o.sweep else compare(o, peers), f)


if __name__ == "__main__":
    main()
