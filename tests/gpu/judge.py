# SPDX-License-Identifier: MIT OR Unlicense
"""Tests the judge with tensors. The judge must flag every trick, and accept every honest kernel of PyTorch, Triton
and kbench_kernels.cuh.

    judge.py FOLDER [--cpu] [--markdown FILE] [--json FILE] [--only NAME,NAME] [--shard K/N] [--jobs N]
             [--within SECONDS] [--library none|some|all|types] [--only-files tricks,honest,...]

FOLDER: scratch folder. --library some: judges a few kernels of the library in f32. --library all: judges each
kernel in one element type, and the PyTorch implementation of each operation. --library types: judges each kernel in each of
its element types. On a GPU, the table also has the times that triton.testing.do_bench measures for the tricks.
Prints a line per verdict, FAIL lines, the time of each step, and last "N passed, N failed".
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple, Optional, Sequence

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge")
sys.path.insert(0, here)
HONEST = ("FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED")
# flags that the judge may raise for an honest function
QUIET = {"HOST_BOUND", "NONDETERMINISTIC", "CLOCK_UNCHECKED"}
FIRST = ("by_the_compiler", "addmm", "hangs")
start = time.time()


class Job(NamedTuple):

    file: str
    name: str
    task: str
    path: str
    inputs: Any  # key of the task's inputs in the dict INPUTS
    words: Optional[Sequence[str]] = None
    compiled: bool = False
    do_bench: bool = False
    # bytes that a call moves; 0: saves the time that the judge needs to measure the peak bandwidth
    bytes: Optional[float] = 0
    rtol: Optional[float] = None
    built: Any = None  # (group of kernels, element type) that must be built before the function is judged


def one(job):
    import kbench
    import operations
    import tasks

    began = time.time()
    place = tasks if hasattr(tasks, job.task) else operations
    try:
        verdict = kbench.judge(
            f"{job.path}:{job.name}",
            getattr(place, job.task),
            place.INPUTS[job.inputs],
            max_time=0.05 if job.words or job.file == "honest" else 0.02,
            timeout=5 if job.name == "hangs" else 60,
            rtol=job.rtol,
            allow=operations.ALLOWED.get(job.task, ()),
            bytes=job.bytes,
            compiled=job.compiled,
            do_bench=job.do_bench,
        )
    except Exception as error:
        verdict = failure(error)
    return dict(verdict), time.time() - began


def failure(error):
    return {"verdict": "none", "flags": [{"word": "ERROR", "evidence": f"{type(error).__name__}: {error}"}]}


def marked(module, gpu, triton):
    for name, f in vars(module).items():
        if not callable(f) or not hasattr(f, "task"):
            continue
        if (getattr(f, "gpu", False) and not gpu) or (getattr(f, "triton", False) and not triton):
            continue
        beside = gpu and (module.__name__ == "tricks" or name in ("addmm", "triton_softmax"))
        compiled = gpu and getattr(f, "compiled", False)
        path, words = os.path.join(here, module.__name__ + ".py"), getattr(f, "words", None)
        yield Job(module.__name__, name, f.task, path, f.task, words, compiled, beside, getattr(f, "bytes", 0))


def written_out(gpu):
    """On a CPU, the element type is f32 if the operation supports f32."""
    import by_hand
    import kbench
    import operations

    for i, name in enumerate(operations.OPERATIONS):
        has = {dtype for kernel in kbench.kernels if kernel.name == name for dtype in kernel.dtypes}
        types = [dtype for dtype in ("f32", "bf16", "f16") if dtype in has][: None if gpu else 1]
        if types:
            yield Job("by_hand", name, name, by_hand.__file__, (name, types[i % len(types)]))


def of_library(which, folder):
    """Yields one Job for each kernel of the library. A candidate's process does not inherit the environment variables
    of the build, so a copy of library.py sets them."""
    import library

    path = os.path.join(folder, "library.py")
    names = ("XDG_CACHE_HOME", "NVCC", "CC", "CUDA_HOME", "KBENCH_KERNELS_LIB")
    found = {k: os.environ[k] for k in names if k in os.environ}
    with open(path, "w") as f, open(os.path.join(here, "library.py")) as text:
        f.write(f"import os, sys\nos.environ.update({found!r})\nsys.path.append({here!r})\n" + text.read())
    for name in library.names(which, capability()):
        kernel, dtype = library.kernel_of(name), name.rpartition("_")[2]
        rtol = 1e-2 if kernel.tf32 else None  # TF32 uses only 10 of the 23 mantissa bits of f32
        yield Job("library", name, kernel.name, path, (kernel.name, dtype), rtol=rtol, built=(kernel.group, dtype))


def capability():
    """Returns the compute capability of the GPU: 90 for 9.0. A child process queries the GPU, because the parent
    must not initialise CUDA."""
    code = "import torch; print(*torch.cuda.get_device_capability())"
    major, minor = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE).stdout.split()
    return 10 * int(major) + int(minor)


def jobs_of(gpu, triton, folder, which):
    """Alternates honest functions and tricks, so that both kinds have been judged if the run ends early."""
    import honest
    import library
    import tricks

    if library.unknown():
        raise SystemExit(f"judge.py: operations.py and the library's table differ: {' '.join(library.unknown())}")
    jobs = []
    files = [list(marked(module, gpu, triton)) for module in (honest, tricks)]
    files.append(list(of_library(which, folder)) if gpu and which != "none" else [])
    files.append(list(written_out(gpu)) if which in ("all", "types") or not gpu else [])
    for some in files:
        jobs += [(job.name not in FIRST, (i + 0.5) / len(some), job) for i, job in enumerate(some)]
    return [job for _, _, job in sorted(jobs, key=lambda entry: entry[:2])]


def has_triton():
    try:
        import triton.testing  # noqa: F401
    except ImportError:
        return False
    return True


# --- processes: each judges one function after the other, in parallel with the others ---


def judging(mine, others):
    """Runs a worker process. It first reports whether it has a GPU. Before it receives a request, it imports the
    modules and makes the inputs that all functions use."""
    for end in others:
        end.close()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # exits through the judge's finally blocks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import kbench
    import tasks
    import torch

    gpu = torch.cuda.is_available()
    mine.send(gpu)
    kbench._ForkServer.of(("torch", "triton.testing") if gpu and has_triton() else ("torch",))
    tasks.INPUTS["dense"]
    while True:
        try:
            mine.send(one(mine.recv()))
        except (EOFError, BrokenPipeError):
            return


SLOW_TO_BUILD = ("MATMUL", "ATTENTION")


class Builder:

    def __init__(self, context, jobs):
        groups = {job.built: job.task.rpartition("_")[0] for job in jobs}
        wanted = sorted(groups.items(), key=lambda item: item[0][0] not in SLOW_TO_BUILD)
        self.done, (self.told, tells) = {None}, context.Pipe(False)
        self.process = context.Process(target=self.build, args=(wanted, tells), daemon=True)
        self.process.start()
        tells.close()

    @staticmethod
    def build(wanted, tells):
        os.nice(10)
        import kbench

        def one(built, operation):
            kbench.kernels.build([operation], [built[1]])
            return built

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for future in concurrent.futures.as_completed([pool.submit(one, *item) for item in wanted]):
                tells.send(future.result())

    def look(self):
        try:
            while self.told.poll():
                self.done.add(self.told.recv())
        except EOFError:
            pass
        return self.done, not self.process.is_alive() and not self.told.poll()


class Crew:

    def __init__(self, n, how="fork"):
        self.how, self.context, self.members = how, multiprocessing.get_context(how), []
        for _ in range(n):
            self.join()

    def join(self):
        mine, theirs = self.context.Pipe()
        others = [mine, *(m["at"] for m in self.members)] if self.how == "fork" else []
        process = self.context.Process(target=judging, args=(theirs, others), daemon=True)
        process.start()
        theirs.close()
        self.members.append({"at": mine, "process": process, "job": None, "tasks": set(), "ready": False})
        return self.members[-1]

    def gpu(self):
        for member in self.members:
            member["ready"] = True
        return all([member["at"].recv() for member in self.members])

    def leave(self):
        for member in self.members:
            member["process"].terminate()
        end = time.time() + 3
        for member in self.members:
            member["process"].join(max(0.0, end - time.time()))
            member["process"].kill()

    def answers(self, timeout):
        ready = multiprocessing.connection.wait([m["at"] for m in self.members], timeout)
        for member in [m for m in self.members if m["at"] in ready]:
            job = member["job"]
            try:
                said = member["at"].recv()
            except (EOFError, OSError):
                self.members.remove(member)
                self.join()
                said = failure(RuntimeError("the judge's process ended")), 0.0
                if job is None:
                    raise SystemExit("judge.py: a process ended before it judged anything")
            if not member["ready"]:
                member["ready"] = True
                continue
            member["job"] = None
            yield (job, *said)


def crew_of(n, cpu):
    crew = Crew(n)
    gpu = crew.gpu()
    if not gpu and not cpu:  # CUDA was initialised before the processes were forked
        crew.leave()
        crew = Crew(n, "spawn")
        gpu = crew.gpu()
    return crew, gpu


def verdicts(crew, jobs, builder, end):
    waiting = list(jobs)
    while waiting or any(m["job"] for m in crew.members):
        left = end - time.time()
        if left <= 0:
            return
        built, over = builder.look() if builder else ({None}, True)
        for job in [job for job in waiting if over and job.built not in built]:
            waiting.remove(job)
            yield job, failure(RuntimeError("the library's kernel could not be built")), 0.0
        for member in [m for m in crew.members if not m["job"]]:
            # a process that has judged this task has cached the time of the task's reference
            ready = [job for job in waiting if job.built in built]
            job = next((job for job in ready if job.task in member["tasks"]), ready[0] if ready else None)
            if job is None:
                break
            waiting.remove(job)
            member["job"] = job
            member["tasks"].add(job.task)
            member["at"].send(job)
        yield from crew.answers(min(left, 0.5))


# --- which verdicts are right, and how they are printed ---


def words_of(verdict):
    return [flag["word"] for flag in verdict["flags"]]


def is_right(job, verdict):
    names = {w.partition(":")[0] for w in words_of(verdict)}
    if job.words is not None:
        return verdict["verdict"] in ("REJECTED", "WRONG", "SUSPECT") and bool(names & set(job.words))
    view = verdict["flags"] and job.task == "reversed_view"  # launches nothing
    timed = verdict.get("time_ms") is not None or view
    return verdict["verdict"] in HONEST and names <= (QUIET | {"NO_TIME"} if view else QUIET) and timed


def shown(us):
    return "-" if us is None else f"{1000 * us:.2f}" if us < 0.1 else f"{1000 * us:.1f}"


def row_of(job, verdict):
    """Returns a row of the table; its last column is the speed that do_bench would report."""
    first = next((f["word"] for f in verdict["flags"] if f["word"] not in QUIET), "")
    claimed, rival = verdict.get("do_bench_ms"), verdict.get("do_bench_reference_ms")
    ratio = f"{rival / claimed:.2f} x" if claimed and rival else "-"
    speed = f"{verdict['speedup']:.2f} x" if verdict.get("speedup") else "-"
    said = verdict["verdict"] + (f" {first}" if first else "")
    return [job.name, job.task, said, shown(verdict.get("time_ms")), speed, shown(claimed), ratio]


HEAD = ["function", "task", "the judge", "us", "speed", "do_bench us", "its speed"]
WIDTHS = [33, 20, 40, 8, 8, 11, 10]


def line(cells, *more):
    return "  ".join([c.ljust(w) for c, w in zip(cells, WIDTHS)] + list(more)).rstrip()


def markdown(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows]) + "\n"


def steps(kept):
    """Yields a table of the steps, the slowest step first. Each line ends with the function that spent most time
    in the step. Yields one line for each of the five slowest functions after the table."""
    took = {}
    for v in kept:
        for step, seconds in (v.get("seconds") or {}).items():
            took.setdefault(step, []).append((seconds, v["function"]))
    yield f"{'step':14}{'s':>8}{'median':>9}{'most':>9}"
    for step, of in sorted(took.items(), key=lambda item: -sum(s for s, _ in item[1])):
        middle, (most, who) = sorted(of)[len(of) // 2][0], max(of)
        yield f"{step:14}{sum(s for s, _ in of):8.1f}{middle:9.2f}{most:9.2f}  {who}"
    for v in sorted(kept, key=lambda v: -v["took"])[:5]:
        most = sorted((v.get("seconds") or {}).items(), key=lambda item: -item[1])[:4]
        yield f"{v['function']}: {v['took']:.1f} s: " + ", ".join(f"{step} {seconds:.1f}" for step, seconds in most)


class Tally:

    def __init__(self, options):
        self.o = options
        self.rows, self.kept, self.passed, self.failed = [], [], 0, 0

    def add(self, job, verdict, took):
        self.rows.append(row_of(job, verdict))
        self.kept.append({"file": job.file, "function": job.name, "took": round(took, 2), **verdict})
        print(line(self.rows[-1], f"{took:5.1f} s", f"at {time.time() - start:.0f}"), flush=True)
        if is_right(job, verdict):
            self.passed += 1
        else:
            flags = "; ".join(f"{f['word']}: {f['evidence']}" for f in verdict["flags"])
            wanted = "" if job.words is None else f" (wanted: {' '.join(job.words)})"
            self.fail(f"{job.file} {job.name}: {verdict['verdict']}{wanted}: {flags} {verdict.get('probes') or ''}")
        if self.o.json:
            with open(self.o.json, "w") as f:
                json.dump(self.kept, f, indent=1)

    def fail(self, text):
        self.failed += 1
        print("FAIL: " + text.replace("\n", " "), flush=True)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--markdown")
    parser.add_argument("--json")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--shard", type=lambda text: [int(n) for n in text.split("/")], default=[1, 1])
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--library", choices=("none", "some", "all", "types"), default="some")
    parser.add_argument("--only-files", type=lambda text: text.split(","), metavar="FILE,FILE")
    parser.add_argument("--jobs", type=int, default=max(1, min(10, (os.cpu_count() or 1) * 5 // 8)))
    o = parser.parse_args()
    if len(o.shard) != 2 or not 1 <= o.shard[0] <= o.shard[1]:
        parser.error("--shard K/N: part K of N, as in 1/3")
    if o.jobs < 1:
        parser.error("--jobs: at least one")
    return parser, o


def stopped(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def start_all(parser, o):
    kit = subprocess.Popen([sys.executable, "-c", "import kbench; kbench._find_library()"])
    import torch

    triton = has_triton()
    crew, gpu = crew_of(o.jobs, o.cpu)
    jobs = jobs_of(gpu, triton, os.path.abspath(o.folder), o.library)
    for option, asked, of in (("only", o.only, "name"), ("only-files", o.only_files, "file")):
        there = {getattr(job, of) for job in jobs}
        unknown = [name for name in asked or () if name not in there]
        if unknown:
            parser.error(f"--{option}: there is no {', '.join(unknown)} here")
    chosen = lambda job: job.name in (o.only or [job.name]) and job.file in (o.only_files or [job.file])
    jobs = [job for job in jobs if chosen(job)][o.shard[0] - 1 :: o.shard[1]]
    if kit.wait():
        parser.error("kbench's library cannot be built")
    to_build = [job for job in jobs if job.built]
    return crew, jobs, Builder(crew.context, to_build) if to_build else None


def main():
    parser, o = options()
    if o.cpu:
        os.environ.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    os.environ["TMPDIR"] = os.path.abspath(o.folder)
    crew, jobs, builder = start_all(parser, o)
    signal.signal(signal.SIGTERM, stopped)
    tally, judged = Tally(o), set()
    print(f"{len(jobs)} functions, {o.jobs} at a time, from {time.time() - start:.0f} s on")
    print(line(HEAD), flush=True)
    try:
        for job, verdict, took in verdicts(crew, jobs, builder, start + o.within):
            judged.add((job.file, job.name))
            tally.add(job, verdict, took)
    except KeyboardInterrupt:
        pass
    took = time.time() - start
    crew.leave()
    if builder is not None:
        builder.process.terminate()
    for text in steps(tally.kept):
        print(text)
    left = [job.name for job in jobs if (job.file, job.name) not in judged]
    if left:
        tally.fail(f"not judged within {took:.0f} s: {' '.join(left)}")
    if o.markdown:
        with open(o.markdown, "w") as f:
            f.write(markdown(tally.rows))
    planted = sum(job.file == "tricks" for job in jobs)
    judging_took = sum(v["took"] for v in tally.kept)
    print(f"{planted} tricks, {len(jobs) - planted} honest, {judging_took:.0f} s of judging in {took:.0f} s")
    if not o.only and not o.only_files and o.shard[1] == 1 and planted < 25:
        tally.fail(f"{planted} tricks are too few")
    print(f"{tally.passed} passed, {tally.failed} failed", flush=True)


if __name__ == "__main__":
    main()
