#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""mutate.py - mutation testing: changes one token of kbench.h at a time and runs the tests on the changed header.

    python3 tests/mutate.py                       100 mutants, spread evenly over the sections; exit 1 below 90 % caught
    python3 tests/mutate.py --seed 7 --count 20   20 mutants with another seed
    python3 tests/mutate.py --only cli --count 9  mutants of one section
    python3 tests/mutate.py --at 3100:delete      mutants of one line, of one kind
    python3 tests/mutate.py --tests 'host/(stats|plan)$'    only the tests whose names match
    python3 tests/mutate.py --list                lists the mutants without compiling them
    python3 tests/mutate.py --again FILE          the mutants that survived in an earlier --json FILE, on the same header
    python3 tests/mutate.py --coverage            lists the lines that no test executes, by section

Mutants change code below the "Stop here" line, except comments, strings, #if, declared array sizes, numbers in
allocation sizes, and the section >>ptx. A mutant that does not compile, or compiles at -O1 to the same object code as
the header, is discarded and replaced by another mutant. A mutant is caught if a test crashes, exceeds its time limit,
or fails on it twice (a second failure excludes effects of a busy machine).

The tests are those of tests/host and tests/cli. For each mutant, only the tests run that execute the mutated line, as
measured with gcov (for a line of data: all tests). The tests written for the section of the mutated line run first. The
tests are built at -O0 without warnings, so that mutants are caught by tests and not by compiler warnings. If a mutant
survives, the tests of tests/host run on it twice more: with the sanitizers of make sanitize, and with the buffer
checks that Linux distributions enable (_FORTIFY_SOURCE).

Requires Python's standard library, gcc and gcov; the CUDA back end also needs CUDA's headers (NVCC, CUDA_HOME).
The coverage of a test is measured once, and again whenever the test has changed. After a change of the header, the
coverage of unchanged lines is kept (--anew measures it again).
"""
import argparse, bisect, concurrent.futures, difflib, glob, hashlib, json, os, random, re, selectors, shutil, signal
import subprocess, sys, threading, time

NOT_O0 = {"host/interval_coverage": "-O1", "host/judge_programs": "-O1", "host/processes": "-O1", "host/roofs": "-O1", "cli/many_records": "-O2",
          "cli/example_templates": "-O2", "cli/work_changes": "-O2"}
# further builds for mutants that survive the normal build: with the sanitizers of make sanitize, and with the
# options of Linux distributions
OTHERWISE = {"sanitized": "-fsanitize=address,undefined -fno-sanitize-recover=undefined -DTEST_SANITIZE",
             "fortified": "-O1 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"}
PARTLY, WHOLLY = 1, 2  # whether all of a line was executed; PARTLY: for example "if (a) f();" without f()
KINDS = "plus times less equal logic not number bool return break index swap delete minmax".split()
REPLACED = {"+": ("plus", "-"), "-": ("plus", "+"), "+=": ("plus", "-="), "-=": ("plus", "+="), "++": ("plus", "--"),
            "--": ("plus", "++"), "*": ("times", "/"), "/": ("times", "*"), "*=": ("times", "/="),
            "/=": ("times", "*="), "<": ("less", "<="), "<=": ("less", "<"), ">": ("less", ">="),
            ">=": ("less", ">"), "==": ("equal", "!="),
            "!=": ("equal", "=="), "&&": ("logic", "||"), "||": ("logic", "&&"), "true": ("bool", "false"),
            "false": ("bool", "true"), "break": ("break", ""), "continue": ("break", "")}
ALLOCATES = re.compile(r"(?:\w+_)?(?:malloc|realloc|MALLOC|REALLOC|grow|arena_alloc)")
KEYWORDS = set("return case if else for while do switch sizeof goto break continue default typedef static const struct "
               "union enum extern inline volatile void unsigned signed".split())
TOKEN = re.compile(r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\\\n)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<word>[A-Za-z_]\w*)
    |(?P<sign>->|\+\+|--|<<=|>>=|&&|\|\||\#\#|[-+*/%&|^<>=!]=|<<|>>|\.\.\.|.)""", re.X | re.S)
# Without optimisation, even 0 + x and x give different object code, so most functions are compared at -O1 instead
# of their pragma -O0 or -Og.
AS_FOR_OBJECT = (re.compile(r'GCC optimize\(\\"O[0g]\\"\)'), r'GCC optimize(\\"O1\\")')
HARD_ERRORS = "-Werror=incompatible-pointer-types -Werror=int-conversion -Werror=implicit-function-declaration".split()

# The compiler CC of the tests. It builds a program with a mutant once for all tests. It builds a file that does
# not include the header once for all mutants.
COMPILER = """#!/bin/sh
key= to= source= last=
for a; do
    case $last in -o) to=$a ;; *) key="$key $a" ;; esac
    case $a in *.c | kbench.h) source=$a ;; esac
    last=$a
done
case $key in *" -c "*|*.d/*) to= ;; esac # object files, and sources that a test has just written, are not stored
case $key in *" -shared "*) # the signal handlers of dumps.c would replace those of the program
    grep -q kbench "$source" || MUTATE_COVERAGE= ;;
esac
if [ -n "$MUTATE_COVERAGE" ]; then exec $MUTATE_CC "$@" -x none $MUTATE_COVERAGE; fi
if [ -z "$to" ] || [ ! -f "$source" ]; then exec $MUTATE_CC "$@" -w -g0 $MUTATE_O; fi
name=$(printf '%s' "$key $MUTATE_O" | cksum | tr ' ' _)
for store in "$MUTATE_PROGRAMS" "$MUTATE_KEPT"; do
    if [ -f "$store/$name" ]; then cp "$store/$name" "$to"; exit; fi
done
$MUTATE_CC "$@" -w -g0 $MUTATE_O || exit
store=$MUTATE_KEPT
if grep -q 'kbi_' "$to"; then store=$MUTATE_PROGRAMS; fi # the program contains kbench.h
cp "$to" "$store/$name.$$" && mv "$store/$name.$$" "$store/$name"
"""
# Makes processes that end without exit() write their coverage counts, too. The counts are then reset, so that a
# process that continues does not write them twice.
DUMPS = """#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
extern void __gcov_dump(void), __gcov_reset(void);
void __real__exit(int code);
void __real_abort(void);
int __real_raise(int number);
int __real_kill(pid_t process, int number);
static void dump(int number) { (void)number, __gcov_dump(), __gcov_reset(); }
static void crash(int number) { __gcov_dump(), __real_raise(number); }
__attribute__((constructor)) static void ready(void) {
    struct sigaction a = { .sa_handler = dump, .sa_flags = SA_RESTART };
    sigaction(SIGRTMIN + 3, &a, 0);
    struct sigaction c = { .sa_handler = crash, .sa_flags = SA_RESETHAND | SA_NODEFER };
    sigaction(SIGSEGV, &c, 0), sigaction(SIGBUS, &c, 0), sigaction(SIGFPE, &c, 0), sigaction(SIGILL, &c, 0);
    struct rlimit most; // half a file of counts would spoil those of others
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY) setenv("GCOV_PREFIX", "/dev/null", 1);
}
void __wrap__exit(int code) { __gcov_dump(), __real__exit(code); }
void __wrap_abort(void) { __gcov_dump(), __real_abort(); }
int __wrap_raise(int number) { return dump(number), __real_raise(number); }
int __wrap_kill(pid_t process, int number) {
    if (number == SIGKILL && __real_kill(process, SIGRTMIN + 3) == 0) usleep(200000);
    return __real_kill(process, number);
}
"""


class Token:
    __slots__ = "kind text start end line macro".split()

    def __init__(self, kind, text, start, line, macro):
        self.kind, self.text, self.line, self.macro = kind, text, line, macro
        self.start, self.end = start, start + len(text)


class Source:

    def __init__(self, path):
        self.text = open(path, encoding="utf-8").read()
        stop = re.search(r"^.*Stop here.*\n(?:.*\*/)?", self.text, re.M)
        if not stop:
            sys.exit(f"mutate.py: {path} has no line 'Stop here'")
        # if "Stop here" is in a comment, the mutated code begins after that comment
        self.first = self.text.index("*/", stop.start()) + 2 if stop.group().lstrip().startswith(("/*", "*")) \
            or "*/" in self.text[stop.start():stop.start() + 400] else stop.end()
        self.sections = [(m.group(1), self.text.count("\n", 0, m.start()) + 1)
                         for m in re.finditer(r"^  >>(\w+) ", self.text[:], re.M) if m.start() > self.first]
        self.lines = self.text.split("\n")
        self.tokens = self.tokenize()
        self.extents()

    def section(self, line):
        at = bisect.bisect_right([first for _, first in self.sections], line)
        return self.sections[at - 1][0] if at else None

    def tokenize(self):
        tokens, macro, fresh = [], None, True
        at, line, n = self.first, self.text.count("\n", 0, self.first) + 1, len(self.text)
        while at < n:
            if fresh and self.text[at] == "#":
                directive = re.compile(r"#[ \t]*(\w+)([ \t]+(\w+)(\([^)]*\))?)?").match(self.text, at)
                end = at if directive else n
                if directive and directive.group(1) == "define" and directive.group(3):
                    macro, end = directive.group(3), directive.end()
                else:  # skips the whole preprocessor directive, with its continuation lines
                    while end < n and (self.text[end] != "\n" or self.text[end - 1] == "\\"):
                        end += 1
                line += self.text.count("\n", at, end)
                at, fresh = end, False
                continue
            m = TOKEN.match(self.text, at)
            kind, word = m.lastgroup, m.group()
            if kind == "skip":
                if "\n" in word and not word.startswith(("\\", "/*")):
                    macro, fresh = None, True
            else:
                tokens.append(Token(kind, word, at, line, macro))
                fresh = False
            line += word.count("\n")
            at = m.end()
        return tokens

    def extents(self):
        """Maps each token to the index of the first token of its statement, and each line to all lines of the
        statements on that line."""
        self.start_of, self.function_at, self.spans = [], {}, {}
        start, depth, parens, name, opened = 0, 0, 0, None, None
        for i, t in enumerate(self.tokens):
            if i and (self.tokens[i - 1].macro != t.macro):
                start = i
            self.start_of.append(start)
            if t.macro is None:
                parens += (t.text == "(") - (t.text == ")")
                if t.text == "{":
                    depth += 1
                    if depth == 1:
                        opened = (self.tokens[start].line, i and self.tokens[i - 1].text == ")")
                elif t.text == "}":
                    depth -= 1
                    if depth == 0 and opened and opened[1]:
                        for k in range(opened[0], t.line + 1):
                            self.function_at[k] = opened[0], t.line
                self.spans.setdefault(t.line, set()).update((self.tokens[start].line, t.line))
                self.spans.setdefault(self.tokens[start].line, set()).add(t.line)
            if t.text in "{}" or (t.text == ";" and parens == 0):
                start = i + 1

    def declared_size(self, i):
        """Such as 64 in double ns[64]."""
        depth, k = 0, i
        while k > self.start_of[i]:
            k -= 1
            depth += {"]": 1, "[": -1}.get(self.tokens[k].text, 0)
            if depth < 0:
                break
        return depth < 0 and self.declares(k)

    def allocated(self, i):
        """Returns whether token i is a term of an allocated size. Such a term is not mutated, because no test can
        detect that memory is larger than needed."""
        depth, k = 0, i
        while k > self.start_of[i] and self.tokens[i - 1].text in "+*,(":
            k -= 1
            depth += {")": 1, "(": -1}.get(self.tokens[k].text, 0)
            if depth < 0:
                depth = 0
                if ALLOCATES.fullmatch(self.tokens[k - 1].text):
                    return True
        return False

    def declares(self, bracket):
        s, t = self.start_of[bracket], self.tokens
        words = "static", "const", "typedef", "extern", "struct", "union", "unsigned", "volatile"
        while s < bracket and t[s].text in words:
            s += 1
        k = s
        if t[k].kind != "word" or t[k].text in ("return", "case", "if", "for", "while", "else", "do"):
            return False
        k += not (t[k - 1].text == "unsigned" and s > self.start_of[bracket] and t[k + 1].kind != "word")
        while k < bracket and t[k].text in ("*", "const"):
            k += 1
        if t[k].kind != "word" or self.text[t[k - 1].start - 1:t[k - 1].end + 1] == " * ":  # a * b[i]
            return False
        parens, within = 0, True
        for m in range(bracket - 1, s, -1):  # first this declarator, then those before it
            parens += {")": 1, "}": 1, "(": -1, "{": -1}.get(t[m].text, 0)
            if parens < 0 or (within and t[m].text == "="):
                return False
            within = within and (parens > 0 or t[m].text != ",")
        return True


def cuda_headers():
    nvcc = shutil.which(os.environ.get("NVCC") or "nvcc")
    places = [os.path.join(p, "include") for p in (os.environ.get("CUDA_HOME"),) if p]
    places += [os.path.join(os.path.dirname(nvcc), "../include")] if nvcc else []
    places.append("/usr/local/cuda/include")
    return next((p for p in places if os.path.exists(p + "/cuda_runtime_api.h")), None)


def binary(s, i):
    before, t = s.tokens[i - 1], s.tokens[i]
    operand = before.kind == "number" or before.text in (")", "]") or \
        (before.kind == "word" and before.text not in KEYWORDS)
    return operand and (t.text not in "*-" or (s.text[t.start - 1] in " \n" and s.text[t.end] in " \n"))


def statement_end(s, i):
    depth = 0
    for k in range(i, min(i + 200, len(s.tokens))):
        w = s.tokens[k].text
        depth += (w in "([") - (w in ")]")
        if depth < 0 or w in "{}" or s.tokens[k].macro != s.tokens[i].macro:
            return None
        if w == ";" and depth == 0:
            return k
    return None


def sites_of_number(s, i):
    t = s.tokens[i]
    if s.declared_size(i) or s.allocated(i):
        return
    if re.fullmatch(r"0[uUlL]*|0*\.?0*f?", t.text):
        yield "number", t.start, t.end, "1"
    else:
        yield "number", t.start, t.end, f"({t.text} + 1)"
        yield "number", t.start, t.end, f"(2 * {t.text})"


def sites_of_word(s, i):
    t, tokens = s.tokens[i], s.tokens
    before, after = tokens[i - 1].text, tokens[i + 1].text if i + 1 < len(tokens) else ""
    if t.text == "return" and after != ";" and statement_end(s, i):
        end = tokens[statement_end(s, i)]
        if s.text[t.end:end.start].strip() not in ("0", "false", "NULL"):
            yield "return", t.start, end.start, "return 0"
    other = re.sub(r"(?:(?<=_)|(?<=^)|(?<=^f))(min|max|MIN|MAX)(?=_|$)",
                   lambda m: {"min": "max", "max": "min", "MIN": "MAX", "MAX": "MIN"}[m.group()], t.text)
    if other != t.text:
        yield "minmax", t.start, t.end, other
    if before in "(," and after == "," and i + 3 < len(tokens) and tokens[i + 2].kind == "word" \
            and tokens[i + 3].text in ",)" and tokens[i + 2].text != t.text:
        yield "swap", t.start, tokens[i + 2].end, tokens[i + 2].text + s.text[t.end:tokens[i + 2].start] + t.text
    goes_on = "=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "(", "->", ".", "[", "++", "--"
    if before in (";", "{", "}", ")", "else") and t.text not in KEYWORDS and after in goes_on and t.macro is None:
        end = statement_end(s, i)
        if end and t.line in s.function_at:
            yield "delete", t.start, tokens[end].start, ""


def sites(s):
    for i, t in enumerate(s.tokens):
        if i == 0 or s.section(t.line) in (None, "ptx"):
            continue
        found = []
        if t.kind == "number":
            found += sites_of_number(s, i)
        elif t.kind == "word":
            found += sites_of_word(s, i)
        if t.text in REPLACED and (t.kind == "word" or t.text in ("++", "--") or binary(s, i)):
            kind, new = REPLACED[t.text]
            found.append((kind, t.start, t.end, new))
        if t.text == "!" and t.kind == "sign":
            found.append(("not", t.start, t.end, ""))
        before = s.tokens[i - 1]
        if t.text == "[" and s.tokens[i + 1].text != "]" and (before.kind == "word" or before.text in ")]") \
                and not s.declares(i):
            depth, k = 1, i
            while depth:
                k += 1
                depth += {"[": 1, "]": -1}.get(s.tokens[k].text, 0)
            found.append(("index", t.end, s.tokens[k].start, f"({s.text[t.end:s.tokens[k].start]}) + 1"))
        for kind, start, end, new in found:
            yield s.section(t.line), t.line, kind, start, end, new


class Mutant:
    def __init__(self, section, line, kind, start, end, new):
        self.section, self.line, self.kind, self.start, self.end, self.new = section, line, kind, start, end, new
        self.verdict, self.why = None, ""

    def key(self):
        return self.start, self.end, self.new

    def text(self, s):
        # a mutation keeps line numbers, because __LINE__ is in the object code
        lines = s.text.count("\n", self.start, self.end) - self.new.count("\n")
        return s.text[:self.start] + self.new + "\n" * lines + s.text[self.end:]

    def words(self, s):
        """For example: n [< -> <=] size"""
        first, last = s.text.rindex("\n", 0, self.start) + 1, s.text.index("\n", self.end)
        old = s.text[self.start:self.end]
        around = f"{s.text[first:self.start]}[{old} -> {self.new or 'nothing'}]{s.text[self.end:last]}"
        around = " ".join(around.split())
        at = around.index("[" + " ".join(old.split())[:8])
        return around[max(0, at - 30):at + 110]


def draw(s, seed, only, at):
    """Yields every mutant once, in random order: the sections in turn, and within a section, each kind of mutation
    equally likely."""
    pool, dice = {}, random.Random(seed)
    for site in sites(s):
        line, kind = (at.split(":") + [None])[:2] if at else (None, None)
        if (only and site[0] not in only) or (at and (site[1] != int(line) or (kind and site[2] != kind))):
            continue
        pool.setdefault(site[0], {}).setdefault(site[2], []).append(site)
    while pool:
        order = sorted(pool)
        dice.shuffle(order)
        for section in order:
            kinds = pool[section]
            kind = dice.choice(sorted(kinds))
            site = kinds[kind].pop(dice.randrange(len(kinds[kind])))
            if not kinds[kind]:
                del kinds[kind]
            if not kinds:
                del pool[section]
            yield Mutant(*site)


class Bench:

    def __init__(self, root, scratch, name):
        self.root, self.scratch, self.folder = root, scratch, os.path.join(scratch, name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for entry in os.listdir(root):
            if entry not in ("kbench.h", "build", ".git") and not os.path.abspath(os.path.join(root, entry)) in scratch:
                path = os.path.join(root, entry)
                if entry == "tests":  # tests may be edited while mutants run
                    shutil.copytree(path, os.path.join(self.folder, entry))
                else:
                    os.symlink(os.path.abspath(path), os.path.join(self.folder, entry))
        self.programs, self.kept = os.path.join(self.folder, "programs"), os.path.join(scratch, "kept")
        self.cc = os.path.join(self.folder, "cc")
        with open(self.cc, "w") as f:
            f.write(COMPILER)
        os.chmod(self.cc, 0o755)
        self.cxx = os.path.join(self.folder, "cxx")
        with open(self.cxx, "w") as f:
            f.write('#!/bin/sh\nexec %s "$@" -w\n' % os.environ.get("CXX", "c++"))
        os.chmod(self.cxx, 0o755)
        with open(os.path.join(self.folder, "dumps.c"), "w") as f:
            f.write(DUMPS)

    def put(self, text):
        shutil.rmtree(self.programs, ignore_errors=True)
        os.makedirs(self.programs)
        os.makedirs(self.kept, exist_ok=True)
        with open(os.path.join(self.folder, "kbench.h"), "w", encoding="utf-8") as f:
            f.write(text)

    def environment(self, test, coverage, how):
        e = dict(os.environ, CC=self.cc, CXX=self.cxx, NVCC="", BUILD="build", TEST_CFLAGS="-w", MUTATE_PROGRAMS=self.programs,
                 MUTATE_KEPT=self.kept, MUTATE_O=NOT_O0.get(test, "-O0"), MUTATE_COVERAGE="", LC_ALL="C", CI="1")
        quicker = "clang" if shutil.which("clang") and test not in NOT_O0 else None
        e["MUTATE_CC"] = quicker or os.environ.get("CC", "cc")
        if how:
            e["MUTATE_O"] += " " + OTHERWISE[how]
        if coverage:
            e["MUTATE_CC"] = "gcc"
            e["MUTATE_COVERAGE"] = f"{e['MUTATE_O']} -w --coverage -Wl,--wrap=_exit,--wrap=abort,--wrap=raise,--wrap=kill " \
                f"{self.folder}/dumps.o"
        return e

    def run(self, test, limit, coverage=False, how=None):
        e = self.environment(test, coverage, how)
        base = os.path.join("tests", test)
        script = os.path.exists(os.path.join(self.folder, base + ".sh"))
        if script:
            command = f"exec sh {base}.sh"
        else:
            os.makedirs(os.path.join(self.folder, "build/test/host"), exist_ok=True)
            cuda = ""
            if "virtual_gpu.h" in open(os.path.join(self.folder, base + ".c"), encoding="utf-8").read():
                include = cuda_headers()
                if not include:
                    return None  # tests/run.sh skips it, too
                cuda = f"-DKBENCH_CUDA -isystem '{include}'"
            command = f"$CC -Wno-error {cuda} -I. -Itests {base}.c -o build/test/{test} -lm -ldl -lpthread || exit 1\n" \
                f"exec build/test/{test}"
        p = subprocess.Popen(["sh", "-c", command], cwd=self.folder, env=e, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return watch(p, time.monotonic() + limit, coverage)
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            p.stdout.close()


def watch(p, end, to_the_end):
    seen, failed = b"", None
    with selectors.DefaultSelector() as waiting:
        waiting.register(p.stdout, selectors.EVENT_READ)
        while True:
            if not waiting.select(max(0.0, end - time.monotonic())):
                return "time"
            part = os.read(p.stdout.fileno(), 65536)
            if not part:
                break
            seen += part
            found = re.search(rb"^FAIL: (.*)\n", seen, re.M)
            if found:
                failed = found.group(1).decode(errors="replace")
                if not to_the_end:
                    return failed
    code = p.wait()
    summary = re.search(rb"^\d+ passed, \d+ failed, \d+ skipped$", seen, re.M)
    if failed is None and (code or not summary):
        return f"crash: exit code {code}"
    return failed


class Tests:

    def __init__(self, root, scratch, source, jobs, chosen):
        self.root, self.scratch, self.source, self.jobs = root, scratch, source, jobs
        self.names, self.costs = [], {}
        self.store, self.headers = os.path.join(scratch, "learnt.json"), os.path.join(scratch, "headers")
        self.learnt = json.load(open(self.store)) if os.path.exists(self.store) else {}
        self.header, self.moves = hashlib.sha256(source.text.encode()).hexdigest()[:16], {}
        os.makedirs(self.headers, exist_ok=True)
        with open(os.path.join(self.headers, self.header), "w", encoding="utf-8") as f:
            f.write(source.text)
        folder = os.path.join(root, "tests")
        for f in sorted(glob.glob(folder + "/host/*.c")) + sorted(glob.glob(folder + "/cli/*.sh")):
            name = os.path.relpath(f, folder).rsplit(".", 1)[0]
            if re.match(chosen, name):
                self.names.append(name)
        self.known, self.unused = {}, {}

    def mark(self, name):
        """Returns a hash of all files and options that determine a test, except kbench.h."""
        h = hashlib.sha256((COMPILER + DUMPS + NOT_O0.get(name, "")).encode())
        folder = os.path.join(self.root, "tests")
        files = [os.path.join(folder, f) for f in ("lib.sh", "test.h", "json.h", "guarded.h")]
        files += glob.glob(os.path.join(folder, name + ".*"))
        if name.startswith("host/"):
            files += glob.glob(folder + "/host/*.h")
        if name.startswith("cli/"):
            text = open(os.path.join(folder, name + ".sh"), encoding="utf-8").read()
            files += [f for f in glob.glob(folder + "/cli/*.[cpj]*") if os.path.basename(f) in text]
            if "fixtures" in text:
                files += glob.glob(folder + "/fixtures/**", recursive=True)
        for f in sorted(set(files)):
            if os.path.isfile(f):
                h.update(open(f, "rb").read())
        return h.hexdigest()

    def learn(self, anew):
        """After a change of the header alone, the coverage of its unchanged lines is kept."""
        guard, benches = threading.Lock(), [Bench(self.root, self.scratch, f"learn{k}") for k in range(self.jobs)]

        def one(name):
            mark, old = self.mark(name), self.learnt.get(name)
            if not old or old["mark"] != mark or (anew and old["header"] != self.header):
                with guard:
                    bench = benches.pop()
                print(f"learning {name}", file=sys.stderr)
                old = self.look(bench, name, mark)
                with guard:
                    benches.append(bench)
                    self.learnt[name] = old
                    self.save()
            if old["fails"]:
                for how in (None, *OTHERWISE):
                    self.unused[name, how] = old["fails"]
            self.known[name] = dict(old, lines=self.moved(old["header"], old["lines"]))

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, self.names))
        self.known = {n: self.known[n] for n in self.names}
        self.executable = {int(line) for k in self.known.values() for line in k["lines"]}
        self.by_line = {}
        for name, k in self.known.items():
            for line, count in k["lines"].items():
                if count:
                    self.by_line.setdefault(int(line), set()).add(name)

    def save(self):
        with open(self.store + ".new", "w") as f:
            json.dump(self.learnt, f)
        os.replace(self.store + ".new", self.store)

    def moved(self, header, lines):
        """Converts line numbers of an earlier version of the header to line numbers of this version. Lines that are
        not in this version are omitted."""
        if header == self.header:
            return lines
        if header not in self.moves:
            old = open(os.path.join(self.headers, header), encoding="utf-8").read().split("\n")
            matcher = difflib.SequenceMatcher(None, old, self.source.lines)
            self.moves[header] = {str(b.a + k + 1): str(b.b + k + 1) for b in matcher.get_matching_blocks()
                                  for k in range(b.size)}
        to = self.moves[header]
        return {to[n]: count for n, count in lines.items() if n in to}

    def passes(self, name, bench, how):
        """Returns whether a test passes without a mutation. The test runs in the first call for a version of the
        header; if it passes, later calls use this result."""
        old, key = self.learnt[name], how or "passed"
        if self.header not in (not how and old["header"], old.get(key)):
            bench.put(self.source.text)
            fails = bench.run(name, 300, how=how) and bench.run(name, 300, how=how)
            if fails:
                self.unused[name, how] = fails
                print(f"not used: {name} fails without any mutation{comma(how)}: {fails}", file=sys.stderr)
                return False
            old[key] = self.header
            self.save()
        return True

    def look(self, bench, name, mark):
        shutil.rmtree(os.path.join(bench.folder, "build"), ignore_errors=True)  # built for the coverage of another test
        bench.put(self.source.text)
        fails, seconds = None, 0
        for _ in range(3):
            began = time.monotonic()
            fails = bench.run(name, 300)
            seconds = time.monotonic() - began
            if not fails:
                break
        shutil.rmtree(os.path.join(bench.folder, "build"), ignore_errors=True)
        subprocess.run(["gcc", "-fPIC", "-c", "dumps.c", "-o", "dumps.o"], cwd=bench.folder, check=True)
        bench.run(name, 600, coverage=True)
        return {"mark": mark, "header": self.header, "fails": fails, "seconds": seconds, "lines": counts(bench.folder)}

    def at(self, line):
        """A line without code counts as executed if its function is executed; a line outside functions is executed by
        all tests."""
        s = self.source
        usable = [n for n in self.names if (n, None) not in self.unused]
        beside = set().union({line}, s.spans.get(line, set()))
        code = beside & self.executable
        if line in s.function_at:
            first, last = s.function_at[line]
            if not code or not any(k in self.by_line for k in code):
                code = set(range(first, last + 1)) & self.executable
                # gcov's counters would slow the tests of NOT_O0 down too much, so they are the last choice
                if not any(k in self.by_line for k in code):
                    return [n for n in NOT_O0 if n in usable and any(str(k) in self.known[n]["lines"] for k in code)]
        elif not code:
            return self.order((n for n in usable if self.known[n]["lines"]), s.section(line))
        wanted = set().union(*(self.by_line.get(k, set()) for k in code))
        order = self.order((n for n in wanted if n in usable), s.section(line))
        return sorted(order, key=lambda n: self.known[n]["lines"].get(str(line)) == PARTLY)

    def order(self, names, section):
        """Fast tests that mostly execute this section come first: they were probably written for it."""
        def cost(name):
            if (name, section) not in self.costs:
                lines = [int(n) for n, count in self.known[name]["lines"].items() if count]
                inside = sum(self.source.section(n) == section for n in lines)
                self.costs[name, section] = (2 + self.known[name]["seconds"]) * (len(lines) + 1) / (inside + 1)
            return self.costs[name, section]
        return sorted(names, key=cost)


def counts(folder):
    """Returns a dict from each line of kbench.h to 0 (no program executed it), PARTLY or WHOLLY."""
    lines = {}
    found = [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.endswith(".gcda")]
    for f in found:
        text = subprocess.run(["gcov", "--json-format", "--stdout", f], capture_output=True, cwd=folder).stdout
        for part in text.splitlines():
            for file in json.loads(part)["files"] if part.startswith(b"{") else []:
                if os.path.basename(file["file"]) == "kbench.h":
                    for entry in file["lines"]:
                        n = str(entry["line_number"])
                        seen = entry["count"] and (PARTLY if entry.get("unexecuted_block") else WHOLLY)
                        lines[n] = max(lines.get(n, 0), seen)
    return lines


class Compiled:

    def __init__(self, source, scratch, jobs):
        self.folder = os.path.join(scratch, "object")
        os.makedirs(self.folder, exist_ok=True)
        self.cc = "clang" if shutil.which("clang") else os.environ.get("CC", "cc")  # clang is faster
        include = cuda_headers()
        self.builds = [["-DKBENCH_CUDA", "-isystem", include]] if include else []
        self.builds.append([])
        self.plain = [self.code(source.text, "header", b) for b in self.builds]
        if None in self.plain:
            sys.exit("mutate.py: the header itself does not compile")

    def compile(self, text, name, build, *how):
        h = os.path.join(self.folder, name)
        os.makedirs(h, exist_ok=True)
        with open(os.path.join(h, "kbench.h"), "w", encoding="utf-8") as f:
            f.write(AS_FOR_OBJECT[0].sub(AS_FOR_OBJECT[1], text))
        with open(os.path.join(h, "all.c"), "w") as f:
            f.write('#define KBENCH_IMPLEMENTATION\n#include "kbench.h"\n')
        return subprocess.run([self.cc, *how, *HARD_ERRORS, *build, "all.c"], cwd=h,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def code(self, text, name, build):
        p = self.compile(text, name, build, "-S", "-O1", "-g0", "-o", "-")
        return hashlib.sha256(p.stdout).digest() if p.returncode == 0 else None

    def compiles(self, text, name):
        return all(self.compile(text, name, build, "-fsyntax-only").returncode == 0 for build in self.builds)

    def same(self, text, name):
        return all(self.code(text, name, build) == plain for plain, build in zip(self.plain, self.builds))


def judge(mutant, k, source, tests, compiled, bench, within):
    text, name = mutant.text(source), f"slot{k}"
    if not compiled.compiles(text, name):
        return 1
    bench.put(text)
    names, compared, spent = tests.at(mutant.line), False, 0
    mutant.verdict, mutant.why = "SURVIVED", f"{len(names)} tests" if names else "no test executes it"
    for at, name_of_test in enumerate(names):
        spent += tests.known[name_of_test]["seconds"]
        if at and spent > within:
            mutant.why = f"{at} tests were run, {len(names) - at} that take longer were not"
            break
        if not compared and spent > 10:  # comparing object code takes about 10 s, so tests run first
            compared = True
            if compiled.same(text, name):
                return 2
        if caught_by(mutant, name_of_test, tests, bench, text, None):
            return 0
    if not compared and compiled.same(text, name):
        return 2
    for how in OTHERWISE:
        spent = 0
        for name_of_test in (n for n in names if n.startswith("host/")):
            spent += 3 * tests.known[name_of_test]["seconds"]
            if spent > within:
                break
            if caught_by(mutant, name_of_test, tests, bench, text, how):
                return 0
    return 0


def comma(how):
    return f", {how}" if how else ""


def caught_by(mutant, name, tests, bench, text, how):
    if (name, how) in tests.unused:
        return False
    limit = 20 + (20 if how else 6) * tests.known[name]["seconds"]
    why = bench.run(name, limit, how=how)
    if why:
        again = bench.run(name, limit, how=how)
        if not again:
            mutant.why += f"; {name} failed once of twice: {why[:80]}"
        why = again
    if why and not tests.passes(name, bench, how):
        bench.put(text)
        return False
    if why:
        mutant.verdict, mutant.why = "caught", f"{name}{comma(how)}: {why[:140]}"
    return why is not None


def run_all(args, source, tests, compiled, candidates):
    results, dropped, guard, began = [], [0, 0], threading.Lock(), time.monotonic()
    benches = [Bench(args.root, args.scratch, f"slot{k}") for k in range(args.jobs)]

    def worker(k):
        while True:
            with guard:
                mutant = next(candidates, None) if len(results) < args.count else None
                if mutant is None:
                    return
                results.append(mutant)
            none = judge(mutant, k, source, tests, compiled, benches[k], args.within)
            if none:
                with guard:
                    results.remove(mutant)
                    dropped[none - 1] += 1
                continue
            with guard:
                print(f"{time.monotonic() - began:5.0f} s  {row(mutant, source)}", file=sys.stderr, flush=True)
                if args.json:
                    save(args.json, results)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for f in [pool.submit(worker, k) for k in range(args.jobs)]:
            f.result()
    return results, dropped


def row(m, source):
    return f"{m.section:<11} {m.line:>6}  {m.kind:<7} {m.verdict:<8}  {m.words(source)}\n{'':30}{m.why}"


def save(path, results):
    with open(path + ".new", "w") as f:
        json.dump([vars(m) for m in results if m.verdict], f, indent=0)
    os.replace(path + ".new", path)


def show_coverage(source, tests):
    for tag, _ in source.sections:
        lines = [n for n in sorted(tests.executable) if source.section(n) == tag]
        missed = [n for n in lines if n not in tests.by_line]
        if not lines:
            continue
        runs, first = [], None
        for k, n in enumerate(missed):
            first = n if first is None else first
            following = [x for x in lines if x > n][:1]
            if not following or following[0] not in missed:
                runs.append(f"{first}-{n}" if n > first else str(n))
                first = None
        print(f">>{tag:<11} {len(lines):>5} lines, {len(missed):>4} not executed  {' '.join(runs)}")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--skip", type=int, default=0, help="skips the first SKIP of the drawn mutants")
    p.add_argument("--only", action="append", help="mutates only the section with this tag; repeatable")
    p.add_argument("--at", help="LINE or LINE:KIND; kinds: " + " ".join(KINDS))
    p.add_argument("--tests", default="", help="uses only the tests whose names match this regular expression")
    p.add_argument("--list", action="store_true")
    p.add_argument("--again", help="a --json file")
    p.add_argument("--coverage", action="store_true")
    p.add_argument("--anew", action="store_true", help="measures the coverage again after a change of the header")
    p.add_argument("--least", type=float, default=90,
                   help="exit code 1 if fewer than this percentage of mutants is caught")
    p.add_argument("--within", type=float, default=200, help="stops the tests of a mutant after "
                   "about this many seconds; a mutant that no test has caught by then survives")
    p.add_argument("--json", help="writes each result to this file as soon as it is known")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--root", default=".", help="the repository")
    p.add_argument("--scratch",
                   help="folder for copies of the repository and for coverage; default: build/mutate")
    args = p.parse_args()
    args.root = os.path.abspath(args.root)
    args.scratch = os.path.abspath(args.scratch or os.path.join(args.root, os.environ.get("BUILD", "build"), "mutate"))
    os.makedirs(args.scratch, exist_ok=True)
    return args


def main():
    args = arguments()
    source = Source(os.path.join(args.root, "kbench.h"))
    only = {o.lstrip(">") for o in args.only or []}
    unknown = only - {tag for tag, _ in source.sections}
    if unknown:
        sys.exit(f"mutate.py: no section {', '.join(sorted(unknown))} below the line 'Stop here'")
    candidates = draw(source, args.seed, only, args.at)
    if args.again:
        survived = [m for m in json.load(open(args.again)) if m["verdict"] == "SURVIVED"]
        candidates = iter([Mutant(*(m[k] for k in "section line kind start end new".split())) for m in survived])
        args.count = len(survived)
    for _ in range(args.skip):
        next(candidates, None)
    if args.list:
        for _, m in zip(range(args.count), candidates):
            print(f"{m.section:<11} {m.line:>6}  {m.kind:<7} {m.words(source)}")
        return 0
    tests = Tests(args.root, args.scratch, source, args.jobs, args.tests)
    tests.learn(args.anew)
    for name, why in {n: why for (n, _), why in tests.unused.items()}.items():
        print(f"not used: {name} fails without any mutation: {why}")
    if args.coverage:
        return show_coverage(source, tests)
    results, dropped = run_all(args, source, tests, Compiled(source, args.scratch, args.jobs), candidates)
    if args.json:
        save(args.json, results)
    for m in sorted(results, key=lambda m: m.line):
        print(row(m, source))
    caught = sum(m.verdict == "caught" for m in results)
    print(f"seed {args.seed}: {caught} of {len(results)} caught; discarded: {dropped[0]} that do not compile, "
          f"{dropped[1]} with the same object code")
    return 0 if results and 100 * caught >= args.least * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
