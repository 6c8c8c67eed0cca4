# SPDX-License-Identifier: MIT OR Unlicense
"""The judge over tensors: it finds and names every planted trick, and passes every honest kernel: PyTorch's, Triton's
and this library's. judge.py FOLDER [--cpu] [--markdown FILE] [--json FILE] [--only NAME,NAME] [--jobs N]; FOLDER is
for scratch. On a GPU what triton.testing.do_bench reads of each stands beside. Prints FAIL lines, a table, and ends
with "N passed, N failed".
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
import time

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge")
sys.path.insert(0, here)
FILES = ("tricks", "honest", "library")
HONEST = ("FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED")
# what an honest function may be told
QUIET = {"HOST_BOUND", "NONDETERMINISTIC", "ABOVE_ROOF"}


def one(job):
    """Judges one function; in a process that judges several, each in a process of its own."""
    import kbench
    import tasks

    file, name, task, path, compiled, gpu = job
    start = time.time()
    try:
        verdict = kbench.judge(
            f"{path}:{name}",
            getattr(tasks, task),
            tasks.INPUTS[task],
            max_time=0.05,
            timeout=5 if name == "hangs" else 60,
            bytes=0,
            compiled=compiled,
            do_bench=gpu and (file == "tricks" or name in ("addmm", "triton_softmax"))
            and name not in ("hangs", "leaves", "raises", "returns_nothing"),
        )
    except Exception as error:
        return job, {"verdict": type(error).__name__, "flags": [{"word": "ERROR", "evidence": str(error)}]}, 0.0
    return job, dict(verdict), time.time() - start


def jobs_of(gpu, triton, folder, only):
    import honest
    import library
    import tricks

    jobs, expected = [], {}
    for module in (honest, tricks, library):
        file, path = module.__name__, os.path.join(here, module.__name__ + ".py")
        if module is library:
            if not gpu:
                continue
            path = os.path.join(folder, "library.py")
            names = ("XDG_CACHE_HOME", "NVCC", "CC", "CUDA_HOME", "KBENCH_KERNELS_LIB")
            found = {k: os.environ[k] for k in names if k in os.environ}
            with open(path, "w") as f, open(os.path.join(here, "library.py")) as text:
                f.write(f"import os\nos.environ.update({found!r})\n" + text.read())
        for name, f in vars(module).items():
            if not callable(f) or not hasattr(f, "task") or (only and name not in only):
                continue
            if (getattr(f, "gpu", False) and not gpu) or (getattr(f, "triton", False) and not triton):
                continue
            jobs.append((file, name, f.task, path, gpu and getattr(f, "compiled", False), gpu))
            expected[file, name] = getattr(f, "words", None)
    return jobs, expected


def verdicts(jobs, workers, ready):
    """Several judges at once, which take turns on the GPU; the library's kernels come last, when they are built."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        asked = {pool.submit(one, job): job for job in jobs if job[0] != "library"}
        late = [job for job in jobs if job[0] == "library"]
        if late:
            ready()
            asked.update((pool.submit(one, job), job) for job in late)
        for future, job in asked.items():
            try:
                yield future.result()
            except Exception as error:  # its process died
                said = {"word": "ERROR", "evidence": f"{type(error).__name__}: {error}"}
                yield job, {"verdict": "none", "flags": [said]}, 0.0


def words_of(verdict):
    return [flag["word"] for flag in verdict["flags"]]


def is_right(file, task, verdict, words):
    names = {w.partition(":")[0] for w in words_of(verdict)}
    if file == "tricks":
        return verdict["verdict"] in ("REJECTED", "WRONG") and bool(names & set(words))
    view = verdict["flags"] and task == "reversed_view"  # launches nothing
    timed = verdict.get("time_ms") is not None or view
    return verdict["verdict"] in HONEST and names <= (QUIET | {"NO_TIME"} if view else QUIET) and timed


def shown(us):
    return "-" if us is None else f"{1000 * us:.2f}" if us < 0.1 else f"{1000 * us:.1f}"


def row_of(job, verdict):
    """file, function, what it says, time, do_bench's, what do_bench would call its speed."""
    first = next((f["word"] for f in verdict["flags"] if f["word"] not in QUIET), "")
    claimed, rival = verdict.get("do_bench_ms"), verdict.get("do_bench_reference_ms")
    ratio = f"{rival / claimed:.2f} x" if claimed and rival else "-"
    speed = f"{verdict['speedup']:.2f} x" if verdict.get("speedup") else "-"
    said = verdict["verdict"] + (f" {first}" if first else "")
    return [job[1], job[2], said, shown(verdict.get("time_ms")), speed, shown(claimed), ratio]


HEAD = ["function", "task", "the judge", "us", "speed", "do_bench us", "its speed"]


def table(rows):
    widths = [max(len(r[i]) for r in [HEAD] + rows) for i in range(len(HEAD))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in [HEAD] + rows)


def markdown(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--markdown")
    parser.add_argument("--json")
    parser.add_argument("--only", type=lambda text: set(text.split(",")))
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)))
    o = parser.parse_args()
    start = time.time()
    if o.cpu:
        os.environ.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    import torch

    gpu = torch.cuda.is_available() and not o.cpu
    try:
        import triton  # noqa: F401

        has_triton = True
    except ImportError:
        has_triton = False

    def build():
        import kbench
        import library

        kbench.kernels.build(library.OPERATIONS, ["f32"])
        print(f"the library's kernels are built: {time.time() - start:.0f} s", flush=True)

    jobs, expected = jobs_of(gpu, has_triton, os.path.abspath(o.folder), o.only)
    passed = failed = 0
    rows, kept, seconds = [], [], 0.0
    for job, verdict, took in verdicts(jobs, o.jobs, build):
        file, name, task = job[:3]
        rows.append(row_of(job, verdict))
        kept.append({"file": file, "function": name, "seconds": took, **verdict})
        seconds += took
        if is_right(file, task, verdict, expected[file, name]):
            passed += 1
        else:
            failed += 1
            flags = "; ".join(f"{f['word']}: {f['evidence']}" for f in verdict["flags"])
            wanted = "" if expected[file, name] is None else f" (wanted: {' '.join(expected[file, name])})"
            print(f"FAIL: {file} {name}: {verdict['verdict']}{wanted}: {flags}".replace("\n", " "), flush=True)
        if o.json:
            with open(o.json, "w") as f:
                json.dump(kept, f, indent=1)
    print(table(rows))
    if o.markdown:
        with open(o.markdown, "w") as f:
            f.write(markdown(rows))
    planted = sum(job[0] == "tricks" for job in jobs)
    print(f"{planted} tricks, {len(jobs) - planted} honest, {seconds:.0f} s of judging in {time.time() - start:.0f} s")
    if not o.only and planted < 25:
        failed += 1
        print(f"FAIL: {planted} tricks are too few")
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
