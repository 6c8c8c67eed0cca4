# SPDX-License-Identifier: MIT OR Unlicense
"""The judge over tensors: it finds and names every planted trick, and passes every honest kernel: PyTorch's, Triton's
and this library's. judge.py FOLDER [--cpu] [--markdown FILE] [--json FILE] [--only NAME,NAME] [--shard K/N] [--jobs N]
[--within SECONDS] [--library all]; FOLDER is for scratch, all are the library's kernels that compute one of the tasks,
some of them without that. On a GPU what triton.testing.do_bench reads of each stands beside. A line as each is judged,
FAIL lines, what the steps took, and last "N passed, N failed".
"""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge")
sys.path.insert(0, here)
HONEST = ("FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED")
# what an honest function may be told
QUIET = {"HOST_BOUND", "NONDETERMINISTIC", "CLOCK_UNCHECKED"}
# they take longest: compilers, and a time that has to run out
FIRST = ("by_the_compiler", "addmm", "hangs")
start = time.time()


def one(job):
    """Judges one function."""
    import kbench
    import tasks

    file, name, task, path, compiled, gpu, moved = job
    began = time.time()
    try:
        verdict = kbench.judge(
            f"{path}:{name}",
            getattr(tasks, task),
            tasks.INPUTS[task],
            max_time=0.05,
            timeout=5 if name == "hangs" else 60,
            bytes=moved,  # 0: no roof, which takes its time to be measured in each process
            compiled=compiled,
            do_bench=gpu and (file == "tricks" or name in ("addmm", "triton_softmax")),
        )
    except Exception as error:
        verdict = failure(error)
    return dict(verdict), time.time() - began


def failure(error):
    return {"verdict": "none", "flags": [{"word": "ERROR", "evidence": f"{type(error).__name__}: {error}"}]}


def jobs_of(gpu, triton, folder, all_of_library=False):
    """Honest functions and tricks in turn, so that whatever ends this early has seen of both."""
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
        some = []
        for name, f in vars(module).items():
            if not callable(f) or not hasattr(f, "task"):
                continue
            if getattr(f, "more", False) and not all_of_library:
                continue
            if (getattr(f, "gpu", False) and not gpu) or (getattr(f, "triton", False) and not triton):
                continue
            compiled = gpu and getattr(f, "compiled", False)
            some.append((file, name, f.task, path, compiled, gpu, getattr(f, "bytes", 0)))
            expected[file, name] = getattr(f, "words", None)
        jobs += [(name_of(job) not in FIRST, (i + 0.5) / len(some), job) for i, job in enumerate(some)]
    return [job for _, _, job in sorted(jobs)], expected


def name_of(job):
    return job[1]


def has_triton():
    try:
        import triton.testing  # noqa: F401
    except ImportError:
        return False
    return True


# --- processes: each judges one function after the other, while others judge others ---


def judging(mine, others):
    """The first answer: whether it has a GPU. Until the first question comes it prepares what all of them need."""
    for end in others:  # of which it got copies: else nobody would see that the parent has gone
        end.close()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of the judge's own finally
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import kbench
    import tasks
    import torch

    gpu = torch.cuda.is_available()
    mine.send(gpu)
    kbench._Nursery.of(("torch", "triton.testing") if gpu and has_triton() else ("torch",))
    tasks.INPUTS["dense"]
    while True:
        try:
            mine.send(one(mine.recv()))
        except (EOFError, BrokenPipeError):
            return


def build(operations, types):
    os.nice(10)
    import kbench

    kbench.kernels.build(operations, types)


class Crew:
    """Copies of this process, which has imported what is slow to import and has not touched the GPU."""

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
        self.members.append({"at": mine, "process": process, "job": None, "ready": False})
        return self.members[-1]

    def gpu(self):
        """Whether all of them have one."""
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
        """(job, verdict, seconds) of those that have one; who died is replaced."""
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
                    raise SystemExit("judge.py: a process ends before it has judged anything")
            if not member["ready"]:
                member["ready"] = True
                continue
            member["job"] = None
            yield (job, *said)


def crew_of(n, cpu):
    crew = Crew(n)
    gpu = crew.gpu()
    if not gpu and not cpu:  # something touched the GPU before the copies were made
        crew.leave()
        crew = Crew(n, "spawn")
        gpu = crew.gpu()
    return crew, gpu


def verdicts(crew, jobs, builder, end):
    """Until all are judged, or the time has run out."""
    waiting = list(jobs)
    while waiting or any(m["job"] for m in crew.members):
        left = end - time.time()
        if left <= 0:
            return
        built = builder is None or not builder.is_alive()
        if built and builder is not None and builder.exitcode:
            for job in [job for job in waiting if job[0] == "library"]:
                waiting.remove(job)
                yield job, failure(RuntimeError("the library's kernels could not be built")), 0.0
        for member in crew.members:
            job = next((job for job in waiting if built or job[0] != "library"), None)
            if job is None or member["job"]:
                continue
            waiting.remove(job)
            member["job"] = job
            member["at"].send(job)
        yield from crew.answers(min(left, 0.5))


# --- what is right, and how it is shown ---


def words_of(verdict):
    return [flag["word"] for flag in verdict["flags"]]


def is_right(file, task, verdict, words):
    names = {w.partition(":")[0] for w in words_of(verdict)}
    if file == "tricks":
        return verdict["verdict"] in ("REJECTED", "WRONG", "SUSPECT") and bool(names & set(words))
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
WIDTHS = [29, 13, 40, 8, 8, 11, 10]


def line(cells, *more):
    return "  ".join([c.ljust(w) for c, w in zip(cells, WIDTHS)] + list(more)).rstrip()


def markdown(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows]) + "\n"


def steps(kept):
    """What each step of the judge took, the slowest first, and of whom most."""
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
    """What was judged so far, said as it comes."""

    def __init__(self, expected, options):
        self.expected, self.o = expected, options
        self.rows, self.kept, self.passed, self.failed = [], [], 0, 0

    def add(self, job, verdict, took):
        file, name, task = job[:3]
        self.rows.append(row_of(job, verdict))
        self.kept.append({"file": file, "function": name, "took": round(took, 2), **verdict})
        print(line(self.rows[-1], f"{took:5.1f} s", f"at {time.time() - start:.0f}"), flush=True)
        if is_right(file, task, verdict, self.expected[file, name]):
            self.passed += 1
        else:
            wanted = self.expected[file, name]
            flags = "; ".join(f"{f['word']}: {f['evidence']}" for f in verdict["flags"])
            self.fail(
                f"{file} {name}: {verdict['verdict']}{'' if wanted is None else ' (wanted: ' + ' '.join(wanted) + ')'}"
                f": {flags} {verdict.get('probes') or ''}"
            )
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
    parser.add_argument("--library", choices=("some", "all"), default="some")
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
    """Those who judge, what there is to judge, the words expected, and who builds the library's kernels."""
    # built once, before there are several that would
    kit = subprocess.Popen([sys.executable, "-c", "import kbench; kbench._find_library()"])
    import library
    import torch  # noqa: F401 - for all that are copies of this process

    triton = has_triton()
    crew, gpu = crew_of(o.jobs, o.cpu)
    jobs, expected = jobs_of(gpu, triton, os.path.abspath(o.folder), o.library == "all")
    unknown = [name for name in o.only or () if name not in map(name_of, jobs)]
    if unknown:
        parser.error(f"--only: there is no {', '.join(unknown)} here")
    jobs = [job for job in jobs if not o.only or name_of(job) in o.only][o.shard[0] - 1 :: o.shard[1]]
    if kit.wait():
        parser.error("kbench's library cannot be built")
    builder = None
    if any(job[0] == "library" for job in jobs):
        what = (library.ALL_OPERATIONS, ["f32", "bf16"]) if o.library == "all" else (library.OPERATIONS, ["f32"])
        builder = crew.context.Process(target=build, args=what, daemon=True)
        builder.start()
    return crew, jobs, expected, builder


def main():
    parser, o = options()
    if o.cpu:
        os.environ.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    os.environ["TMPDIR"] = os.path.abspath(o.folder)  # what a run that is cut off leaves is there
    crew, jobs, expected, builder = start_all(parser, o)
    signal.signal(signal.SIGTERM, stopped)
    tally, judged = Tally(expected, o), set()
    print(f"{len(jobs)} functions, {o.jobs} at a time, from {time.time() - start:.0f} s on")
    print(line(HEAD), flush=True)
    try:
        for job, verdict, took in verdicts(crew, jobs, builder, start + o.within):
            judged.add(name_of(job))
            tally.add(job, verdict, took)
    except KeyboardInterrupt:
        pass
    took = time.time() - start
    crew.leave()
    if builder is not None:
        builder.terminate()
    for text in steps(tally.kept):
        print(text)
    left = [name_of(job) for job in jobs if name_of(job) not in judged]
    if left:
        tally.fail(f"not judged within {took:.0f} s: {' '.join(left)}")
    if o.markdown:
        with open(o.markdown, "w") as f:
            f.write(markdown(tally.rows))
    planted = sum(job[0] == "tricks" for job in jobs)
    judging_took = sum(v["took"] for v in tally.kept)
    print(f"{planted} tricks, {len(jobs) - planted} honest, {judging_took:.0f} s of judging in {took:.0f} s")
    if not o.only and o.shard[1] == 1 and planted < 25:
        tally.fail(f"{planted} tricks are too few")
    print(f"{tally.passed} passed, {tally.failed} failed", flush=True)


if __name__ == "__main__":
    main()
