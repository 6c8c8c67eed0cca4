#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Generates the PTX text in kbench.h (section >>ptx) and examples/addons/selftest.cu from engine.cu, or checks
that this text is up to date.

    python3 tests/ptx/make.py                    compares both texts with the output of nvcc for engine.cu
    python3 tests/ptx/make.py --write FILE       replaces the text in one of the files; do not edit it by hand
    python3 tests/ptx/make.py --text             prints the texts as the driver gets them, one module after another;
                                                 needs no nvcc

--header FILE compares only this file, whose name must end with kbench.h or selftest.cu. --nvcc FILE uses another nvcc.
Exit codes: 0: the texts are equal, or were written; 1: the texts differ, although nvcc is the version that the header
names; 2: the script cannot run; 3: the texts differ, and nvcc is another version.

nvcc's PTX is of the newest version and for Turing or later. The functions of engine.cu need neither, so the script
lowers both, to 6.4 and sm_70; ptxas rejects PTX that needs more (tests/compile/ptx.sh). The script also shortens the
PTX: no comments and white space, short names, long lines.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "engine.cu")
FILES = [os.path.normpath(os.path.join(HERE, "..", "..", name)) for name in ("kbench.h", "examples/addons/selftest.cu")]
BEGIN = "// The PTX was compiled by nvcc from CUDA C"
END = "// clang-format on"
VERSION, TARGET, ARCH = "6.4", "sm_70", 70
COLUMNS = 118  # maximum length of a line of kbench.h, in characters
LITERAL = 4095  # longest string literal that every C compiler must accept, in characters
# the line of engine.cu after which the kernels of the second module begin
APART = re.compile(r"^// --- from here on: (\w+), a module of its own", re.M)
DTYPES = "F32 F64 F16 BF16 I8 U8 I16 U16 I32 U32 I64 U64 TF32 E4M3 E5M2".split()
KINDS = "ZERO NORMAL UNIFORM IOTA".split()


def stop(text):
    sys.stderr.write("make.py: %s\n" % text)
    sys.exit(2)


def find_nvcc():
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    return shutil.which("nvcc") or next((p for p in (os.path.join(h, "bin", "nvcc") for h in homes if h)
                                         if os.path.exists(p)), None)


def output(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    except OSError as e:
        stop("%s: %s" % (command[0], e.strerror))
    if done.returncode:
        stop("%s failed:\n%s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


def nvcc_release(nvcc):
    found = re.search(r"\bV(\d+\.\d+\.\d+)", output(nvcc, "--version"))
    if not found:
        stop("%s --version prints no release number" % nvcc)
    return found.group(1)


def compile_ptx(nvcc):
    arches = sorted(int(a) for a in re.findall(r"compute_(\d+)\b", output(nvcc, "--list-gpu-arch")))
    arch = next((a for a in arches if a >= ARCH), None) or stop("%s knows no GPU since Volta" % nvcc)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "engine.ptx")
        # the device must compute the same bits as the host
        output(nvcc, "-ptx", "-std=c++14", "-arch=compute_%d" % arch, "-fmad=false", "-ftz=false", "-prec-div=true",
               "-prec-sqrt=true", SOURCE, "-o", out)
        with open(out) as f:
            return f.read()


def statements(body):
    body = re.sub(r"//[^\n]*", "", body)
    found = []
    for line in body.split("\n"):
        line = " ".join(line.split())
        # the statement of an inline function from a CUDA header is enclosed in braces
        scope = re.match(r"^\{ ?([^{}]*;) ?\}$", line)
        line = scope.group(1) if scope else line
        label = re.match(r"^(\$\w+): ?(.*)$", line)
        if label:
            found.append(label.group(1) + ":")
            line = label.group(2)
        if line:
            found.append(line)
    for s in found:
        if not s.endswith((";", ":")) or s.count(";") > 1:
            stop("this line is not a single statement: %s" % s)
        if s.startswith(".") and not s.startswith((".reg ", ".pragma ", ".shared ")):
            stop("only registers and shared memory may be declared, not: %s" % s)
        if s.startswith("call"):
            stop("a function is called: %s" % s)
    return found


def straighten(lines):
    """Replaces `@p bra A; bra B; A:` by `@!p bra B; A:`, and removes unused labels."""
    out, i = [], 0
    while i < len(lines):
        taken = re.match(r"^@(%p\d+) bra (\$\w+);$", lines[i])
        other = re.match(r"^bra(?:\.uni)? (\$\w+);$", lines[i + 1]) if taken and i + 2 < len(lines) else None
        if other and lines[i + 2] == taken.group(2) + ":":
            out.append("@!%s bra %s;" % (taken.group(1), other.group(1)))
            i += 2
        else:
            out.append(lines[i])
            i += 1
    used = set(re.findall(r"bra(?:\.uni)? (\$\w+);", "\n".join(out)))
    return [s for s in out if not s.endswith(":") or s[:-1] in used]


def layout(lines):
    out = []
    for s in lines:
        if out and len(literal(out[-1])) + len(s.replace('"', '\\"')) <= COLUMNS - 5:
            out[-1] += s
        else:
            out.append(s)
    return out


def shortened(name, text):
    text = re.sub(r"\b%s_param_(\d+)" % name, r"p\1", text)
    for long, short in (("rd", "d"), ("fd", "g"), ("rs", "h")):
        text = re.sub(r"%%%s(?=\d|<)" % long, "%" + short, text)
    text = re.sub(r"\$L__BB\d+_(\d+)", r"$\1", text)
    return re.sub(r"([,;:]) ", r"\1", text)


def head_of(name, text):
    """A line of kbench.h may end only after one of these strings."""
    text = re.sub(r"\.ptr(?: \.\w+)? \.align \d+ ", "", " ".join(text.split()))
    return (".visible .entry %s(%s){" % (name, shortened(name, text))).replace(",", ",\n").split("\n")


def lower(ptx):
    entry = re.compile(r"^\.visible \.entry (\w+)\(([^)]*)\)\s*\{\n(.*?)^\}$", re.M | re.S)
    rest = re.sub(r"//[^\n]*", "", entry.sub("", ptx))
    if re.sub(r"\.version \S+|\.target \S+|\.address_size 64|\s", "", rest):
        stop("the PTX contains more than kernels: %s" % " ".join(rest.split()))
    found = []
    for name, params, body in entry.findall(ptx):
        lines = straighten(statements(body))
        lines = [shortened(name, s) for s in lines]
        lines = [re.sub(r"\b_ZZ%d%sE\d*(\w+?)\b" % (len(name), name), r"\1", s) for s in lines]  # shared arrays
        found.append((name, head_of(name, params), lines))
    return found


def comments(source):
    """The signature is the comment above the kernel, up to the colon."""
    above = re.compile(r'((?:^//[^\n]*\n)+)extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(', re.M)
    return {name: " ".join(re.sub(r"^// ?", "", text, flags=re.M).split()).split("):")[0] + ")"
            for text, name in above.findall(source)}


def repeated(lines):
    """Finds the repeated group of statements that saves most if written only once. Returns (index of the first
    statement, number of statements in the group, number of repetitions), or None."""
    best = None
    for start in range(len(lines)):
        for period in range(4, 33):
            times = 1
            while lines[start + times * period:start + (times + 1) * period] == lines[start:start + period]:
                times += 1
            if times >= 4 and (best is None or (times - 1) * period > (best[2] - 1) * best[1]):
                best = (start, period, times)
    return best


def literal(line):
    return '"%s"' % line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def pieces(lines):
    out, length = [], 0
    for i, line in enumerate(lines):
        length += len(line)
        if length > LITERAL:
            out[-1] += ","
            length = len(line)
        out.append("    " + literal(line))
    if out:
        out[-1] += ","
    return out


def macro_of(name, head, lines):
    """Returns two lists of lines: the macro with the repeated statements, and the kernel, which uses the macro."""
    found = repeated(lines)
    if not found:
        return [], pieces(layout(head + lines + ["}\n"]))
    start, period, times = found
    macro = "KBI_PTX_" + name.replace("kbi_", "").upper()
    body = layout(lines[start:start + period])
    length = sum(len(s) for s in body)
    per = max(n for n in range(1, times + 1)
              if times % n == 0 and n * length <= LITERAL and 4 + n * (len(macro) + 1) <= COLUMNS)
    body = [literal(s) for s in body]
    width = max(len(s) for s in body) + 5
    define = ["// %s contains this macro %d times" % (name, times), ("#define " + macro).ljust(width) + "\\"]
    define += [("    " + s).ljust(width) + "\\" for s in body[:-1]] + ["    " + body[-1]]
    use = ["    " + " ".join([macro] * per) + ","] * (times // per)
    return define + [""], pieces(layout(head + lines[:start])) + use + pieces(layout(lines[start + period * times:] + ["}\n"]))


def codes_check():
    names = ["KB_%s == %d" % (n, i + 1) for i, n in enumerate(DTYPES)]
    names += ["KB_%s == %d" % (n, i) for i, n in enumerate(KINDS)]
    text = "enum { KBI_PTX_CODES = 1 / (int)(%s) };" % " && ".join(names)
    return textwrap.wrap(text, COLUMNS, subsequent_indent=" " * 33)


def block(release, ptx, source, own):
    """Returns the generated lines of a header. own: true for the second module, which only the self-test loads."""
    said = comments(source)
    text = ("%s (no contraction, no flush to zero) and lowered to PTX %s for %s, so that every driver since CUDA 10.1 "
            "loads it on every GPU since Volta. The source is tests/ptx/engine.cu; tests/ptx/make.py "
            "generates the text with nvcc %s. Change the source, not this text. The strings of an array are joined in "
            "order, because C guarantees only %d characters per literal.%s" % (BEGIN[3:], VERSION, TARGET, release, LITERAL, "" if own else " kbi_fill contains the values of the "
             "enums of dtypes and kinds; if one changes, the division below fails to compile."))
    macros = []
    apart = APART.search(source) or stop("engine.cu does not say where its second module begins")
    second = re.findall(r"__global__ void (\w+)", source[apart.end():])
    begin = pieces([".version %s\n.target %s\n.address_size 64\n" % (VERSION, TARGET)])
    array = ["static const char* const %s[] = {" % (apart.group(1) if own else "kbi_ptx")] + begin
    for name, head, lines in lower(ptx):
        if name not in said:
            stop("%s has no comment right above it in engine.cu" % name)
        if (name in second) != own:
            continue
        macro, code = macro_of(name, head, lines)
        macros += macro
        array += textwrap.wrap("// " + said[name], COLUMNS, initial_indent="    ", subsequent_indent="    // ") + code
    opening = textwrap.wrap("// " + text, COLUMNS, subsequent_indent="// ")
    return opening + ["// clang-format off"] + ([] if own else codes_check() + [""]) + macros + array + ["};", END]


def find_block(path):
    try:
        with open(path) as f:
            lines = f.read().split("\n")
    except OSError as e:
        stop("%s: %s" % (path, e.strerror))
    first = [i for i, s in enumerate(lines) if s.startswith(BEGIN)]
    if len(first) != 1:
        stop("%s: %d lines begin with '%s', expected one" % (path, len(first), BEGIN))
    for i in range(first[0], len(lines) - 1):
        if lines[i] == "};" and lines[i + 1] == END:
            return lines, first[0], i + 1
    stop("%s: '};' and '%s' do not end the generated lines after line %d" % (path, END, first[0] + 1))


def header_text(lines):
    macros, name = {}, None
    out = []
    for line in lines:
        define = re.match(r"#define (\w+)", line)
        if define:
            name = define.group(1)
            macros[name] = []
            continue
        parts = []
        code = re.sub(r"^\s*//.*", "", line)
        for string, word in re.findall(r'"((?:[^"\\]|\\.)*)"|\b(KBI_PTX_\w+)', code):
            parts += macros.get(word, []) if word else [re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), string)]
        if name:
            macros[name] += parts
            if not line.endswith("\\"):
                name = None
        else:
            out += parts
    return "".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", help="the header in which the generated lines are replaced")
    parser.add_argument("--header", metavar="FILE")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--nvcc", default=None, metavar="FILE")
    options = parser.parse_args()
    paths = [options.write or options.header] if options.write or options.header else FILES
    if options.text:
        for path in paths:
            lines, first, last = find_block(path)
            sys.stdout.write(header_text(lines[first:last + 1]))
        return 0
    nvcc = options.nvcc or find_nvcc() or stop("no nvcc; set CUDA_HOME, put it on the PATH, or name it by --nvcc")
    release = nvcc_release(nvcc)
    with open(SOURCE) as f:
        source = f.read()
    ptx = compile_ptx(nvcc)
    return max(compare(path, block(release, ptx, source, path.endswith(".cu")), release, options.write) for path in paths)


def compare(path, made, release, write):
    lines, first, last = find_block(path)
    if write:
        with open(path, "w") as f:
            f.write("\n".join(lines[:first] + made + lines[last + 1:]))
        return 0
    there = lines[first:last + 1]
    recorded = re.search(r"nvcc (\d+\.\d+\.\d+)", " ".join(s.lstrip("/ ") for s in there[:8]))
    recorded = recorded.group(1) if recorded else "of an unknown release"
    if header_text(there) == header_text(made) and (recorded != release or there == made):
        return 0
    changes = difflib.unified_diff(there, made, path, "engine.cu by nvcc " + release, lineterm="", n=1)
    print("\n".join(list(changes)[:60]))
    print("%s: its PTX was made by nvcc %s; nvcc %s compiles engine.cu to different PTX" %
          (path, recorded, release))
    return 1 if recorded == release else 3


if __name__ == "__main__":
    sys.exit(main())
