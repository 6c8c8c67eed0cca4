#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Takes one kernel out of kbench_kernels.cuh:

    python3 tests/extract.py OP[/DIRECTION]/VARIANT/DTYPE > one.cu     as matmul/tma/bf16, softmax/bwd/onepass/f32
    python3 tests/extract.py --list                                    prints all names
    python3 tests/extract.py --check                                   extracts all kernels, prints invalid parameters

one.cu has the device code and the host launcher of this variant, and nothing else of the header. The kernels and the
function that launches them take plain pointers and sizes. If the header's launcher would pass an input to another
variant, the extracted launcher rejects it. The main program checks the kernel against the double-precision reference
of the operation and times it with kbench.h. -DKERNEL_ONLY leaves the main program out.

Method: the header is split into tokens and into top-level declarations. Conditionals are evaluated for CUDA and
for the compute capability of the variant; conditions that depend on the compilation (__CUDA_ARCH__) stay in the
output. The output has the launcher and, repeatedly, each declaration whose name occurs in the output.
Functions of the host that describe tensors, formulas and scratch memory are evaluated symbolically, so that only
their result is written. A struct parameter of a kernel is replaced by one parameter for each member that device
code reads."""

import copy
import difflib
import functools
import os
import re
import sys

TYPES = {"f32": "float", "f16": "__half", "bf16": "__nv_bfloat16"}
TYPE_NUMBERS = {"f32": 0, "f16": 1, "bf16": 2}
DIRECTIONS = ("fwd", "run", "bwd", "fwdbwd")
MASKS = {"KBK_ALL": "f32 f16 bf16", "KBK_HALF": "f16 bf16", "KBK_SINGLE": "f32", "KBK_BRAIN": "bf16"}

# Shape parameters of each family of operations: name, field of kbk_shape, default value in the benchmark.
SHAPES = {
    "KBK_MAP": [("n", "cols", 1 << 22)],
    "KBK_SUM": [("n", "cols", 1 << 22)],
    "KBK_PICK": [("n", "cols", 1 << 20)],
    "KBK_ROWS": [("rows", "rows", 1024), ("cols", "cols", 4096)],
    "KBK_GEMM": [("M", "rows", 1024), ("N", "cols", 1024), ("K", "k", 1024)],
    "KBK_ATTN": [("batch", "batch", 2), ("heads", "heads", 4), ("rows", "rows", 512), ("cols", "cols", 128)],
    "KBK_LOOKUP": [("rows", "rows", 2048), ("cols", "cols", 768), ("vocabulary", "vocabulary", 8192)],
}

OTHERS = ("k", "vocabulary", "stride", "among")

# Shorter replacements for functions of the header that cache values of many kernels and devices, for programs that
# use one kernel on one device in one thread.
SHORTER = {
    "kbki_once": """\
// Caches the values that the runtime reports for kernels on one device, in one thread.
template <class Ask>
cudaError_t kbki_once(const void* kernel, kbki_what what, int group, int threads, size_t bytes, int* value, Ask ask) {
    static struct { const void* kernel; uint64_t key; size_t bytes; int value; } known[64];
    static int count;
    const uint64_t key = (uint64_t)what << 60 | (uint64_t)group << 32 | (uint64_t)threads;
    for (int i = 0; i < count; i++)
        if (known[i].kernel == kernel && known[i].key == key && known[i].bytes == bytes)
            return *value = known[i].value, cudaSuccess;
    cudaError_t e = ask(value);
    if (e == cudaSuccess && count < 64) known[count++] = { kernel, key, bytes, *value };
    return e;
}""",
    "kbki_attribute": """\
// Returns an attribute of the current device; 0 if the attribute cannot be read.
inline int kbki_attribute(cudaDeviceAttr attribute) {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess) return value;
    return cudaGetLastError(), 0;
}""",
    "kbki_needs_hopper": """\
inline const char* kbki_needs_hopper(void) {
    return kbki_capability() == 90 ? NULL : "this variant needs compute capability 9.0 exactly";
}""",
    "kbki_what": """\
typedef enum kbki_what { KBKI_ATTRIBUTE, KBKI_PTX, KBKI_THREADS, KBKI_GRANTED, KBKI_CTAS, KBKI_CLUSTERS } kbki_what;""",
    "kbki_error": """\
inline const char* kbki_error(cudaError_t e) { return cudaGetLastError(), cudaGetErrorString(e); }""",
    "kbki_want_shared": """\
// Allows a kernel *bytes of dynamic shared memory on one device; sets *bytes to 0 if an SM cannot give a CTA so much.
inline const char* kbki_want_shared(const void* kernel, size_t* bytes) {
    static struct { const void* kernel; size_t bytes; } known[64];
    static int count;
    int i = 0;
    if (*bytes <= (40u << 10)) return NULL; // allowed without asking
    if (*bytes + 1024 > (size_t)kbki_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin))
        return *bytes = 0, (const char*)NULL;
    while (i < count && known[i].kernel != kernel) i++;
    if (i < count && known[i].bytes >= *bytes) return NULL;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*bytes);
    if (e == cudaSuccess && i < 64) known[i] = { kernel, *bytes }, count += i == count;
    return e == cudaSuccess ? NULL : kbki_error(e);
}""",
}


def stop(text):
    sys.exit("extract.py: " + text)


# --- tokens

LEXEME = re.compile(
    r"""(?P<space>(?:[ \t\r\n]|\\\n)+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|/\*.*?\*/|//[^\n]*|[^\n])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<mark>::|->\*?|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\.\.\.|[^\s])""",
    re.X | re.S,
)


class Token:
    __slots__ = ("kind", "text", "start", "end")

    def __init__(self, kind, text, start=0):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)


def tokens_of(text):
    return [Token(m.lastgroup, m.group(), m.start()) for m in LEXEME.finditer(text)]


def code(tokens):
    return [t for t in tokens if t.kind not in ("space", "comment", "directive")]


@functools.lru_cache(maxsize=None)
def tokens_kept(text):
    """Callers must not change the tokens."""
    return tuple(tokens_of(text))


@functools.lru_cache(maxsize=None)
def code_kept(text):
    return code(tokens_kept(text))


def names_in(tokens):
    return {t.text for t in tokens if t.kind == "name"}


TIGHT = ("(", ")", "]", "[", ",", ";", ".", "::", "->", ">")
SPACED = ("if", "for", "while", "return", "=", "<", "&&", "||", "?", ":", ",", "+", "-", "*", "/")


def joined(tokens):
    """The tokens have no layout; the text gets conventional spaces."""
    text = ""
    for t in tokens:
        tight = not text or text[-1] in "([~!." or text.endswith(("::", "->")) or t.text in TIGHT
        if t.text == "(" and text.endswith(SPACED):
            tight = False
        if text.endswith("<") and t.kind == "name" or t.text == "<":
            tight = True
        if t.text in ("*", "&") and text and (text[-1].isalnum() or text[-1] in "_>)"):
            tight = True
        tight = tight or t.text in ("++", "--") and (text[-1].isalnum() or text[-1] in "_)]")
        text += t.text if tight else " " + t.text
    return text


def laid_out(text):
    """The tokens have no layout; the text has a statement per line."""
    out, depth, inside = "", 0, 0
    for i, c in enumerate(text):
        inside += (c == "(") - (c == ")")
        depth += c == "{"
        if c == "}":
            depth -= 1
            out = out.rstrip() + "\n" + " " * 4 * depth
        out += c if c != " " or not out.endswith((" ", "\n")) else ""
        if c in "{};" and not inside and (c != "}" or depth):
            out += "\n" + " " * 4 * depth
    return re.sub(r"\{\n +\n( *)\}", r"{\n\1}", out)


# --- preprocessor


class Macro:
    def __init__(self, name, params, body, text):
        self.name, self.params, self.body, self.text = name, params, body, text
        self.pastes = any(t.text == "##" for t in body)


def macro_of(line):
    m = re.match(r"\s*#\s*define\s+(\w+)(\(([^)]*)\))?", line)
    params = (
        None if m.group(2) is None else [p.strip() for p in m.group(3).replace("\\\n", " ").split(",") if p.strip()]
    )
    return Macro(m.group(1), params, code(tokens_of(line[m.end() :])), line)


def condition(text, defined):
    """Returns the value of a condition: True, False, or None if it depends on the compilation."""
    text = re.sub(r"//.*|/\*.*?\*/|\\\n", " ", text)
    if any(defined.get(name, 0) is None for name in re.findall(r"[A-Za-z_]\w*", text)):
        return None
    text = re.sub(r"\bdefined\s*\(?\s*(\w+)\s*\)?", lambda m: str(int(m.group(1) in defined)), text)
    text = re.sub(r"[A-Za-z_]\w*", lambda m: str(defined.get(m.group(), 0)), text)
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    return bool(eval(text, {"__builtins__": {}}))  # safe: the text consists only of numbers and operators


def known_macros(sm):
    """None: the value depends on the compilation."""
    arch = 900 if sm.startswith("90") else None
    return {
        "__CUDACC__": 1,
        "__cplusplus": 201703,
        "__CUDA_ARCH__": arch,
        "__CUDA_ARCH_FEAT_SM90_ALL": 1 if sm == "90a" else None,
        "CUDART_VERSION": None,
    }


class Item:

    def __init__(self, names, text, tokens, start, guards=(), macro=None, head=None):
        self.names, self.text, self.tokens, self.start, self.guards, self.macro = (
            names,
            text,
            tokens,
            start,
            guards,
            macro,
        )
        self.head = head if head is not None else tokens

    def __copy__(self):
        new = Item.__new__(Item)
        new.__dict__.update(self.__dict__)
        return new


class Header:
    def __init__(self, text, tokens, sm):
        self.text, self.macros, self.items, self.used = text, {}, [], set()
        self.defined = dict(known_macros(sm))
        self.read(tokens)
        self.by_name = {}
        for item in self.items:
            for name in item.names:
                self.by_name.setdefault(name, []).append(item)

    def copied(self):
        new, items = copy.copy(self), {id(i): copy.copy(i) for i in self.items}
        new.items = list(items.values())
        new.by_name = {name: [items[id(i)] for i in found] for name, found in self.by_name.items()}
        return new

    def read(self, tokens):
        """Splits the file. Inactive code is skipped. A conditional directive inside a declaration is resolved if its
        condition is known."""
        stack = []
        current, comments, depth, first, ended = [], [], 0, None, 0
        for t in tokens:
            if t.kind == "directive":
                word = re.match(r"\s*#\s*(\w+)", t.text).group(1)
                if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                    self.conditional(word, t, stack, current if first else None)
                    comments = comments if first else []
                    continue
                if any(s["state"] == "off" for s in stack):
                    continue
                if first:
                    current.append(t)  # #pragma inside a function
                elif word == "define":
                    m = macro_of(t.text.strip("\n"))
                    self.defined[m.name] = 1
                    self.macros[m.name] = m
                    self.items.append(
                        Item([m.name], self.with_comments(comments, m.text), m.body, t.start, self.guards(stack), m)
                    )
                    comments = []
                elif word == "undef":
                    self.defined.pop(re.match(r"\s*#\s*undef\s+(\w+)", t.text).group(1), None)
                continue
            if any(s["state"] == "off" for s in stack):
                continue
            if first is None and t.kind == "comment":
                if self.items and not self.text.count("\n", ended, t.start):
                    self.items[-1].text += " " + t.text
                else:
                    comments.append(t)
                continue
            if first is None and t.kind == "space":
                if t.text.count("\n") > 1:
                    comments = []
                continue
            current.append(t)
            if t.kind in ("space", "comment"):
                continue
            first = first or t
            if t.kind != "mark":
                continue
            depth += t.text in "([{"
            depth -= t.text in ")]}"
            if depth == 0 and (
                t.text == ";"
                or t.text == "}"
                and self.is_function(current)
                or t.text == ")"
                and self.is_invocation(current)
            ):
                self.add(current, comments, self.guards(stack))
                current, comments, first, ended = [], [], None, t.end

    @staticmethod
    def guards(stack):
        return tuple(s["line"] for s in stack if s["state"] == "unknown")

    def conditional(self, word, t, stack, current):
        """Processes a conditional directive. current: the tokens of the declaration that contains the directive, or
        None between declarations."""
        line = re.match(r"\s*#\s*\w+\s*(.*)", t.text, re.S).group(1)
        opens = word.startswith("if")
        off = any(s["state"] == "off" for s in (stack if opens else stack[:-1]))
        if opens:
            text = line if word == "if" else "defined(%s)" % line.split()[0]
            text = "!" + text if word == "ifndef" else text
            value = False if off else condition(text, self.defined)
            state = "unknown" if value is None else "on" if value else "off"
            stack.append({"state": state, "taken": bool(value), "line": t.text.strip(), "written": state == "unknown"})
            if state == "unknown" and current is not None:
                current.append(t)
            return
        top = stack[-1]
        if word == "endif":
            if top["written"] and current is not None:
                current.append(t)
            stack.pop()
        elif not off:
            if top["written"]:
                if current is not None:
                    current.append(t)
                elif word == "else":
                    top["line"] = "#if !(%s)" % re.sub(r"^#\s*if(def)?\s*", "", top["line"])
                return
            value = not top["taken"] and (word == "else" or condition(line, self.defined))
            if value is None:
                stop("#elif that depends on the compilation, after a known #if: " + line)
            top["state"], top["taken"] = "on" if value else "off", top["taken"] or value

    def is_function(self, tokens):
        """Returns whether a declaration is complete after a }. A function is complete; a type or an initialiser still
        needs a semicolon."""
        head = [t.text for t in self.without_template(self.head_of(code(tokens)))]
        opening = head.index("(") if "(" in head else 0
        return opening and "=" not in head[:opening] and head[0] not in ("typedef", "struct", "union", "enum")

    def is_invocation(self, tokens):
        m = self.macros.get(tokens[0].text)
        return m is not None and m.params is not None and m.name not in ("KBKI_REF", "KBKI_SCRATCH")

    @staticmethod
    def without_template(c):
        while c and c[0].text == "template":
            depth, i = 0, 1
            while i < len(c):
                depth += c[i].text == "<"
                depth -= {">": 1, ">>": 2}.get(c[i].text, 0)
                i += 1
                if depth == 0:
                    break
            c = c[i:]
        return c

    @staticmethod
    def head_of(c):
        for i, t in enumerate(c):
            if t.text == "{":
                return c[:i]
        return c

    def with_comments(self, comments, text):
        left_out = ("// clang-format", "/*----", "/*  measured ")
        kept = [t.text for t in comments if not t.text.startswith(left_out) and " ----" not in t.text[:60]]
        return "\n".join(kept + [text])

    def add(self, tokens, comments, guards):
        c = code(tokens)
        m = self.macros.get(c[0].text)
        if m is not None and m.params is not None and len(c) > 1 and c[1].text == "(":
            self.add_expanded(tokens, comments, guards)
            return
        text = "".join(t.text for t in tokens)
        text = re.sub(r"\n{2,}", "\n", text)
        names = self.names_of(c)
        if not names:
            if c[0].text in ("template", "static_assert"):
                return  # an assertion or an explicit instantiation
            stop("no name found in: %s (line %d)" % (joined(c)[:200], self.text.count("\n", 0, tokens[0].start) + 1))
        self.items.append(
            Item(names, self.with_comments(comments, text), c, tokens[0].start, guards, head=self.head_of(c))
        )

    def add_expanded(self, tokens, comments, guards):
        c, close, depth = code(tokens), 0, 0
        for i, t in enumerate(tokens):
            depth += t.text == "("
            depth -= t.text == ")"
            if t.text == ")" and depth == 0:
                close = i
                break
        self.used = set()
        head = self.expand(code(tokens[: close + 1]), only_declarations=True)
        rest = "".join(t.text for t in tokens[close + 1 :])
        if rest.strip():
            tokens_new = tokens_of(joined(head) + rest)
            names = self.names_of(code(tokens_new))
            self.items.append(
                Item(
                    names,
                    self.with_comments(comments, "".join(t.text for t in tokens_new)),
                    code(tokens_new),
                    tokens[0].start,
                    guards,
                    head=self.head_of(code(tokens_new)),
                )
            )
            return
        if c[0].text == "KBKI_WGMMA_BOTH":  # its two calls
            arguments = "".join(t.text for t in tokens[tokens.index(c[1]) + 1 : close])
            for element, text in (("__half", '"f16"'), ("__nv_bfloat16", '"bf16"')):
                self.add(tokens_of("KBKI_WGMMA(%s, %s, %s)" % (element, text, arguments)), [], guards)
            return
        if head[0].text == "template" and head[3].text == "struct":
            written = [Token("name", n) for n in self.used]
            self.items.append(Item([head[4].text], joined(c), head + written, tokens[0].start, guards, head=c))
            return
        current, depth = [], 0
        for t in head:
            current.append(t)
            depth += t.text in ("(", "[", "{")
            depth -= t.text in (")", "]", "}")
            if depth == 0 and (t.text == ";" or t.text == "}" and self.is_function(current)):
                self.items.append(
                    Item(
                        self.names_of(current),
                        self.with_comments(comments, joined(current) if len(current) < 60 else laid_out(joined(current))),
                        current,
                        tokens[0].start,
                        guards,
                        head=self.head_of(current),
                    )
                )
                current = []
        if current:
            stop("the expansion of %s is no declaration" % c[0].text)

    def expand(self, tokens, only_declarations=False, hidden=()):
        """Replaces calls of the header's function-like macros, because some declarations get their names from macros.
        only_declarations: calls of macros that form expressions or attributes are not expanded."""
        out, i = [], 0
        while i < len(tokens):
            t = tokens[i]
            m = self.macros.get(t.text) if t.kind == "name" and t.text not in hidden else None
            if (
                m is None
                or m.params is None
                or i + 1 >= len(tokens)
                or tokens[i + 1].text != "("
                or only_declarations
                and not self.declares(m)
            ):
                out.append(t)
                i += 1
                continue
            self.used.add(m.name)
            args, depth, i = [[]], 1, i + 2
            while depth:
                a = tokens[i]
                depth += a.text in ("(", "[", "{")
                depth -= a.text in (")", "]", "}")
                if a.text == "," and depth == 1:
                    args.append([])
                elif depth:
                    args[-1].append(a)
                i += 1
            out += self.expand(self.substitute(m, args), only_declarations, hidden + (m.name,))
        return out

    @staticmethod
    def declares(m):
        if m.pastes or m.name in ("KBKI_LAUNCHER", "KBKI_FORMULA", "KBKI_WGMMA_ALONG"):
            return True
        return any(t.text in ("KBKI_LAUNCHER", "KBKI_REF") or t.text.startswith("KBKI_WG_") for t in m.body)

    @staticmethod
    def substitute(m, args):
        bound = {}
        for k, p in enumerate(m.params):
            if p == "...":
                rest = []
                for a in args[k:]:
                    rest += ([Token("mark", ",")] if rest else []) + a
                bound["__VA_ARGS__"] = rest
            else:
                bound[p] = args[k] if k < len(args) else []
        out, i = [], 0
        while i < len(m.body):
            t = m.body[i]
            if t.text == "##":
                right = bound.get(m.body[i + 1].text, [m.body[i + 1]])
                left = out.pop() if out else Token("name", "")
                out.append(Token("name", left.text + (right[0].text if right else "")))
                out += right[1:]
                i += 2
                continue
            if t.text == "#" and i + 1 < len(m.body) and m.body[i + 1].text in bound:
                out.append(Token("string", '"%s"' % joined(bound[m.body[i + 1].text])))
                i += 2
                continue
            out += bound.get(t.text, [t]) if t.kind == "name" else [t]
            i += 1
        return out

    def names_of(self, c):
        c = self.without_template(c)
        head = self.head_of(c)
        texts = [t.text for t in head]
        names = []
        if "enum" in texts[:2]:
            inside = c[len(head) + 1 :]
            for i, t in enumerate(inside):
                if t.text == "}":
                    break
                if t.kind == "name" and (i == 0 or inside[i - 1].text == ","):
                    names.append(t.text)
        if texts and texts[0] == "typedef":
            star = next((i for i in range(len(c) - 2) if c[i].text == "(" and c[i + 1].text == "*"), None)
            names.append(c[star + 2].text if star is not None and "{" not in [t.text for t in c[:star]] else c[-2].text)
        for i, t in enumerate(head):
            if t.text in ("struct", "union", "class", "enum") and "(" not in texts[:i]:
                tag = next(
                    (x for x in head[i + 1 :] if x.kind == "name" and x.text not in ("alignas", "__align__")), None
                )
                body = len(head) < len(c) or tag is not None and c[-2] is tag
                if tag is not None and body and (i == 0 or texts[0] == "typedef"):
                    names.append(tag.text)
                break
        if names:
            return names
        if texts[0] == "using":
            return [texts[1]]
        depth, i = 0, 0
        while i < len(c):
            t = c[i]
            if (
                t.text in ("__launch_bounds__", "__attribute__", "alignas", "__align__")
                and c[i + 1].text == "("
            ):
                i += 1
                open_count = 0
                while True:
                    open_count += c[i].text == "("
                    open_count -= c[i].text == ")"
                    i += 1
                    if not open_count:
                        break
                continue
            if t.text == "<":
                depth += 1
            elif t.text in (">", ">>"):
                depth -= len(t.text)
            elif depth == 0 and t.text in ("(", "=", "[", "{", ";"):
                k = i - 1
                if c[k].text == ">":  # f<float>(
                    angle = 0
                    while True:
                        angle += {">": 1, ">>": 2, "<": -1}.get(c[k].text, 0)
                        k -= 1
                        if angle == 0:
                            break
                return [c[k].text] if c[k].kind == "name" else []
            i += 1
        return []


# --- a small part of C, evaluated symbolically: int64_t n = s->rows; if (...) return ...; t[0] = kbki_in("x", n, 1);

BINARY = [
    ("?",),
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
]
CASTS = ("double", "int", "int64_t", "size_t", "float", "uint64_t", "unsigned")


class Parser:
    """Parses expressions to trees: ("num", text), ("name", text), ("str", text), (operator, operands...)."""

    def __init__(self, tokens):
        self.t, self.i = tokens, 0

    def peek(self, k=0):
        return self.t[self.i + k].text if self.i + k < len(self.t) else ""

    def take(self, text=None):
        t = self.t[self.i]
        if text is not None and t.text != text:
            raise ValueError("expected %s, found %s in %s" % (text, t.text, joined(self.t)[:300]))
        self.i += 1
        return t

    def comma(self):
        parts = [self.assignment()]
        while self.peek() == ",":
            self.take()
            parts.append(self.assignment())
        return parts[0] if len(parts) == 1 else (",",) + tuple(parts)

    def assignment(self):
        left = self.binary(0)
        if self.peek() in ("=", "+=", "*=", "-=", "|="):
            op = self.take().text
            return (op, left, self.assignment())
        return left

    def binary(self, level):
        if level == len(BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in BINARY[level]:
            op = self.take().text
            if op == "?":
                yes = self.assignment()
                self.take(":")
                return ("?", left, yes, self.binary(0))
            left = (op, left, self.binary(level + 1))
        return left

    def unary(self):
        if self.peek() in ("-", "!", "*", "&", "~", "+", "++", "--"):
            return ("u" + self.take().text, self.unary())
        if self.peek() == "(" and self.peek(1) in CASTS + ("void",) and self.peek(2) == ")":
            self.take()
            kind = self.take().text
            self.take()
            return ("cast", kind, self.unary())
        if self.peek() == "sizeof":
            self.take()
            self.take("(")
            inside = []
            while self.peek() != ")":
                inside.append(self.take())
            self.take()
            return ("num", "sizeof(%s)" % joined(inside))
        return self.postfix()

    def postfix(self):
        t = self.take()
        if t.text == "(":
            e = self.comma()
            self.take(")")
        elif t.kind == "number":
            e = ("num", t.text)
        elif t.kind == "string":
            e = ("str", t.text)
        elif t.kind == "name":
            e = ("name", t.text)
        else:
            raise ValueError("unexpected %s in %s" % (t.text, joined(self.t)[:300]))
        while self.peek() in ("(", "[", ".", "->", "++", "--"):
            op = self.take().text
            if op == "(":
                args = []
                while self.peek() != ")":
                    args.append(self.assignment())
                    if self.peek() == ",":
                        self.take()
                self.take()
                e = ("call", e, args)
            elif op == "[":
                e = ("index", e, self.comma())
                self.take("]")
            elif op in ("++", "--"):
                e = ("p" + op, e)
            else:
                e = ("field", e, self.take().text, op)
        return e

    def statement(self):
        p = self.peek()
        if p == "{":
            self.take()
            body = []
            while self.peek() != "}":
                body.append(self.statement())
            self.take()
            return ("block", body)
        if p == "if":
            self.take()
            self.take("(")
            cond = self.comma()
            self.take(")")
            yes, no = self.statement(), None
            if self.peek() == "else":
                self.take()
                no = self.statement()
            return ("if", cond, yes, no)
        if p == "for":
            self.take()
            self.take("(")
            start = self.statement()
            cond = self.comma()
            self.take(";")
            step = self.comma()
            self.take(")")
            return ("for", start, cond, step, self.statement())
        if p == "return":
            self.take()
            e = self.comma()
            self.take(";")
            return ("return", e)
        if p in CASTS or p in ("const", "static"):
            kinds = []
            while self.peek() in CASTS + ("const", "static", "char", "*"):
                kinds.append(self.take().text)
            variables = []
            while True:
                name = self.take().text
                if self.peek() == "[":
                    while self.take().text != "]":
                        pass
                value = None
                if self.peek() == "=":
                    self.take()
                    if self.peek() == "{":
                        self.take()
                        value = ("list", [])
                        while self.peek() != "}":
                            value[1].append(self.assignment())
                            if self.peek() == ",":
                                self.take()
                        self.take()
                    else:
                        value = self.assignment()
                variables.append((name, value))
                if self.peek() != ",":
                    break
                self.take()
            self.take(";")
            return ("declare", " ".join(k for k in kinds if k not in ("const", "static")), variables)
        e = self.comma()
        self.take(";")
        return ("do", e)


LEVEL = {operator: level for level, row in enumerate(BINARY, 1) for operator in row}


def shown(e, level=0):
    kind = e[0]
    if kind in ("num", "name", "str"):
        return e[1]
    if kind == "cast":
        return "(%s)%s" % (e[1], shown(e[2], 12))
    if kind == "field":
        return shown(e[1], 13) + e[3] + e[2]
    if kind == "index":
        return "%s[%s]" % (shown(e[1], 13), shown(e[2]))
    if kind == "call":
        return "%s(%s)" % (shown(e[1], 13), ", ".join(shown(a) for a in e[2]))
    if kind[0] == "u":
        return kind[1:] + shown(e[1], 12)
    if kind == ",":
        return ", ".join(shown(x) for x in e[1:])
    own = LEVEL.get(kind, 0)
    if kind == "?":
        text = "%s ? %s : %s" % (shown(e[1], own + 1), shown(e[2]), shown(e[3], own))
    elif kind in LEVEL:
        text = "%s %s %s" % (shown(e[1], own), kind, shown(e[2], own + 1))
    else:
        text = "%s %s %s" % (shown(e[1]), kind, shown(e[2]))
    mixed = {"||", "&&", "|", "&", "<<", ">>"} & {kind} and level
    return "(%s)" % text if own < level or mixed else text


def number(e):
    return int(e[1], 0) if e[0] == "num" and re.fullmatch(r"\d+|0x[\da-fA-F]+", e[1]) else None


def folded(e):
    """Folds constants."""
    kind = e[0]
    if kind in LEVEL and kind != "?":
        a, b = number(e[1]), number(e[2])
        if kind == "&&":
            return e[2] if a else e[1] if a == 0 else e[1] if b else ("num", "0") if b == 0 else e
        if kind == "||":
            return ("num", "1") if a else e[2] if a == 0 else ("num", "1") if b else e[1] if b == 0 else e
        if a is not None and b is not None and kind in ("+", "-", "*", "==", "!=", "<", ">", "<=", ">="):
            value = int(eval("%d %s %d" % (a, kind, b)))
            return ("num", str(value)) if value >= 0 else e
        if kind == "*" and a == 1:
            return e[2]
        if kind == "*" and b == 1 or kind in ("+", "-") and b == 0 or kind == "/" and b == 1:
            return e[1]
        if kind == "*" and 0 in (a, b):
            return ("num", "0")
        if kind == "+" and a == 0:
            return e[2]
    if kind == "cast" and e[1] == "double" and number(e[2]) is not None:
        return ("num", e[2][1] + ".0")
    if kind == "*" and ("num", "1.0") in e[1:]:
        return e[2] if e[1] == ("num", "1.0") else e[1]
    if kind == "?" and number(e[1]) is not None:
        return e[2] if number(e[1]) else e[3]
    if kind == "u!" and number(e[1]) is not None:
        return ("num", str(int(not number(e[1]))))
    if (
        kind == "cast"
        and e[1] in ("int64_t", "double", "size_t", "int")
        and number(e[2]) is not None
        and e[1] != "double"
    ):
        return e[2]
    return e


class Return(Exception):
    """Raised at a return statement; holds the returned value."""


class MayReturn(Exception):
    """if (a condition that is not known) return value;"""


class Evaluator:
    """Evaluates a function symbolically. s->FIELD is replaced by shape[FIELD]; other unknown values stay
    expressions."""

    def __init__(self, header, shape, words=None, elem=None, inline=True):
        self.header, self.shape, self.words, self.elem, self.inline = header, shape, words, elem, inline
        self.tensors = {}

    def function(self, name):
        items = [i for i in self.header.by_name.get(name, []) if i.macro is None and "{" in [t.text for t in i.tokens]]
        if len(items) != 1:
            raise ValueError("no function " + name)
        c = items[0].tokens
        depth, params, k = 0, [[]], next(k for k, t in enumerate(c) if t.text == name) + 1
        while True:
            t = c[k]
            depth += t.text == "("
            depth -= t.text == ")"
            if depth == 0:
                break
            if t.text == "," and depth == 1:
                params.append([])
            elif not (t.text == "(" and depth == 1):
                params[-1].append(t)
            k += 1
        body = self.header.expand(c[k + 1 :])
        return [p[-1].text for p in params if p], Parser(body).statement()

    def call(self, name, args):
        params, body = self.function(name)
        env = dict(zip(params, args))
        try:
            self.run(body, env)
        except Return as r:
            return r.args[0]
        return None

    def run(self, s, env):
        kind = s[0]
        if kind == "block":
            for k, x in enumerate(s[1]):
                try:
                    self.run(x, env)
                except MayReturn as early:
                    c, value = early.args
                    try:
                        self.run(("block", s[1][k + 1 :]), env)
                    except Return as r:
                        raise Return(("?", c, value, r.args[0]))
        elif kind == "declare":
            for name, value in s[2]:
                env[name] = self.value(value, env) if value is not None else None
        elif kind == "return":
            raise Return(self.value(s[1], env))
        elif kind == "do":
            self.value(s[1], env)
        elif kind == "if":
            c = self.value(s[1], env)
            if number(c) is not None:
                branch = s[2] if number(c) else s[3]
                if branch:
                    self.run(branch, env)
                return
            self.unknown_if(c, s, env)
        elif kind == "for":
            self.run(s[1], env)
            while True:
                c = number(self.value(s[2], env))
                if c is None:
                    raise ValueError("a loop of unknown length")
                if not c:
                    return
                self.run(s[4], env)
                self.value(s[3], env)
        else:
            raise ValueError(kind)

    def unknown_if(self, c, s, env):
        """if (unknown) return x;  or  if (unknown) a = x;"""
        body = s[2][1][0] if s[2][0] == "block" and len(s[2][1]) == 1 else s[2]
        if body[0] == "do" and body[1][0] in ("=", "+=") and body[1][1][0] == "name" and s[3] is None:
            name = body[1][1][1]
            value = self.value(body[1][2], env)
            if body[1][0] == "+=":
                value = folded(("+", env[name], value))
            env[name] = ("?", c, value, env[name])
            return
        if body[0] == "return" and s[3] is None:
            raise MayReturn(c, self.value(body[1], env))
        raise ValueError("a condition that is not known: " + shown(c))

    def value(self, e, env):
        kind = e[0]
        if kind in ("num", "str"):
            return e
        if kind == "list":
            return ("list", [self.value(x, env) for x in e[1]])
        if kind == "name":
            if e[1] in env:
                return env[e[1]]
            if e[1] == "elem" and self.elem:
                return ("num", str(self.elem))
            m = self.header.macros.get(e[1])
            if m is not None and m.params is None and m.body:
                return self.value(Parser(m.body).comma(), env)
            return e
        if kind == "field":
            if e[1] == ("name", "s") or self.is_shape(e[1], env):
                return self.shape.get(e[2], ("num", "0"))
            base = self.value(e[1], env)
            if base[0] == "tensor":
                return self.tensors[base[1]].get(e[2], ("num", "0"))
            return ("field", base, e[2], e[3])
        if kind in ("=", "*=", "+="):
            return self.assign(e, env)
        if kind in ("u++", "p++"):
            env[e[1][1]] = folded(("+", env[e[1][1]], ("num", "1")))
            return env[e[1][1]]
        if kind == ",":
            for x in e[1:-1]:
                self.value(x, env)
            return self.value(e[-1], env)
        if kind == "cast":
            v = self.value(e[2], env) if e[1] != "void" else ("num", "0")
            return folded(("cast", e[1], v))
        if kind == "index":
            base, at = self.value(e[1], env), self.value(e[2], env)
            if base[0] == "list":
                return base[1][number(at)]
            if base == ("name", "t"):
                return ("tensor", number(at))
            return ("index", base, at)
        if kind == "call":
            name = e[1][1]
            args = [self.value(a, env) for a in e[2]]
            if name in ("kbki_in", "kbki_ids", "kbki_out"):
                return ("made", name, args)
            if name.startswith("kbk") and self.inline:
                return self.call(name, args)
            return ("call", e[1], args)
        if kind in ("==", "!=") and self.words and any(x[0] == "name" and x[1].startswith("KBKI_WORD_") for x in e[1:]):
            word = next(x[1] for x in e[1:] if x[0] == "name" and x[1].startswith("KBKI_WORD_"))[10:]
            return ("num", str(int((word in self.words) == (kind == "=="))))
        if kind in ("==", "!=", "<") and e[2][0] == "name" and e[2][1] in self.header.by_name:
            a, b = self.value(e[1], env), self.constant(e[2][1])
            return folded((kind, a, b))
        return folded((kind,) + tuple(self.value(x, env) for x in e[1:]))

    def is_shape(self, e, env):
        return e[0] == "name" and env.get(e[1]) == ("name", "s")

    def constant(self, name):
        for item in self.header.by_name[name]:
            if name in item.names and item.tokens[0].text == "enum":
                return ("num", str(item.names.index(name)))
        return ("name", name)

    def assign(self, e, env):
        op, left, right = e
        value = self.value(right, env)
        if left[0] == "name":
            if op != "=":
                value = folded((op[0], env[left[1]], value))
            env[left[1]] = value
            return value
        if left[0] == "index":
            at = number(self.value(left[2], env))
            kind, made = value[1], value[2]
            self.tensors[at] = {"name": made[0][1].strip('"')}
            t = self.tensors[at]
            if kind == "kbki_out":
                t.update(role="out", kind=made[1], count=made[2], per_unit=made[3], scales=made[4])
            else:
                t.update(
                    role="in",
                    kind=("name", "KBK_KI32" if kind == "kbki_ids" else "KBK_T"),
                    count=made[1],
                    per_unit=made[2],
                    fill=("name", "KBK_IDS" if kind == "kbki_ids" else "KBK_NORMAL"),
                    a=("num", "0"),
                    b=("cast", "double", made[3]) if kind == "kbki_ids" else ("num", "1"),
                )
            return value
        t = self.tensors[self.value(left[1], env)[1]]
        if op == "*=":
            value = folded(("*", t[left[2]], value))
        t[left[2]] = value[1].strip('"') if value[0] == "str" else value
        return value


def plain(e):
    """The extracted file uses the formula only where C++ converts the result implicitly, so these casts are noise."""
    if e[0] == "cast" and e[1] in ("double", "int64_t", "size_t"):
        return plain(e[2])
    return folded(
        tuple(plain(x) if isinstance(x, tuple) else [plain(y) for y in x] if isinstance(x, list) else x for x in e)
    )


# --- the table


def table_of(header):
    """Rows of variants are (op, dir, variant, dtypes, sm, origin, note)."""
    ops, rows = {}, []
    for name, m in header.macros.items():
        if not re.match(r"KBK_(OPS|TABLE)_[a-z]", name) or name.endswith("_kbki_end"):
            continue
        c, i = m.body, 0
        while i < len(c):
            name_of_row, args, depth, i = c[i].text, [[]], 1, i + 2
            while depth:
                depth += c[i].text == "("
                depth -= c[i].text == ")"
                if c[i].text == "," and depth == 1:
                    args.append([])
                elif depth:
                    args[-1].append(c[i])
                i += 1
            if name_of_row == "KBKI_CUBLAS":
                continue
            a = [joined(x) for x in args]
            if name.startswith("KBK_OPS"):
                ops[a[0], a[1]] = dict(
                    op=a[0], dir=a[1], family=a[2], scratch=a[3], formula=a[4].strip('"'), signature=a[5], check=a[9]
                )
            else:
                rows.append(
                    dict(
                        op=a[0],
                        dir=a[1],
                        variant=a[2],
                        rung=int(a[3]),
                        dtypes=MASKS[a[4]].split(),
                        sm=a[5],
                        origin=a[6],
                        note=a[7].strip('"'),
                    )
                )
    return ops, rows


def name_of(row, dtype):
    parts = [row["op"]] + ([] if row["dir"] in ("fwd", "run") else [row["dir"]]) + [row["variant"], dtype]
    return "/".join(parts)


# --- what is taken


def closure(header, roots, dtype, opaque=(), widths=None):
    """Returns all declarations that the roots need, in the order of the header. Functions and specialisations for
    element types that the variant does not use are left out. opaque: items that are included without the declarations
    that they need. widths: the N sizes of wgmma instructions that the variant uses, if known."""
    used = {dtype, "e4m3" if any("kbk_e4m3" in names_in(i.tokens) for i in roots) else dtype}
    other = set()
    if "f16" not in used:
        other |= {"__half", "__half2"}
    if "bf16" not in used:
        other |= {"__nv_bfloat16", "__nv_bfloat162"}
    if "e4m3" not in used:
        other |= {"kbk_e4m3"}
    taken, names, waiting = set(), set(), list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in taken:
            continue
        taken.add(id(item))
        if set(item.names) & set(opaque):
            continue
        tokens = item.tokens
        if item.macro is None and any(header.macros[n].pastes for n in names_in(tokens) if n in header.macros):
            header.used = set()
            tokens = header.expand(tokens) + tokens + [Token("name", n) for n in header.used]
        for name in names_in(tokens) - names:
            names.add(name)
            waiting += [
                i
                for i in header.by_name.get(name, [])
                if i.macro is not None
                or not names_in(i.head) & other
                and not (dtype != "f32" and name != "kbki_type" and specialised_for_float(header, i, name))
                and not (widths and i.text.startswith("KBKI_WGMMA(") and i.text.split(", ")[2] not in widths)
            ]
    return [i for i in header.items if id(i) in taken]


def specialised_for_float(header, item, name):
    c = header.without_template(item.head)
    texts = [t.text for t in c]
    return texts[:4] == ["struct", name, "<", "float"] or item.text.startswith("KBKI_WGMMA") and texts[2] == "float"


def specialised(header, item, words):
    name = item.names[0]
    fields = {
        f: ("field", ("name", "s"), f, "->") for f in ("batch", "heads", "rows", "cols", *OTHERS, "layout", "causal")
    }
    results = []
    for word in words:
        e = Evaluator(header, fields, {word}, inline=False)
        results.append((word, shown(e.call(name, [("name", "s"), ("name", "elem"), ("name", "word")]))))
    text = results[-1][1]
    for word, value in results[:-1]:
        if value != results[-1][1]:
            text = "word == KBKI_WORD_%s ? %s : %s" % (word, value, text)
    head = joined(item.head)
    return Item(
        item.names,
        "%s { return %s; }" % (head, text),
        code(tokens_of("%s { return %s; }" % (head, text))),
        item.start,
        head=item.head,
    )


def replaced(header, name, text):
    c = code(tokens_of(re.sub(r"//[^\n]*", "", text)))
    for k, item in enumerate(header.items):
        if (
            item.macro is None
            and name in item.names
            and "{" in [t.text for t in item.tokens]
            and "Kernel" not in names_in(item.head)
        ):
            new = Item(item.names, text, c, item.start, item.guards, head=header.head_of(c))
            header.items[k] = new
            header.by_name[name][header.by_name[name].index(item)] = new
            return
    stop("the header has no function %s any more; see SHORTER" % name)


def written(items):
    text, guards = [], ()
    for i in items:
        if i.guards != guards:
            text += ["#endif"] * len(guards) + list(i.guards)
            guards = i.guards
        text.append(i.text.strip("\n"))
    return "\n".join(text + ["#endif"] * len(guards)) + "\n"


# --- plain parameters: kernels of the header take their arguments in structs; extracted kernels take each one by itself

LAUNCHES = ("kbki_follow", "kbki_launch_clusters", "cudaLaunchKernelEx")


def closing(tokens, at):
    """> and >> close angle brackets."""
    pairs, depth = {"(": ")", "[": "]", "{": "}", "<": ">"}, 0
    mark, end = tokens[at].text, pairs[tokens[at].text]
    for i in range(at, len(tokens)):
        text = tokens[i].text if tokens[i].kind == "mark" else ""
        depth += text == mark
        depth -= text == end
        depth -= 2 * (text == ">>" and end == ">")
        if depth <= 0:
            return i
    raise ValueError("no closing " + end)


def parts_of(tokens):
    """A < after a name opens a bracket."""
    parts, open_brackets, before = [[]], "", ""
    for t in tokens:
        mark = t.text if t.kind == "mark" else ""
        if mark in ("(", "[", "{") or mark == "<" and before == "name":
            open_brackets += mark
        elif mark in (")", "]", "}"):
            open_brackets = open_brackets.rstrip("<")[:-1]  # an unclosed < was a comparison
        elif mark in (">", ">>") and open_brackets.endswith("<"):
            open_brackets = open_brackets[: -len(mark)]
        if mark == "," and not open_brackets:
            parts.append([])
        else:
            parts[-1].append(t)
        before = t.kind if t.kind != "space" else before
    return [part for part in parts if part]


def bare(tokens):
    return [t for t in tokens if t.kind not in ("space", "comment")]


class Members:
    """Data members are (type, name, array length or 0)."""

    def __init__(self, item):
        c = item.tokens
        inner = closing(c, 1) if c[0].text == "template" else -1
        self.params = [joined(p) for p in parts_of(c[2:inner])] if inner > 0 else []
        opening = next(i for i, t in enumerate(c) if t.text == "{")
        head = [t.text for t in c[inner + 1 : opening]]
        self.base = head[head.index(":") + 1] if ":" in head else None
        self.data, self.inside, statement, i = [], set(), [], opening + 1
        end = closing(c, opening)
        while i < end:
            if c[i].text == "{":
                k = closing(c, i)
                self.inside |= names_in(c[i:k])
                i, statement = k, []
            elif c[i].text == ";":
                self.add(statement)
                statement = []
            else:
                statement.append(c[i])
            i += 1

    def add(self, statement):
        if not statement or statement[0].text in ("static", "typedef", "using") or "(" in [t.text for t in statement]:
            return
        kind = None
        for part in parts_of(statement):
            length = 0
            if part[-1].text == "]":
                length, part = part[-2].text, part[:-3]
            stars = sum(t.text == "*" for t in part)
            kind = kind or joined(part[: len(part) - 1 - stars])
            self.data.append((kind + "*" * stars, part[-1].text, length))


def unused_functions_left_out(header, items):
    """Returns whether a function was removed."""
    called, changed = set(), False
    for item in items:
        c = item.tokens
        called |= {t.text for k, t in enumerate(c) if c[k - 1].text in (".", "->", "::", "template")}
        if item.macro is None and "struct" in names_in(item.head) and "{" in [t.text for t in c]:
            called |= Members(item).inside
    for item in items:
        if item.macro is not None or "struct" not in names_in(item.head) or item.text.startswith("KBKI_"):
            continue
        tokens = list(tokens_kept(item.text))
        opening = next((k for k, t in enumerate(tokens) if t.text == "{"), None)
        if opening is None or "(" in [t.text for t in tokens[:opening]]:
            continue
        end, gone = closing(tokens, opening), []
        i = first = opening + 1
        while i < end:
            t = tokens[i]
            if t.text == "{":
                k = closing(tokens, i)
                statement = code(tokens[first:i])
                at = next((x for x, y in enumerate(statement) if y.text == "("), 0)
                name = statement[at - 1].text if at else ""
                if name and name not in called and name not in item.names and "operator" not in names_in(statement):
                    gone.append((first, k + 1))
                i = first = k + 1
                continue
            i += 1
            if t.text == ";":
                first = i
        for a, b in reversed(gone):
            rest = tokens[b : b + 2]
            b += 2 if len(rest) > 1 and rest[1].kind == "comment" and "\n" not in rest[0].text else 0
            del tokens[a:b]
        if gone:
            item.text, changed = "".join(t.text for t in tokens), True
            item.tokens = code_kept(item.text)
            item.head = header.head_of(item.tokens)
    return changed


class Plain:

    def __init__(self, header, items, element):
        self.header, self.element = header, element
        self.items = [copy.copy(i) for i in items]
        for item in [i for i in self.items if i.names == ["kbki_map"]]:
            self.items.remove(item)
        for item in self.items:
            item.text = re.sub(r"\bkbki_map\b", "CUtensorMap", item.text)
        self.refresh()
        self.instances()
        self.refresh()
        self.find_structs()
        self.explicit_arguments()
        for item in self.items:
            if self.is_device(item):
                self.device(item)
            elif item.macro is None:
                self.host(item)
        for name in [n for n in self.structs if self.is_maps(n)]:
            at = next(k for k, i in enumerate(self.items) if i.names[0] == name)
            refs = "struct %s_refs {\n    const CUtensorMap %s;\n};" % (
                name, ", ".join("&" + m for _, m, _ in self.structs[name].data))
            self.items.insert(at + 1, Item([name + "_refs"], refs, [], 0, self.items[at].guards))

    def refresh(self):
        for item in self.items:
            if item.macro is None:
                item.tokens = code_kept(item.text)
                item.head = self.header.head_of(item.tokens)

    @staticmethod
    def is_device(item):
        return item.macro is None and ("__device__" in item.text or "__global__" in item.text)

    # function templates whose parameter Io is the struct that a kernel takes

    def instances(self):
        waiting = [i for i in self.items if i.macro is None and self.struct_parameter(i)]
        names = {i.names[0] for i in waiting}
        structs = {i.names[0]: Members(i) for i in self.items if self.is_struct(i)}
        types = {name: [] for name in names}
        for item in (i for i in self.items if i.macro is None and i not in waiting):
            for i, t in enumerate(item.tokens):
                if t.text not in names:
                    continue
                k = i + 1 if item.tokens[i + 1].text != "<" else closing(item.tokens, i + 1) + 1
                first = parts_of(item.tokens[k + 1 : closing(item.tokens, k)])[0]
                types[t.text].append(self.declared(item.tokens, joined(first), structs)[0])
        for _ in waiting:  # a function can pass its struct to another function
            for item in waiting:
                for other in names_in(item.tokens) & names:
                    types[other] += [x for x in types[item.names[0]] if x not in types[other]]
        inner = {}
        for item in waiting:
            own = [joined(p) for p in parts_of(item.tokens[2 : closing(item.tokens, 1)])]
            for kind in types[item.names[0]]:
                inner[item.names[0], kind] = [p for p in structs[kind].params if p not in own]
        last = {kind: next(i for i in self.items if i.names[0] == kind and self.is_struct(i))
                for kinds in types.values() for kind in kinds}
        for item in waiting:  # inserts the instances of a template after their struct, in the order of the calls
            for kind in dict.fromkeys(types[item.names[0]]):
                new = self.instance(item, structs, kind, inner)
                self.items.insert(max(self.items.index(item), self.items.index(last[kind]) + 1), new)
                last[kind] = new
            self.items.remove(item)
        for item in self.items:  # the template arguments of calls become explicit
            for name in names & names_in(item.tokens) - set(item.names):
                item.text = re.sub(r"\b%s<(kb\w+)<([^<>]*)>" % name, lambda m: "%s<%s" % (name, ", ".join(
                    a for p, a in zip(structs[m.group(1)].params, m.group(2).split(", "))
                    if p in inner[name, m.group(1)])) if (name, m.group(1)) in inner else m.group(), item.text)

    def is_struct(self, item):
        c = self.header.without_template(item.tokens) if item.macro is None else []
        return len(c) > 2 and c[0].text == "struct" and c[2].text in ("{", ":")

    @staticmethod
    def struct_parameter(item):
        return re.search(r"\bclass Io\b", item.text) and re.search(r"[(,]\s*(const )?Io&? \w+", item.text)

    @staticmethod
    def declared(tokens, path, structs):
        for i, t in enumerate(tokens):
            if t.text != path or tokens[i - 1].text == ".":
                continue
            k = i - 1
            while k > 0 and tokens[k].text in ("&", "*", "const"):
                k -= 1
            if tokens[k].text in structs:
                return tokens[k].text, ""
            if tokens[k].text == ">":
                end, depth = k, 0
                while k > 0:
                    depth += {">": 1, "<": -1}.get(tokens[k].text, 0)
                    if not depth:
                        break
                    k -= 1
                if tokens[k - 1].text in structs:
                    return tokens[k - 1].text, joined(tokens[k + 1 : end])
        return None

    def instance(self, item, structs, kind, inner):
        own = [p.split()[-1] for p in structs[kind].params]
        text = re.sub(r"(, )?\bclass Io\b", lambda m: ", ".join(([""] if m.group(1) and inner[item.names[0], kind] else [])
                                                               + inner[item.names[0], kind]), item.text, count=1)
        for name, added in ((n, a) for (n, k), a in inner.items() if k == kind):
            text = re.sub(r"\b(%s<[^;()]*?)(, )?\bIo\b" % name, lambda m: m.group(1) + ", ".join(
                ([""] if m.group(2) and added else []) + [p.split()[-1] for p in added]), text)
        text = re.sub(r"\bIo\b", kind + ("<%s>" % ", ".join(own) if own else ""), text)
        return Item(item.names, text, code(tokens_of(text)), item.start, item.guards)

    def find_structs(self):
        self.structs, reads = {}, set()
        for item in self.items:
            c = self.header.without_template(item.tokens) if item.macro is None else []
            if len(c) > 2 and c[0].text == "struct" and "{" in [t.text for t in c]:
                m = Members(item)
                if c[1].text not in self.structs or m.data:  # a specialisation of a base struct
                    self.structs[c[1].text] = m
            if self.is_device(item):
                reads |= {t.text for k, t in enumerate(item.tokens) if item.tokens[k - 1].text in (".", "->")}
        self.reads = {name: reads | m.inside for name, m in self.structs.items()}

    def explicit_arguments(self):
        """Writes template arguments in calls of functions that take a pointer to a kernel. The calls can no longer
        deduce these arguments, because the struct parameter of the kernel was replaced."""
        for item in self.items:
            if item.macro is not None:
                continue
            found = re.match(r"template <([^<>]*)>[^{;]*\bvoid \(\*\w+\)\((kb\w+)<[^{;]*\{", item.text)
            if found and found.group(2) in self.structs:
                names = ", ".join(p.split()[-1] for p in found.group(1).split(","))
                for other in self.items:
                    if other is not item and item.names[0] in names_in(other.tokens):
                        other.text = re.sub(r"\b%s\(" % item.names[0], "%s<%s>(" % (item.names[0], names), other.text)

    def resolved(self, kind):
        kind = re.sub(r"\bkbki_result<(\w+)>", r"\1" if self.element != "e4m3" else "__nv_bfloat16", kind)
        return re.sub(r"\bkb\w+(<[^<>]*>)?(?=\*)", "void", kind)

    def leaves(self, name, arguments):
        """Returns [(path, type)], also of nested structs."""
        m, found = self.structs[name], []
        if m.base in self.structs:
            found += self.leaves(m.base, arguments)
        bound = dict(zip([p.split()[-1] for p in m.params], arguments))
        for kind, member, length in m.data:
            if member not in self.reads[name] and kind != "CUtensorMap":
                continue
            kind = re.sub(r"\b(%s)\b" % "|".join(bound or ["\0"]), lambda x: bound[x.group()], kind)
            inner = re.match(r"(kb\w+)(?:<(.*)>)?$", kind)
            if inner and inner.group(1) in self.structs:
                inside = self.leaves(inner.group(1), [a.strip() for a in (inner.group(2) or "").split(",")])
                found += [("%s.%s" % (member, path), k) for path, k in inside]
            elif length:
                found += [("%s[%d]" % (member, i), self.resolved(kind)) for i in range(int(length))]
            else:
                found.append((member, self.resolved(kind)))
        return found

    def struct_of(self, tokens):
        c = [t for t in bare(tokens) if t.text not in ("const", "__grid_constant__")]
        if not c or c[0].text not in self.structs or len(c) > 1 and c[1].text != "<":
            return None
        return c[0].text, [joined(p) for p in parts_of(c[2:-1])] if len(c) > 1 else []

    def is_maps(self, name):
        return {kind for kind, _, _ in self.structs[name].data} == {"CUtensorMap"}

    def device(self, item):
        if "__global__" not in item.text and not any(n in self.structs and self.is_maps(n) for n in names_in(item.tokens)):
            return
        tokens = tokens_of(item.text)
        if "__global__" in item.text:
            self.kernel(item, tokens)
            tokens = tokens_of(item.text)
        for t in tokens:
            if t.text in self.structs and self.is_maps(t.text):
                t.text += "_refs"
        item.text = "".join(t.text for t in tokens)

    def kernel(self, item, tokens):
        at = next(i for i, t in enumerate(tokens) if t.text in item.names and tokens[i + 1].text == "(") + 1
        end = closing(tokens, at)
        opening = next(i for i in range(end, len(tokens)) if tokens[i].text == "{")
        body, lines, params = tokens[opening + 1 :], [], []
        taken = {t.text for k, t in enumerate(tokens) if t.kind == "name" and tokens[k - 1].text not in (".", "->")}
        for part in parts_of(tokens[at + 1 : end]):
            c = bare(part)
            struct = self.struct_of(c[:-1]) if c and len(c) > 1 and c[-1].kind == "name" else None
            if struct is None:
                params.append(joined(c))
                continue
            name, maps = c[-1].text, self.is_maps(struct[0])
            own = {}
            for path, kind in self.leaves(*struct):
                leaf = re.sub(r"\W+", "", path.split(".")[-1])
                leaf = leaf if leaf not in taken and not maps else name + "_" + re.sub(r"\W+", "_", path).strip("_")
                taken.add(leaf)
                own[path] = leaf
                params.append(("const __grid_constant__ %s %s" if maps else "%s %s") % (kind, leaf))
            if not self.substitute(body, name, own):
                full = struct[0] + ("<%s>" % ", ".join(struct[1]) if struct[1] else "")
                if maps:
                    lines.append("const %s %s = { %s };" % (full, name, ", ".join(own.values())))
                else:
                    casts = {p: k for p, k in self.leaves(*struct) if "void*" in k}
                    fill = ", ".join("%s.%s = %s%s" % (name, p, "(decltype(%s.%s))" % (name, p) if p in casts else "", v)
                                     for p, v in own.items())
                    lines += ["%s %s;" % (full, name), wrapped("    " + fill.replace(" = ", "\0=\0") + ";", "        ").strip()
                              .replace("\0", " ")]
        head = "".join(t.text for t in tokens[: at + 1])
        start = head.rfind("\n") + 1
        head += ", ".join(p.replace(" ", "\0") for p in params)
        head = head[:start] + wrapped(head[start:] + ")\0{", " " * 8).replace("\0", " ")
        item.text = head + "".join("\n    " + x for x in lines) + "".join(t.text for t in body)
        item.tokens = code(tokens_of(item.text))

    @staticmethod
    def substitute(body, name, own):
        """Replaces each `name.member` by the parameter for this member. If the body uses the struct in another
        way, changes nothing and returns False."""
        places = []
        for i, t in enumerate(body):
            if t.text != name or t.kind != "name" or body[i - 1].text in (".", "->", "::"):
                continue
            k, path = i, ""
            while body[k + 1].text == "." and path not in own:
                path += ("." if path else "") + body[k + 2].text
                k += 2
            if path not in own or body[k + 1].text == "[" and path + "[0]" in own:
                return False
            places.append((i, k, own[path]))
        for i, k, new in places:
            body[i].text = new
            for t in body[i + 1 : k + 1]:
                t.text = ""
        return True

    def host(self, item):
        if not re.search(r">>>|\bvoid ?\(|" + "|".join(LAUNCHES), item.text):
            return
        tokens, item_text = tokens_of(item.text), item.text
        for i, t in enumerate(tokens):
            if t.kind == "name" and t.text in LAUNCHES and tokens[i + 1].text == "(" and t.text not in item.names:
                self.arguments(tokens, i + 1)
            elif t.text == ">" and tokens[i - 1].text == ">>" and tokens[i + 1].text == "(":
                self.arguments(tokens, i + 1)
            elif t.text == "(" and re.search(r"\bvoid ?(\(\*\w*\))?$", item_text[: t.start]):
                self.function_type(tokens, i)
        item.text = "\n".join(x if len(x) <= 120 or x in item.text else wrapped(x, re.match(" *", x).group() + " " * 8)
                              for x in "".join(t.text for t in tokens).split("\n"))

    def function_type(self, tokens, at):
        end = closing(tokens, at)
        found = [(p, self.struct_of(p)) for p in parts_of(tokens[at + 1 : end])]
        if any(s for _, s in found):
            new = [", ".join(k for _, k in self.leaves(*s)) if s else joined(bare(p)) for p, s in found]
            tokens[at + 1].text = ", ".join(new)
            for t in tokens[at + 2 : end]:
                t.text = ""

    def arguments(self, tokens, at):
        for part in parts_of(tokens[at + 1 : closing(tokens, at)]):
            c = bare(part)
            path = "".join(t.text for t in c)
            if not re.fullmatch(r"\w+(\.\w+)*", path) or c[0].kind != "name":
                continue
            struct = self.declared(code(tokens), path, self.structs) or self.member(path)
            if struct:
                arguments = [a.strip() for a in struct[1].split(",")] if struct[1] else []
                c[0].text = ", ".join("%s.%s" % (path, p) for p, _ in self.leaves(struct[0], arguments))
                for t in c[1:]:
                    t.text = ""

    def member(self, path):
        """Returns None if a struct has a member of this name whose type is not a struct."""
        last, found = path.split(".")[-1], None
        for m in self.structs.values() if "." in path else ():
            for kind, name, _ in m.data:
                inner = re.match(r"(kb\w+)(?:<(.*)>)?$", kind)
                if name == last and not (inner and inner.group(1) in self.structs):
                    return None
                if name == last:
                    found = found or (inner.group(1), inner.group(2) or "")
        return found


SCALARS = ("bool", "int", "unsigned", "int64_t", "uint32_t", "uint64_t", "size_t", "float", "double", "longlong3",
           "const __grid_constant__ CUtensorMap")


def parameters_of(items):
    """A valid parameter is a number, a vector of numbers, a tensor map, or a pointer to a type that the header does not
    define."""
    c, found = [t for i in items if "__global__" in i.text for t in code_kept(i.text)], []
    for at in (i for i, t in enumerate(c) if t.text == "__global__"):
        while c[at].text != "(":
            at = closing(c, at + 2) + 1 if c[at + 1].text == "__launch_bounds__" else at + 1
        params = [joined(p[:-1]) for p in parts_of(c[at + 1 : closing(c, at)])]
        found.append((c[at - 1].text, [p for p in params
                                       if p not in SCALARS and not re.fullmatch(r"(const )?(?!kb)\w+( \w+)*\*", p)]))
    return found


# --- the program around the kernel

HELPERS = """\
// --- Benchmark: checks the result and times the kernel.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

template <class V> static double widened(V x) { return (double)x; }%(widened)s
// The elements of a buffer of kb_alloc, in double precision.
template <class V> static double* as_doubles(kb_state* kb, const V* device, int64_t n) {
    const V* host = kb_host(kb, device);
    double* x = KB_ALLOC_HOST(kb, double, n);
    for (int64_t i = 0; host && x && i < n; i++) x[i] = widened(host[i]);
    return x;
}
%(fill)s
/*  Compares an output with the reference `want`: the unit `first` and every step-th unit after it. A unit has
    per_unit elements. An element must be within `ulps` units in the last place of the largest of |want|, the
    magnitude that the reference returns, and (ulps > 0) the root mean square of the unit; plus `absolute`. ulps =
    0: equal after rounding. The norm of all differences must be within `norm` of the norm of `want`. */
template <class V>
static void check(kb_state* kb, const char* name, const V* device, int64_t n, int64_t first, int64_t step, int64_t per_unit,
                  const double* want, const double* magnitude, bool one_magnitude, double norm, double ulps, double absolute) {
    const int bits = sizeof(V) == 4 ? 23 : %(bits)d;
    const double least = sizeof(V) == 4 || bits == 7 ? 1e-37 : 0x1p-14; // smallest normal number
    const double* got = as_doubles(kb, device, n);
    double difference = 0, size = 0, rounding = 0;
    int64_t bad = 0, where = -1, compared = 0;
    for (int64_t u = first; got && u * per_unit < n; u += step, want += per_unit) {
        double mean_square = 0;
        for (int64_t i = 0; i < per_unit; i++)
            if (isfinite(want[i])) mean_square += want[i] * want[i] / (double)per_unit;
        for (int64_t i = 0; i < per_unit; i++, compared++) {
            const double x = got[u * per_unit + i], m = magnitude ? *magnitude : 0, w = fmax(fabs(want[i]), m);
            const double rounded = widened((V)(float)want[i]), exact = ulps == 0 && absolute == 0;
            const double base = fmax(ulps > 0 ? fmax(w, sqrt(mean_square)) : w, least);
            const double bound = fabs(ulps) * ldexp(1.0, ilogb(base) - bits) + absolute;
            const bool same = x == rounded || isnan(x) && isnan(rounded); // includes two infinities of the same sign
            const bool close = isfinite(want[i]) && fabs(x - (exact ? rounded : want[i])) <= bound;
            if (!same && !close && ++bad == 1) where = u * per_unit + i;
            if (isfinite(rounded))
                difference += (x - want[i]) * (x - want[i]), size += w * w, rounding += (rounded - want[i]) * (rounded - want[i]);
            if (magnitude && !one_magnitude) magnitude++;
        }
        if (magnitude && one_magnitude) magnitude++;
    }
    if (!got) return;
    const double limit = fmax((norm + (compared < 1024 ? ldexp(0.5, -bits) : 0)) * sqrt(size), 1.25 * sqrt(rounding));
    const bool close = sqrt(difference) <= limit + absolute * sqrt((double)compared);
    kb_check_that(kb, !bad && close, sqrt(difference / (size > 0 ? size : 1)), norm,
                  "%%s: %%lld of %%lld elements are wrong, the first is [%%lld]; norm of the difference %%g, of the result %%g",
                  name, (long long)bad, (long long)compared, (long long)where, sqrt(difference), sqrt(size));
}
"""

UNIFORM = """\
// A number of [0, 1) for an index (splitmix64; Steele, Lea & Flood 2014).
static double uniform(uint64_t i) {
    i = (i + 1) * 0x9E3779B97F4A7C15u, i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9u, i = (i ^ i >> 27) * 0x94D049BB133111EBu;
    return (double)((i ^ i >> 31) >> 11) * 0x1p-53;
}
"""

FILL = """\
// Writes value(0), value(1), ... to a buffer of kb_alloc.
template <class V, class Value> static void fill(kb_state* kb, V* device, int64_t n, Value value) {
    V* host = KB_ALLOC_HOST(kb, V, n);
    for (int64_t i = 0; host && i < n; i++) host[i] = (V)value(i);
    if (host && device) kb_from_host(kb, device, host, (size_t)n * sizeof(V));
}
"""


def scaled(count, factor):
    return (
        count
        if factor == "1"
        else (
            factor if count == "1" else "%s * %s" % (count, factor if re.fullmatch(r"\w+", factor) else "(%s)" % factor)
        )
    )


def wrapped(text, indent, width=118):
    lines, line = [], re.match(" *", text).group() + text.split()[0]
    for word in text.split()[1:]:
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = indent + word
        else:
            line = line + " " + word
    return "\n".join(lines + [line])


def checks_of(header, check, row, dtype):
    text = check if "(" in check else joined(header.macros[check].body)
    values = re.search(r"\((.*)\)", text).group(1).replace(" ", "").split(",")
    of = {d: values[3 * i : 3 * i + 3] for i, d in enumerate(TYPES)}
    if "KBK_TF32" in row["origin"]:
        of["f32"] = ["1.5e-3", "6 * 8192", "0"]
    return of["f32"], of[dtype]


class Extraction:

    def __init__(self, header, row, op, dtype):
        self.header, self.row, self.op, self.dtype = header, row, op, dtype
        self.element, self.size = TYPES[dtype], 4 if dtype == "f32" else 2
        self.base = f"kbk_{row['op']}_{row['dir']}"
        self.launcher = f"{self.base}_{row['variant']}"
        self.describe()
        self.take()

    def describe(self):
        """The results are expressions in the parameters of the launcher."""
        name, family = self.row["op"], self.op["family"]
        shape = list(SHAPES[family])
        shape += {"strided": [("stride", "stride", 4)], "gather": [("among", "among", 1 << 20)]}.get(name, [])
        dimensions = re.findall(r"\w+", " ".join(re.findall(r"\[(.*?)\]", self.op["signature"])))
        if "Z" in dimensions:
            shape = [("batch", "batch", 8)] + [(n, f, 256) for n, f, _ in shape]
        if "H" in dimensions and family != "KBK_ATTN":
            shape = [("rows", "rows", 4096), ("heads", "heads", 32), ("cols", "cols", 128)]
        # further parameters: name (also the field of kbk_shape), type, value in the benchmark, declaration of the axis
        extra = []
        if family == "KBK_GEMM":
            extra.append(
                ("layout", "int", '(int)kb_int(kb, "layout")', f'KB_AXIS("layout", {int(name == "matmul_e4m3")})')
            )
        if family == "KBK_ATTN":
            extra.append(("causal", "int", '(int)kb_int(kb, "causal")', 'KB_AXIS("causal", 0, 1)'))
        if name == "dropout":
            extra.append(("p", "double", 'kb_real(kb, "p")', 'KB_AXIS_REAL("p", 0.1)'))
            extra.append(("seed", "uint64_t", "kb->seed", None))
        self.shape, self.extra = shape, extra
        self.fields = {f: n for n, f, _ in shape} | {n: n for n, _, _, _ in extra}
        self.fields |= {f: "1" for f in ("batch", "heads", "rows", "cols") if f not in self.fields}
        known = {f: ("num", "0") for f in (*OTHERS, "layout", "sequential")}
        known |= {f: ("num" if n == "1" else "name", n) for f, n in self.fields.items()}
        e = Evaluator(self.header, known, {self.row["variant"]}, self.size)
        s = ("name", "s")
        e.call(self.base + "_tensors", [s, ("name", "t")])
        self.units = re.sub(r"^\w+ \? (.*) : 0$", r"\1", shown(plain(e.call(self.base + "_units", [s]))))
        self.flops = shown(e.call(self.base + "_flops", [s]))
        self.bytes = shown(e.call(self.base + "_bytes", [s, ("num", str(self.size))]))
        self.tensors = [self.tensor(e.tensors[i]) for i in range(len(e.tensors))]
        self.ins = [t for t in self.tensors if t["role"] == "in"]
        self.outs = [t for t in self.tensors if t["role"] == "out"]

    def tensor(self, t):
        kinds = {"KBK_T": self.element, "KBK_KF32": "float", "KBK_KI32": "int", "KBK_KI64": "int64_t"}
        taken = {n for n, _, _ in self.shape} | {n for n, _, _, _ in self.extra} | {"do", "n", "s"}
        t["type"] = kinds.get(t["kind"][1], "kbk_e4m3")
        t["n"] = shown(plain(t["count"]))
        t["id"] = t["name"] + "_" if t["name"] in taken else t["name"]
        t["whole"] = number(t["per_unit"]) == 0
        t["per"] = t["n"] if t["whole"] else shown(plain(t["per_unit"]))
        t["samples"] = "1" if t["whole"] else "samples"
        t["scales"] = shown(plain(t["scales"])) if t["role"] == "out" and number(t["scales"]) != 0 else None
        t["normal"] = t["role"] == "out" or (t["fill"][1], number(t["a"]), number(t["b"])) == ("KBK_NORMAL", 0, 1)
        return t

    def take(self):
        header, variant = self.header, self.row["variant"]
        for name, text in SHORTER.items():
            replaced(header, name, text)
        roots, reference = header.by_name[self.launcher], header.by_name[self.base + "_ref"]
        scratches = [n for n in header.by_name if n.startswith("kbki_scratch_") and n != "kbki_scratch_tf32"]
        own = f"kbki_scratch_{self.op['scratch']}"
        device = closure(header, roots, self.dtype, scratches)
        used = {n[10:] for i in device if i.names[0] not in scratches for n in names_in(i.tokens) if "KBKI_WORD_" in n}
        words = sorted(used - {"", "ID", "COUNT", variant}) + [variant]
        for name in {n for i in device for n in i.names if n in scratches} | {own}:
            item = header.by_name[name][-1]
            new = specialised(header, item, words)
            header.items[header.items.index(item)] = new
            header.by_name[name] = [new]
        enum = next(i for i in header.items if "KBKI_WORDS" in names_in(i.tokens) and i.macro is None)
        enum.names = ["KBKI_WORD_" + w for w in words]
        enum.text = f"enum {{ {', '.join(enum.names)} }};"
        enum.tokens = code(tokens_of(enum.text))
        header.by_name.update((n, [enum]) for n in enum.names)
        needs_none = specialised(header, header.by_name[own][-1], [variant]).text.endswith("{ return 0; }")
        self.scratch = None if self.op["scratch"] == "none" or needs_none else own
        if any(t["type"] == "kbk_e4m3" for t in self.tensors):
            reference = reference + header.by_name["kbk_e4m3_value"]
        if self.scratch:
            reference = reference + header.by_name[own]
        self.without_other_variants(closure(header, roots, self.dtype))
        self.device = closure(header, roots, self.dtype)
        while unused_functions_left_out(header, self.device + closure(header, reference, self.dtype)):
            self.device = closure(header, roots, self.dtype)
        widths = {w for i in self.device if i.macro is None for w in re.findall(r"\bkbki_wgmma<T, ([^<>]+)>", i.text)}
        if widths and all(w.isdigit() for w in widths):
            self.device = closure(header, roots, self.dtype, widths=widths)
        self.host = [i for i in closure(header, reference, self.dtype) if i not in self.device]
        self.word = "KBKI_WORD_" + variant if enum in self.device + self.host else "0"

    def without_other_variants(self, items):
        """If the launcher passes some inputs to another variant, the extracted launcher rejects them."""
        text = "\n".join(i.text for i in items)
        for name in set(re.findall(r"\b%s_\w+(?=<T>\(a, st\))" % self.base, text)) - {self.launcher}:
            calls = re.findall(r"(?:(if \(.*\) return )|\b)%s<T>\(" % name, text)
            if name in self.header.by_name and all(calls):
                replaced(self.header, name, "template <class T> const char* %s(const kbk_args*, kbk_stream) {\n    return "
                         '"this input is for the variant %s";\n}' % (name, name[len(self.base) + 1 :]))

    def entry(self):
        params = [f"const {t['type']}* {t['id']}" for t in self.ins] + [f"{t['type']}* {t['id']}" for t in self.outs]
        params += [f"int64_t {n}" for n, _, _ in self.shape] + [f"{kind} {n}" for n, kind, _, _ in self.extra]
        params += ["void* workspace", "size_t workspace_bytes"] if self.scratch else []
        optional = " and ".join(t["id"] for t in self.outs if number(t.get("optional", ("num", "0"))))
        lines = [
            "// Launches the kernel. Returns NULL, or the reason why nothing was launched. Pointers are device pointers."
        ]
        if optional:
            lines.append(f"// {optional} may be NULL.")
        if self.op["family"] == "KBK_GEMM":
            lines.append("// layout 0: A is M x K, B is K x N. 1: B is N x K. 2: A is K x M.")
        if self.scratch:
            lines.append(
                "// The workspace is aligned to 256 bytes. Before the first launch, the first 256 bytes of the workspace are 0 or all ones."
            )
        lines.append(wrapped(f"const char* {self.launcher[4:]}({', '.join(params)}, cudaStream_t stream) {{", "    "))
        lines.append("    kbk_args args = {};")
        lines.append("    " + ", ".join(f"args.s.{f} = {n}" for f, n in self.fields.items()) + ";")
        lines += [f"    args.in[{k}] = {t['id']};" for k, t in enumerate(self.ins)]
        lines += [f"    args.out[{k}] = {t['id']};" for k, t in enumerate(self.outs)]
        lines += ["    args.workspace = workspace, args.workspace_bytes = workspace_bytes;"] if self.scratch else []
        return lines + [f"    return {self.launcher}<{self.element}>(&args, stream);", "}"]

    def fill(self, k, t):
        kind, x, y = t["fill"][1], shown(plain(t["a"])), shown(plain(t["b"]), 13)
        draw = f"uniform((uint64_t)i + ({k}ull << 40))"
        if t["normal"]:
            return f"    kb_fill(kb, {'(kb_e4m3*)' if t['type'] == 'kbk_e4m3' else ''}{t['id']}, {t['n']}, KB_NORMAL);"
        value = {
            "KBK_UNIFORM": f"{x} + ({y} - {x}) * {draw}",
            "KBK_IDS": f"floor({y} * {draw})",
            "KBK_SAME": x,
            "KBK_NORMAL": f"{x} + {y} * (2 * {draw} - 1)",
            # the indices form a single cycle if n is a power of 2
            "KBK_CYCLE": f"(1664525 * i + 1013904223) % {t['n']}",
        }[kind]
        return f"    fill(kb, {t['id']}, {t['n']}, [=](int64_t i) {{ return {value}; }});"

    def benchmark(self):
        row, shape, extra, outs = self.row, self.shape, self.extra, list(enumerate(self.outs))
        name = row["op"] + ("" if row["dir"] in ("fwd", "run") else "_" + row["dir"])
        axes = [f'KB_AXIS("{n}", {value})' for n, _, value in shape] + [x[3] for x in extra if x[3]]
        b = [wrapped(f"KBENCH_IMPL({name}, {row['variant']}, {', '.join(axes)}) {{", "            ")]
        sizes = ", ".join(f'{n} = kb_int(kb, "{n}")' for n, _, _ in shape)
        b.append(f"    const int64_t {sizes};")
        b += [f"    const {kind} {n} = {value};" for n, kind, value, _ in extra]
        b.append("    kbk_shape s = {};")
        b.append("    " + ", ".join(f"s.{f} = {n}" for f, n in self.fields.items()) + ";")
        for t in self.tensors:
            on_host = t.get("place", ("name", ""))[1] == "KBK_ON_HOST"
            place = "" if not on_host else "_HOST" if "KBK_PAGEABLE" in row["origin"] else "_PINNED"
            b.append(f"    {t['type']}* {t['id']} = KB_ALLOC{place}(kb, {t['type']}, {t['n']});")
        if self.scratch:
            b.append(f"    const size_t bytes = {self.scratch}(&s, {self.size}, {self.word});")
            b.append("    char* workspace = bytes ? KB_ALLOC(kb, char, (int64_t)bytes) : NULL;")
        b += [self.fill(k, t) for k, t in enumerate(self.ins)]
        inputs = ", ".join(f"as_doubles(kb, {t['id']}, {t['n']})" for t in self.ins) or "NULL"
        b.append(wrapped(f"    const double* in[] = {{ {inputs} }};", "        "))
        b.append("    const char* why = NULL;")
        b += ["    kb_expect(kb, KB_EXPECT_TRANSFER);"] if "KBK_COPIES" in row["origin"] else []
        call = [t["id"] for t in self.ins + self.outs] + [x[0] for x in shape + extra]
        call += ["workspace", "bytes"] if self.scratch else []
        b.append(
            wrapped(f"    KB_TIME(kb) {{ why = {self.launcher[4:]}({', '.join(call)}, kb->stream); }}", "        ")
        )
        b += ["    if (why) {", '        kb_skip(kb, "%s", why);', "        return;", "    }"]
        b += ["    for (const double* values : in)", "        if (!values) return;"] if self.ins else []
        b.append(wrapped(f"    kb_bytes(kb, {self.bytes});", "        "))
        step = "1"
        if self.flops != "0":
            products = self.op["family"] in ("KBK_GEMM", "KBK_ATTN")
            unit = (
                "TF32" if "KBK_TF32" in row["origin"] else "E4M3" if row["op"] == "matmul_e4m3" else self.dtype.upper()
            )
            b.append(wrapped(f"    const double flops = {self.flops};", "        "))
            b.append(f"    kb_flops_as(kb, flops, KB_{unit if products else 'F32'});")
            step = "1" if any(t["whole"] for t in self.outs) else "flops < 4e8 ? 1 : (int64_t)(flops / 4e8) * 2 + 1"
        b.append("    // computes the reference for all units, or for equally spaced units if all would take too long")
        b.append(f"    const int64_t units = {self.units}, step = {step}, first = (units - 1) % step;")
        b.append("    const int64_t samples = (units - 1) / step + 1;")
        made = []
        for k, t in outs:
            made.append(f"want{k}")
            b.append(f"    double* want{k} = KB_ALLOC_HOST(kb, double, {scaled(t['samples'], t['per'])});")
            if t["scales"]:
                made.append(f"magnitude{k}")
                b.append(f"    double* magnitude{k} = KB_ALLOC_HOST(kb, double, {scaled(t['samples'], t['scales'])});")
        b.append(f"    if ({' || '.join('!' + x for x in made)}) return;")
        b.append("    for (int64_t k = 0; k < samples; k += step > 1 ? 1 : samples) {")
        b.append("        double* parts[2 * KBK_OUTS] = {};")
        for k, t in outs:
            b.append(f"        parts[{k}] = want{k}" + ("" if t["whole"] else " + " + scaled("k", t["per"])) + ";")
            if t["scales"]:
                shift = "" if t["whole"] else " + " + scaled("k", t["scales"])
                b.append(f"        parts[KBK_OUTS + {k}] = magnitude{k}{shift};")
        last = "step > 1 ? first + k * step + 1 : units"
        b.append(f"        {self.base}_ref(&s, {self.size}, in, parts, first + k * step, {last});")
        b.append("    }")
        of_f32, of_type = checks_of(self.header, self.op["check"], row, self.dtype)
        for k, t in outs:
            tolerance = {"KBK_T": of_type, "KBK_KF32": of_f32}.get(t["kind"][1], ["0", "0", "0.5"])
            which = "0, 1" if t["whole"] else "first, step"
            magnitude = f"magnitude{k}, {'true' if t['scales'] == '1' else 'false'}" if t["scales"] else "NULL, false"
            arguments = f"{t['id']}, {t['n']}, {which}, {t['per']}, want{k}, {magnitude}, {', '.join(tolerance)}"
            b.append(wrapped(f'    check(kb, "{t["name"]}", {arguments});', "          "))
        return b + ["}", "KBENCH_MAIN()"]

    def front(self):
        exact = self.row["sm"] if self.row["sm"].startswith("90") else None
        build = f"-gencode=arch=compute_{exact},code=sm_{exact}" if exact else "-arch=native"
        least = {"0": "any", "90a": "9.0 exactly"}.get(
            self.row["sm"], f"{int(self.row['sm'].rstrip('a')) / 10} or newer"
        )
        version = "".join(t.text for t in self.header.macros["KBK_VERSION"].body).strip('"')
        return [
            "// SPDX-License-Identifier: MIT OR Unlicense",
            f"/*  {name_of(self.row, self.dtype)} of kbench_kernels.cuh {version}, taken out by tests/extract.py.",
            "",
            wrapped("    " + self.op["formula"].replace("*/", "* /"), "    "),
            "    " + self.row["note"],
            "",
            f"    nvcc -std=c++17 -O3 {build} -I. one.cu -o one && ./one      with kbench.h in this folder",
            f"    ./one {' '.join(f'-a {n}={value}' for n, _, value in self.shape)}     other shapes",
            f"    -DKERNEL_ONLY leaves out the benchmark. Compute capability: {least}. */",
        ]

    def device_code(self):
        """Returns also a text that lists kernel parameters of invalid types; without such parameters, an empty text."""
        items = Plain(self.header, self.device, "e4m3" if self.row["op"] == "matmul_e4m3" else self.dtype).items
        kernels = parameters_of(items)
        bad = ["%s has a parameter of type %s" % (name, p) for name, params in kernels for p in params]
        bad += [] if kernels or self.row["variant"] == "cudart" else ["no kernel found"]
        return written(items), "; ".join(bad)

    def file(self):
        device, bad = self.device_code()
        if bad:
            stop(f"{name_of(self.row, self.dtype)}: {bad}")
        entry, benchmark = "\n".join(self.entry()), "\n".join(self.benchmark())
        includes = ["cuda_runtime.h", "math.h", "stdint.h", "string.h"]
        includes += [h for h, t in (("cuda.h", "CUtensorMap"), ("cuda_bf16.h", "__nv_bf"), ("cuda_fp16.h", "__half"),
                                      ("stdio.h", "snprintf("), ("stdlib.h", "getenv(")) if t in device + entry]
        widened = f"\nstatic double widened({self.element} x) {{ return (float)x; }}" if self.size == 2 else ""
        if any(t["type"] == "kbk_e4m3" for t in self.ins):
            widened += "\nstatic double widened(kbk_e4m3 x) { return kbk_e4m3_value(x.bits); }"
        fill = "" if all(t["normal"] for t in self.ins) else (UNIFORM if "uniform(" in benchmark else "") + FILL
        bits = {"f32": 23, "f16": 10, "bf16": 7}[self.dtype]
        parts = ["\n".join(self.front() + [f"#include <{h}>" for h in sorted(includes)]), device.rstrip("\n"), entry]
        parts += [
            "#ifndef KERNEL_ONLY\n// --- Reference in double precision, on the CPU.\n" + written(self.host).rstrip("\n")
        ]
        parts += [HELPERS % dict(widened=widened, fill=fill, bits=bits), benchmark + "\n#endif // KERNEL_ONLY\n"]
        return "\n\n".join(p.rstrip("\n") for p in parts) + "\n"


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kbench_kernels.cuh")
    text = open(path, encoding="utf-8").read()
    tokens = tokens_of(text)
    ops, rows = table_of(Header(text, tokens, "0"))
    names = {name_of(r, d): (r, d) for r in rows if r["op"] not in ("alloc", "null") for d in r["dtypes"]}
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, file=sys.stdout if len(sys.argv) == 2 else sys.stderr)
        sys.exit(0 if len(sys.argv) == 2 else 2)
    if sys.argv[1] == "--list":
        print("\n".join(names))
        return
    if sys.argv[1] == "--check":
        headers = {sm: Header(text, tokens, sm) for sm in sorted({row["sm"] for row, _ in names.values()})}
        found = [(n, Extraction(headers[row["sm"]].copied(), row, ops[row["op"], row["dir"]], dtype).device_code()[1])
                 for n, (row, dtype) in names.items()]
        print("\n".join("%s: %s" % x for x in found if x[1]) or "%d variants have plain parameters" % len(found))
        sys.exit(any(bad for _, bad in found))
    wanted = re.sub(r"^([^/]*)/(fwd|run)/", r"\1/", sys.argv[1])
    if wanted not in names:
        if "/cublas/" in wanted or wanted.startswith(("alloc/", "null/")):
            stop("%s has no kernel of its own" % wanted)
        near = difflib.get_close_matches(wanted, names, 5, 0.5)
        stop("there is no %s%s. --list prints all names." % (wanted, "; close are " + ", ".join(near) if near else ""))
    row, dtype = names[wanted]
    header = Header(text, tokens, row["sm"])
    try:
        sys.stdout.write(Extraction(header, row, ops[row["op"], row["dir"]], dtype).file())
    except ValueError as e:
        stop(f"{wanted}: the functions for tensors, formulas and scratch memory use what Evaluator does not know: {e}")


if __name__ == "__main__":
    main()
