#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""The layout of kbench.h, computed from its text: who defines, who uses, and whether a stage reaches where it must not.

    layout.py FILE [--check]          what is wrong, a line each; exit code 1 where something is, else 0
    layout.py FILE --graph            the same behind a table of sections by the sections that they use
    layout.py FILE --sizes            only the lengths of sections and functions; for any header with sections
    layout.py FILE --fix [--public]   rewrites what is wrong in "Used by:" (and "Public:"), then checks
    layout.py FILE --plant DIR        writes copies of FILE into DIR, each with one thing wrong, for the tool's own test

A section begins with a ruler, `  >>tag  text`, and in the same comment `Public: ...      Used by: ...`, which may go on
over further lines. Those before the line "Stop here" are the API half. In the other half the text begins with a stage's
word and a colon; the same word stands in the list of contents. The stages are, in order,

    foundation  declare  plan  measure  judge  record  render  program

STAGES: a section uses functions, variables, macros, types and constants of its own stage, of the foundation and of the
API half; the program uses everything. A public function is its stage's, not the API half's. A declaration ahead of its
definition is a use. A use of an API macro is a use of what its text names. measure, judge, record and render may not
name the command line's options, wherever these stand. Between "Stop here" and the first section there are preprocessor
lines only. Sections stand in the order of their stages, but >>ptx, which is data, anywhere; it may also be long.

Public:     none, or the kb_* functions that the section defines, each by name.
            In the API half also: `all of it`, `all but KBI_*`, `KBENCH_*` (it defines such names).
Used by:    none, or words with commas between them. They have to give exactly the sections that use a name of this one:
    >>tag               that section
    measure             a stage: all of its sections that use this one; one at least does
    everything after it all later sections that use this one; at least two thirds of the later ones do
    programs            it defines a function that >>api declares; said of each section of the API half
            No section is given twice. A word may bear a remark in parentheses. What the API half itself uses counts for
            sections of the API half only: for the others that is `programs`.
"""
import bisect
import os
import re
import sys
import textwrap
from collections import Counter, defaultdict, namedtuple

STAGES = ['foundation', 'declare', 'plan', 'measure', 'judge', 'record', 'render', 'program']
NO_OPTIONS = {'measure', 'judge', 'record', 'render'}
OPTION = re.compile(r'kbi_options?|KBI_OPTIONS?|KBI_OPTION_\w+')
DATA = {'ptx'}
SECTION_LINES, FUNCTION_LINES, API_LINES, WIDTH = 500, 60, 920, 115
OURS = re.compile(r'(?:kb|KB|kbi|KBI)_\w+|(?:kbench|KBENCH)\w*')
NO_FUNCTION = {'__attribute__', '__declspec', 'alignas', '_Alignas', '__launch_bounds__', '__align__'}

# ---- tokens ----------------------------------------------------------------------------------------------------------

Token = namedtuple('Token', 'kind text line')  # kind: id, string, char, number, paste, punct; pp: text has its tokens;
#                                                use: a name that is used here and plays no part in the syntax
LEXER = re.compile(r'''[ \t\r\f\v]*(?:(?P<comment>//[^\n]*(?:(?<=\\)\n[^\n]*)*|/\*.*?\*/)
    |(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.]|'(?=\w))*)
    |(?P<id>[A-Za-z_]\w*)
    |(?P<newline>\n)
    |(?P<space>\\\n)
    |(?P<paste>\#\#)
    |(?P<punct>->|--|\+\+|\.\.\.|.))''', re.S | re.X)


def lex(text):
    """All tokens; a preprocessor line with its continuations is one of them."""
    out, line, fresh, directive = [], 1, True, None
    for m in LEXER.finditer(text):
        kind = m.lastgroup
        s = m.group(kind)
        if kind == 'newline':
            if directive is not None:
                out.append(Token('pp', directive, directive[0].line))
            line, fresh, directive = line + 1, True, None
            continue
        if kind in ('comment', 'space'):
            line += s.count('\n')
            continue
        token = Token('string' if kind == 'raw' else kind, s, line)
        if fresh and s == '#':
            directive = [token]
        else:
            (out if directive is None else directive).append(token)
        fresh = False
        if kind in ('raw', 'string'):
            line += s.count('\n')
    if directive is not None:
        out.append(Token('pp', directive, directive[0].line))
    return out


# ---- macros: those that paste names, and lists that are given a macro, are expanded; the others are names like any ---

Macro = namedtuple('Macro', 'name params body line')  # params None: no parentheses


def directive(token):
    """The directive's word, and what follows it."""
    words = token.text[1:]
    return (words[0].text, words[1:]) if words else ('', [])


def macro_of(rest, text_lines):
    name, params, body = rest[0], None, rest[1:]
    # "#define X (1)" has a blank, "#define X(a)" has none
    if body and body[0].text == '(' and re.search(r'\b%s\(' % name.text, text_lines[name.line - 1]):
        end = next(i for i, t in enumerate(body) if t.text == ')')
        params, body = [t.text for t in body[1:end] if t.text != ','], body[end + 1:]
    return Macro(name.text, params, body, name.line)


def arguments(tokens, i):
    """Of a call whose parenthesis is tokens[i]: its arguments and the index behind it; None where there is no call."""
    if i >= len(tokens) or tokens[i].text != '(' or tokens[i].kind == 'pp':
        return None
    args, depth = [[]], 0
    for j in range(i, len(tokens)):
        t = tokens[j]
        if t.kind == 'pp':
            return None
        if t.text in ('(', '[', '{'):
            depth += 1
            if depth == 1:
                continue
        elif t.text in (')', ']', '}'):
            depth -= 1
            if depth == 0:
                return args, j + 1
        if t.text == ',' and depth == 1:
            args.append([])
        else:
            args[-1].append(t)
    return None


def substitute(macro, args, line):
    params = dict(zip(macro.params, args))
    if macro.params and macro.params[-1] == '...':
        rest = args[len(macro.params) - 1:]
        params['__VA_ARGS__'] = [t for k, a in enumerate(rest) for t in ([Token('punct', ',', line)] if k else []) + a]
    out, body, i = [], macro.body, 0
    while i < len(body):
        t = body[i]
        if t.text == '#' and i + 1 < len(body) and body[i + 1].text in params:
            out.append(Token('string', '""', line))
            i += 2
            continue
        piece = [Token(p.kind, p.text, line) for p in (params[t.text] if t.text in params else [t])]
        if t.kind == 'paste':
            i += 1
            right = body[i:i + 1]
            right = params.get(right[0].text, right) if right else []
            if out and right:
                glued = out.pop().text + right[0].text
                out.append(Token('id' if re.fullmatch(r'[A-Za-z_]\w*', glued) else 'number', glued, line))
                out.extend(Token(p.kind, p.text, line) for p in right[1:])
        else:
            out.extend(piece)
        i += 1
    return out


def expand(tokens, live, busy=()):
    out, i = [], 0
    while i < len(tokens):
        t = tokens[i]
        macro = live.get(t.text) if t.kind == 'id' and t.text not in busy else None
        call = arguments(tokens, i + 1) if macro and macro.params is not None else None
        if call:
            args, after = call
            given = [a[0].text for a in args if len(a) == 1 and a[0].text in live and live[a[0].text].params]
            if given or any(b.kind == 'paste' for b in macro.body):
                out.extend(Token('use', name, t.line) for name in [t.text] + given)
                out.extend(expand(substitute(macro, args, t.line), live, busy + (t.text,)))
                i = after
                continue
        out.append(t)
        i += 1
    return out


def preprocess(tokens, text_lines):
    """The tokens with those macros expanded, pragmas in macros out of the way; all macros; where they are undefined."""
    out, run, live, macros, undefined = [], [], {}, [], defaultdict(list)
    pragmas = set()
    for t in tokens + [Token('pp', [Token('punct', '#', 0)], 0)]:
        if t.kind != 'pp':
            run.append(t)
            continue
        word, rest = directive(t)
        # lines such as #if stand inside calls of macros too, but never inside those expanded here
        out.extend(expand(run, live))
        run = []
        if word == 'define' and rest:
            macro = macro_of(rest, text_lines)
            macros.append(macro)
            live[macro.name] = macro
            if macro.body and macro.body[0].text == '_Pragma':
                pragmas.add(macro.name)
        elif word == 'undef' and rest:
            undefined[rest[0].text].append(t.line)
            live.pop(rest[0].text, None)
        if t.line:
            out.append(t)
    out = [Token('use', t.text, t.line) if t.kind == 'id' and t.text in pragmas else t for t in out]
    return out, macros, undefined


# ---- declarations at file scope --------------------------------------------------------------------------------------

class Declaration:
    def __init__(self, tokens, body):
        self.tokens = [t for t in tokens if t.kind != 'use']
        self.used = [t for t in tokens if t.kind == 'use']
        self.body = body  # a function's definition
        self.first, self.last = self.tokens[0].line, self.tokens[-1].line
        self.kind, self.names, self.context = 'declaration', [], None  # names: (name, kind, line)


def whole_call(tokens, line):
    """Whether they are a macro's call that stands for declarations: NAME(...), and nothing behind it in its line."""
    t = [x for x in tokens if x.kind != 'use']
    return (len(t) > 2 and t[0].kind == 'id' and t[0].text.isupper() and t[1].text == '(' and t[-1].text == ')' and
            t[-1].line < line)


def declarations(tokens):
    """Cuts a file into its declarations; (declaration, ...), and the line of a brace that does not fit, or None."""
    out, now, depth, paren, body, stack = [], [], 0, 0, False, []

    def end():
        if any(t.kind != 'use' and t.text != ';' for t in now):
            out.append(Declaration(now, body))

    for t in tokens:
        if t.kind == 'pp':
            word, _ = directive(t)
            if word in ('if', 'ifdef', 'ifndef'):
                stack.append((depth, paren))
            elif word.startswith('el') and stack:  # the branches are alternatives
                depth, paren = stack[-1]
            elif word == 'endif' and stack:
                stack.pop()
            continue
        if depth == 0 and paren == 0 and t.kind != 'use' and t.text not in ';{' and whole_call(now, t.line):
            end()
            now = []
        now.append(t)
        if t.kind != 'punct':
            continue
        if t.text in '([':
            paren += 1
        elif t.text in ')]':
            paren -= 1
        elif t.text == '{':
            before = [x for x in now[:-1] if x.kind != 'use']
            if depth == 0 and [x.text for x in before] == ['extern', '"C"']:
                now = []
                continue
            if depth == 0 and paren == 0:
                body = function_name(before) is not None
            depth += 1
        elif t.text == '}':
            depth -= 1
            if depth < 0:  # of extern "C"
                depth, now = 0, []
            elif depth == 0 and paren == 0 and body:
                end()
                now, body = [], False
        elif t.text == ';' and depth == 0 and paren == 0:
            end()
            now, body = [], False
    return out, (now[0].line if any(t.kind != 'use' for t in now) else None)


def behind_template(tokens):
    """A declaration without the `template <...>` before it, where a default may stand behind a `=`."""
    while len(tokens) > 1 and tokens[0].text == 'template' and tokens[1].text == '<':
        angles = round_ = 0
        for i, t in enumerate(tokens[1:], 1):
            round_ += t.text in ('(', '[', '{')
            round_ -= t.text in (')', ']', '}')
            angles += round_ == 0 and (t.text == '<') - (t.text == '>')
            if angles == 0:
                break
        tokens = tokens[i + 1:]
    return tokens


def function_name(head):
    """The token that names the function, where head, all that stands before a brace, opens a function's body."""
    head = behind_template(head)
    texts = [t.text for t in head]
    while texts and texts[-1] in ('const', 'noexcept', 'override'):
        texts.pop()
    if not texts or texts[-1] != ')':
        return None
    depth, name = 0, None
    for i, s in enumerate(texts):
        if s == '(':
            if depth == 0 and i and head[i - 1].kind == 'id' and texts[i - 1] not in NO_FUNCTION:
                name = head[i - 1]
            depth += 1
        elif s == ')':
            depth -= 1
        elif s == '=' and depth == 0 and (i == 0 or texts[i - 1] != 'operator'):
            return None
    return name


def members(d):
    """The functions that a declaration's structs define."""
    out, i, t = [], 0, d.tokens
    while not d.body and i < len(t):
        if t[i].text in ('struct', 'class', 'union'):
            brace = next((k for k in range(i, len(t)) if t[k].text in ('{', ';')), len(t))
            if brace < len(t) and t[brace].text == '{':
                end = closing(t, brace)
                inner, _ = declarations(t[brace + 1:end])
                for x in inner:
                    if x.body:
                        brace = next(k for k in range(len(x.tokens)) if x.tokens[k].text == '{' and
                                     function_name(x.tokens[:k]) is not None)
                        x.context = function_name(x.tokens[:brace]).text
                    out += [x] if x.body else members(x)
                i = end
        i += 1
    return out


def closing(tokens, i):
    depth = 0
    for j in range(i, len(tokens)):
        depth += tokens[j].text in ('(', '[', '{') and tokens[j].kind == 'punct'
        depth -= tokens[j].text in (')', ']', '}') and tokens[j].kind == 'punct'
        if depth == 0:
            return j
    return len(tokens) - 1


def enumerators(tokens):
    """Of what stands between an enum's braces."""
    names, at_name, i = [], True, 0
    while i < len(tokens):
        t = tokens[i]
        if t.text in ('(', '[', '{'):
            i = closing(tokens, i)
        elif t.text == ',':
            at_name = True
        elif at_name and t.kind == 'id':
            names.append(t)
            at_name = False
        i += 1
    return names


def declarator(tokens):
    """The token that a declarator names, and whether it is a function's prototype."""
    depth, name = 0, None
    for i, t in enumerate(tokens):
        if t.text == '=' and depth == 0:
            break
        if t.text == '(' and depth == 0 and name is not None and tokens[i - 1] is name and name.text not in NO_FUNCTION:
            inner = tokens[i + 1:closing(tokens, i)]
            if inner and inner[0].text == '*' and len(inner) > 1 and inner[1].kind == 'id':
                return inner[1], False  # void (*name)(...)
            return name, True
        depth += t.text in ('(', '[', '{')
        depth -= t.text in (')', ']', '}')
        if depth == 0 and t.kind == 'id':
            name = t
    return name, False


def resolve(d, macros):
    """Fills in what a declaration defines."""
    t = d.tokens
    if d.body:
        brace = next(i for i, x in enumerate(t) if x.text == '{' and function_name(t[:i]) is not None)
        name = function_name(t[:brace])
        d.kind, d.context, d.names = 'function', name.text, [(name.text, 'function', name.line)]
        return
    plain, i, bodies = [], 0, 0
    while i < len(t):  # types with their bodies out of the way
        if t[i].text in ('struct', 'union', 'enum', 'class'):
            word, j = t[i].text, i + 1
            while j < len(t) and (t[j].text == '__attribute__' or t[j].text == '('):
                j = closing(t, j + 1 if t[j].text == '__attribute__' else j) + 1
            tag = t[j] if j < len(t) and t[j].kind == 'id' else None
            brace = next((k for k in range(j, min(j + 8, len(t))) if t[k].text in '{;=,()'), len(t))
            if brace < len(t) and t[brace].text == '{':
                end = closing(t, brace)
                bodies += 1
                if tag:
                    d.names.append((tag.text, 'type', tag.line))
                for k in range(brace, end):  # an enum within a struct, too
                    if t[k].text == 'enum':
                        at = next((q for q in range(k, min(k + 3, end)) if t[q].text == '{'), None)
                        if at:
                            d.names += [(e.text, 'constant', e.line) for e in enumerators(t[at + 1:closing(t, at)])]
                if word == 'enum':
                    d.names += [(e.text, 'constant', e.line) for e in enumerators(t[brace + 1:end])]
                plain.append(Token('punct', '<type>', t[i].line))
                i = end + 1
                continue
            if tag:  # struct tag: a type, not a name that is declared here
                plain += [Token('punct', '<type>', t[i].line)]
                d.kind = 'forward' if [x.text for x in t[j + 1:]] == [';'] else d.kind
                i = j + 1
                continue
        plain.append(t[i])
        i += 1
    d.context = next((n for n, kind, _ in d.names if kind == 'type'), None)
    if d.kind == 'forward' or any(x.text in ('extern', 'using', 'template', 'namespace') for x in t[:2]):
        d.kind = 'declaration'
        return
    # a macro with arguments in front (an attribute) is no declarator
    while len(plain) > 1 and plain[0].text in macros and plain[1].text == '(':
        plain = plain[closing(plain, 1) + 1:]
    if [x.text for x in plain] in (['<type>', ';'], []):
        return
    typedef = plain[0].text == 'typedef'
    parts, start, i = [], 0, 0
    while i < len(plain):
        if plain[i].text in ('(', '[', '{'):
            i = closing(plain, i)
        elif plain[i].text in (',', ';'):
            parts.append(plain[start:i])
            start = i + 1
        i += 1
    for part in parts:
        name, prototype = declarator(part)
        if name is None:
            continue
        if prototype and not typedef:
            d.kind, d.context = 'prototype', name.text
            continue
        kind = 'type' if typedef else 'variable'
        same = typedef and not bodies and ['struct', name.text] == [x.text for x in t[1:3]]
        d.names.append((name.text, 'ahead' if same else kind, name.line))
        d.context = d.context or name.text


# ---- sections --------------------------------------------------------------------------------------------------------

class Section:
    """first: the ruler's line; at: the tag's; public_at: that of "Public:"; end: the header's last line. From 1."""

    def __init__(self, tag, text, first, at):
        self.tag, self.text, self.first, self.at = tag, text, first, at
        self.public = self.used_by = None
        self.public_at = self.end = at
        self.api, self.index, self.last = False, 0, 0
        self.word = self.stage = None

    def __str__(self):
        if not self.tag:
            return 'what stands before the first section'
        return '>>' + self.tag + ('' if self.api or not self.stage else ' (%s)' % self.stage)


def word_of(text):
    m = re.match(r'([a-z]+):', text)
    return m.group(1) if m and m.group(1) in STAGES else None


def find_sections(lines):
    out = []
    for i in range(len(lines) - 1):
        m = re.match(r'  >>([a-z_0-9]+)\s+(.*)', lines[i + 1]) if lines[i].startswith('/*-----') else None
        if not m:
            continue
        s = Section(m.group(1), m.group(2), i + 1, i + 2)
        end = next((j for j in range(i + 1, len(lines)) if lines[j].rstrip().endswith('*/')), len(lines) - 1)
        s.end = end + 1
        at = next((j for j in range(i + 1, end) if lines[j].lstrip().startswith('Public:')), None)
        if at is not None:
            s.public_at = at + 1
            words = ' '.join(' '.join(lines[at:end]).split())
            s.public, _, used_by = words[len('Public:'):].partition('Used by:')
            s.public, s.used_by = s.public.strip(), used_by.strip()
        out.append(s)
    return out


Use = namedtuple('Use', 'section name line context verb via')
Definition = namedtuple('Definition', 'name kind section line')


class Header:
    def __init__(self, path, text):
        self.path, self.text, self.lines = path, text, text.split('\n')
        self.problems = []
        self.sections = find_sections(self.lines)
        self.by_tag = {s.tag: s for s in self.sections}
        self.stop = self.find_stop()
        self.before = Section('', '', self.stop or 0, self.stop or 0)  # between "Stop here" and the first section
        self.before.stage = 'foundation'
        self.frame()
        tokens, self.macros, undefined = preprocess(lex(text), self.lines)
        self.declarations, open_at = declarations(tokens)
        if open_at:
            self.problems.append('line %d: a declaration does not end' % open_at)
        names = {m.name for m in self.macros}
        for d in self.declarations:
            resolve(d, names)
        self.collect(tokens, undefined)

    def find_stop(self):
        at = [i + 1 for i, line in enumerate(self.lines) if re.match(r'\s*Stop here if you only want the API', line)]
        return at[-1] if at else None

    def frame(self):
        """Ends of sections, halves and stages."""
        s = self.sections
        rulers = [i + 1 for i, line in enumerate(self.lines) if line.startswith('/*-----')]
        for i, x in enumerate(s):
            x.index = i
            x.last = next((r for r in rulers if r > x.first), len(self.lines) + 1) - 1
            x.api = bool(self.stop) and x.first < self.stop
            x.word = word_of(x.text)
        rest = [x for x in s if not x.api]
        worded = [x.index for x in rest if x.word]
        stage = 'foundation'
        for x in rest:  # one without its word is taken for what stands around it, so that the rest can be judged
            if not x.word and worded and x.index > worded[-1]:
                stage = 'program'
            x.stage = stage = x.word or stage
        self.starts = [x.first for x in s]

    def section_at(self, line):
        i = bisect.bisect_right(self.starts, line) - 1
        s = self.sections[i] if i >= 0 else None
        if self.stop and line > self.stop and (s is None or s.api):
            return self.before
        return s

    # ---- who defines, who uses ----

    def define(self, name, kind, line):
        s = self.section_at(line)
        if s is not None and OURS.fullmatch(name):
            self.defined[name].append(Definition(name, kind, s, line))

    def collect(self, tokens, undefined):
        self.defined = defaultdict(list)
        self.declared = defaultdict(set)  # what the API half declares: name -> its sections
        ahead = []
        for m in self.macros:
            s = self.section_at(m.line)
            if not any(u > m.line and self.section_at(u) is s for u in undefined[m.name]):  # else it is local
                self.define(m.name, 'macro', m.line)
        for d in self.declarations:
            for name, kind, line in d.names:
                if kind == 'ahead':
                    ahead.append((name, line))
                else:
                    self.define(name, kind, line)
            s = self.section_at(d.first)
            if d.kind == 'prototype' and s is not None and s.api:
                self.declared[d.context].add(s)
        for name, line in ahead:
            if not self.defined[name]:
                self.define(name, 'type', line)
        self.gather(tokens)

    def gather(self, tokens):
        """All uses: (section, name, line, in what, how)."""
        raw = []
        for t in tokens:
            if t.kind != 'pp':
                continue
            word, rest = directive(t)
            if word == 'define' and rest:
                m = macro_of(rest, self.lines)
                for i, b in enumerate(m.body):
                    pasted = any(x.kind == 'paste' for x in m.body[max(i - 1, 0):i + 2])
                    if b.kind == 'id' and b.text not in (m.params or ()) and not pasted:
                        raw.append((b.text, b.line, m.name, 'macro'))
            elif word in ('if', 'ifdef', 'ifndef', 'elif'):
                raw += [(b.text, b.line, None, 'use') for b in rest if b.kind == 'id']
        for d in self.declarations:
            raw += [(u.text, u.line, d.context, 'use') for u in d.used]
            x = d.tokens
            for i, t in enumerate(x):
                if t.kind != 'id' or t.text[:2] not in ('kb', 'KB') or (i and x[i - 1].text in ('.', '->')):
                    continue
                call = i + 1 < len(x) and x[i + 1].text == '('
                verb = 'declares' if d.kind == 'prototype' and call else 'call' if call else 'use'
                raw.append((t.text, t.line, d.context, verb))
        named = defaultdict(set)  # API macro -> what its text names
        for name, line, context, verb in raw:
            s = self.section_at(line)
            if verb == 'macro' and s is not None and s.api:
                named[context].add(name)
        self.uses = []
        for name, line, context, verb in raw:
            s = self.section_at(line)
            if s is None or not OURS.fullmatch(name):
                continue
            self.uses.append(Use(s, name, line, context, verb, None))
            if not s.api:
                self.uses += [Use(s, n, line, context, verb, name) for n in self.reach(name, named)]

    def reach(self, name, named):
        seen, open_ = set(), [name]
        while open_:
            for n in named.get(open_.pop(), ()):
                if n not in seen and OURS.fullmatch(n):
                    seen.add(n)
                    open_.append(n)
        return sorted(n for n in seen if any(not d.section.api for d in self.defined[n]))

    def owners(self, use):
        """The sections that a name belongs to, seen from where it is used: {section: kind}."""
        d = self.defined.get(use.name, [])
        if use.section.api:
            out = {x.section: x.kind for x in d if x.section.api}
            out.update((s, 'function') for s in self.declared.get(use.name, ()))
        else:
            out = {x.section: x.kind for x in d if not x.section.api} or {x.section: x.kind for x in d}
        return {} if use.section in out else out

    # ---- checks ----

    def check(self):
        p = self.problems
        if not self.stop:
            p.append('no line "Stop here if you only want the API"')
        if sum(not s.api for s in self.sections) < 5:
            p.append('hardly any section was found')
        self.edges = defaultdict(lambda: defaultdict(set))  # user -> owner -> {(name, line)}
        self.first_use = {}
        wrong = defaultdict(list)
        for u in self.uses:
            for owner, kind in self.owners(u).items():
                self.edges[u.section][owner].add((u.name, u.line))
                self.first_use.setdefault((u.section, owner), u)
                if not u.section.api and not self.allowed(u.section, owner):
                    verb = 'calls' if u.verb == 'call' and kind == 'function' else 'declares' if u.verb == 'declares' \
                        else 'uses'
                    wrong[u.section, owner, u.name, verb].append(u)
        self.check_headers()
        self.check_contents()
        self.check_untagged()
        self.violations = []
        for (user, owner, name, verb), uses in wrong.items():
            if not (user.stage in NO_OPTIONS and OPTION.fullmatch(name)):
                self.violations.append((uses[0].line, '%s %s %s of %s, %s' % (user, verb, name, owner, sites(uses))))
        self.check_options()
        p += [text for _, text in sorted(self.violations)]
        self.check_public()
        self.check_used_by()
        self.check_sizes()
        return p

    @staticmethod
    def allowed(user, owner):
        return owner.api or owner.stage in ('foundation', user.stage) or user.stage == 'program'

    def check_headers(self):
        top, seen = None, set()
        for s in self.sections:
            if s.tag in seen:
                self.problems.append('line %d: there are two sections >>%s' % (s.at, s.tag))
            seen.add(s.tag)
            if s.public is None or not s.used_by:
                self.problems.append('line %d: >>%s does not say what is public and who uses it' % (s.at, s.tag))
            if s.api and s.word:
                self.problems.append('line %d: >>%s is of the API half and bears the word of a stage' % (s.at, s.tag))
            if s.api or s.tag in DATA and s.word:
                continue
            if not s.word:
                self.problems.append('line %d: >>%s bears no stage\'s word (taken for %s here)' % (
                    s.at, s.tag, s.stage))
            elif top is not None and STAGES.index(s.stage) < STAGES.index(top.stage):
                self.problems.append('line %d: %s stands behind %s: out of the order of the stages' % (s.at, s, top))
            else:
                top = s

    def check_contents(self):
        begin = next((i for i, line in enumerate(self.lines) if line.startswith('CONTENTS')), None)
        if begin is None:
            self.problems.append('no list of contents')
            return
        listed, stop, word = [], None, {}
        for line in self.lines[begin + 1:]:
            m = re.match(r' +(>>([a-z_0-9]+)|---) +(.*)', line)
            if m and m.group(2):
                listed.append(m.group(2))
                word[m.group(2)] = word_of(m.group(3))
            elif m:
                stop = len(listed)
            elif listed and line.strip() and not line.startswith('     '):
                break
        placed = [s.tag for s in self.sections]
        for what, tags in (('the contents lack', [x for x in placed if x not in listed]),
                           ('the contents list what is no section:', [x for x in listed if x not in placed])):
            if tags:
                self.problems.append('%s %s' % (what, ', '.join('>>' + x for x in tags)))
        for a, b in zip([x for x in listed if x in placed], [x for x in placed if x in listed]):
            if a != b:
                self.problems.append('the contents have >>%s where the file has >>%s' % (a, b))
                break
        if stop != sum(s.api for s in self.sections):
            self.problems.append('the contents say "stop here" at another place than the file')
        for s in self.sections:
            if s.tag in word and word[s.tag] != s.word:
                self.problems.append('>>%s: the contents say %s, its header says %s' % (
                    s.tag, word[s.tag] or 'no stage', s.word or 'none'))

    def check_untagged(self):
        for d in self.declarations:
            s = self.section_at(d.first)
            if s is self.before:
                what = d.context or ' '.join(t.text for t in d.tokens[:4])
                self.problems.append('untagged: %s, line %d, stands between "Stop here" and the first section' % (
                    what, d.first))
            elif s is not self.section_at(d.last):
                self.problems.append('line %d: a declaration runs on into another section' % d.first)

    def check_options(self):
        wrong = defaultdict(list)
        for u in self.uses:
            if not u.section.api and u.section.stage in NO_OPTIONS and OPTION.fullmatch(u.name):
                wrong[u.section, u.name].append(u)
        for (s, name), uses in wrong.items():
            self.violations.append((uses[0].line, '%s reads the command line\'s options: %s, %s' % (
                s, name, sites(uses))))

    def public_of(self, s):
        names = [(d.line, n) for n, ds in self.defined.items() for d in ds
                 if d.section is s and d.kind == 'function' and n.startswith('kb_')]
        return list(dict.fromkeys(n for _, n in sorted(names)))

    def check_public(self):
        for s in self.sections:
            if s.public is None:
                continue
            has = self.public_of(s)
            if s.api and s.public in ('all of it', 'all but KBI_*'):
                continue
            if s.api and re.fullmatch(r'\w+_\*', s.public):
                own = [n for n, ds in self.defined.items() if any(d.section is s for d in ds)]
                if not any(n.startswith(s.public[:-1]) for n in own):
                    self.problems.append('line %d: >>%s: "Public:" names %s, and defines no such name' % (
                        s.public_at, s.tag, s.public))
                continue
            says = [] if s.public == 'none' else [x.strip() for x in s.public.split(',')]
            extra = [x for x in says if x not in has]
            lacks = [x for x in has if x not in says]
            text = '; '.join((['names %s, which it does not define' % ', '.join(extra)] if extra else []) +
                             (['lacks %s' % ', '.join(lacks)] if lacks else []))
            if text:
                self.problems.append('line %d: >>%s: "Public:" %s; right is\n    Public: %s' % (
                    s.public_at, s.tag, text, ', '.join(has) or 'none'))

    # ---- "Used by:" ----

    def users(self, s):
        """The sections that use a name of this one, and whether programs do."""
        out = [u for u in self.sections if u is not s and self.edges[u].get(s) and (s.api or not u.api)]
        programs = s.api or any(self.declared.get(n) and any(d.section is s and d.kind == 'function' for d in ds)
                                for n, ds in self.defined.items())
        return out, programs

    def broad(self, s, users):
        later = [x for x in self.sections if x.index > s.index]
        return later, bool(later) and 3 * sum(x.index > s.index for x in users) >= 2 * len(later)

    def used_by(self, s):
        """What "Used by:" has to say; remarks of the old text are kept."""
        users, programs = self.users(s)
        later, broad = self.broad(s, users)
        words = ['programs'] if programs else []
        if broad and len(later) >= 12:  # near the end of the file it says little
            words.append('everything after it')
            users = [x for x in users if x.index < s.index]
        words += ['>>' + x.tag for x in users if x.api]
        for stage in STAGES:
            members = [x for x in users if not x.api and x.stage == stage]
            words += [stage] if len(members) > 2 else ['>>' + x.tag for x in members]
        remarks = dict(re.findall(r'([^,()]*[^,() ]) *(\([^()]*\))', s.used_by or ''))
        remarks = {k.strip(): v for k, v in remarks.items()}
        return ', '.join(w + (' ' + remarks[w] if w in remarks else '') for w in words) or 'none'

    def wrong_used_by(self, s):
        """What is wrong with "Used by:", as pieces of a sentence."""
        users, programs = self.users(s)
        later, broad = self.broad(s, users)
        given, said, out = [], set(), []
        plain = re.sub(r' *\([^()]*\)', '', s.used_by)
        for word in [] if plain == 'none' else [x.strip() for x in plain.split(',')]:
            if word == 'programs':
                if not programs:
                    out.append('says programs, and it defines nothing that >>api declares')
                said.add(word)
            elif word == 'everything after it':
                if not broad:
                    out.append('says everything after it: of the %d later sections %d use it' % (
                        len(later), sum(x.index > s.index for x in users)))
                given += [x for x in users if x.index > s.index]
            elif word in STAGES:
                members = [x for x in users if not x.api and x.stage == word]
                if not members:
                    out.append('names %s, of which no section uses it' % word)
                given += members
            elif word[:2] == '>>' and word[2:] in self.by_tag:
                x = self.by_tag[word[2:]]
                if x not in users:
                    out.append('names %s, which uses nothing of it' % word)
                given.append(x)
            else:
                out.append('says "%s", which is no section, no stage and no word for it' % word)
        out += ['names >>%s twice' % x.tag for x, n in Counter(given).items() if n > 1]
        missing = [(x, self.first_use[x, s]) for x in users if x not in given]
        if missing:
            out.append('lacks ' + ', '.join('>>%s (%s, line %d)' % (x.tag, u.name, u.line) for x, u in missing[:5]) +
                       (' and %d more' % (len(missing) - 5) if len(missing) > 5 else ''))
        if programs and 'programs' not in said:
            out.append('lacks programs')
        return out

    def check_used_by(self):
        for s in self.sections:
            out = self.wrong_used_by(s) if s.used_by else []
            if out:
                self.problems.append('line %d: >>%s: "Used by:" %s; right is\n    Used by: %s' % (
                    s.public_at, s.tag, '; '.join(out), self.used_by(s)))

    # ---- sizes ----

    def functions(self):
        """All that have a body, in the order of the file; those of structs, too."""
        for d in self.declarations:
            if d.body:
                yield d
            else:
                yield from members(d)

    def check_sizes(self):
        for s in self.sections:
            n = s.last - s.first + 1
            if n > SECTION_LINES and s.tag not in DATA:
                self.problems.append('>>%s has %d lines; at most %d' % (s.tag, n, SECTION_LINES))
        for d in self.functions():
            n = d.last - d.first + 1
            if n > FUNCTION_LINES:
                self.problems.append('%s, line %d, has %d lines; at most %d' % (d.context, d.first, n, FUNCTION_LINES))
        api = (self.stop or 0) - len(self.sections)  # a section's line in the contents is no part of it
        if api > API_LINES:
            self.problems.append('the API half ends at line %d; at most %d' % (self.stop, API_LINES + len(self.sections)))
        return self.problems


def sites(uses):
    """"line 5 in f, lines 7 and 9 in g", in the order of the file; through which macro, where it was one."""
    places, more = defaultdict(list), ''
    for u in sorted(set(uses), key=lambda u: u.line):
        if u.line not in places[u.context]:
            places[u.context].append(u.line)
    out = []
    for context, lines in list(places.items())[:8]:
        many = len(lines) > 1
        numbers = ' '.join(map(str, lines[:6])) + (' ...' if len(lines) > 6 else '')
        out.append(('lines ' if many else 'line ') + numbers + (' in ' + context if context else ''))
    if len(places) > 8:
        more = ', and %d more places' % (len(places) - 8)
    via = sorted({u.via for u in uses if u.via})
    return ', '.join(out) + more + (' (through %s)' % ', '.join(via) if via else '')


# ---- the table of --graph --------------------------------------------------------------------------------------------

def graph(h):
    """A row for each section of the implementation: in how many places it uses which others; ! where it must not."""
    rows = [s for s in h.sections if not s.api]
    number = {s: i + 1 for i, s in enumerate(rows)}

    def count(user, owners):
        return sum(len(h.edges[user].get(o, ())) for o in owners)

    base = [s for s in rows if s.stage == 'foundation']
    columns = [s for s in rows if s not in base and any(count(r, [s]) for r in rows)]
    api = [s for s in h.sections if s.api]
    print('Places where a row\'s section uses the column\'s (by its number); ! is where its stage must not.')
    print('api, fnd: of the API half, of the foundation. Sections that no other uses have no column.')
    per = 28
    for k in range(0, max(len(columns), 1), per):
        part = columns[k:k + per]
        print('\n%-26s%4s%5s' % ('', 'api', 'fnd') + ''.join('%3d' % number[c] for c in part))
        for r in rows:
            cells = ''
            for c in part:
                n = 0 if c is r else count(r, [c])
                cells += '  .' if c is r else '   ' if not n else '%2s%s' % (n if n < 100 else '++',
                                                                         ' ' if h.allowed(r, c) else '!')
            foundation = count(r, [x for x in base if x is not r])
            print('%2d %-12s%-11s%4s%5s %s' % (number[r], r.tag, r.stage + ('' if r.word else '?'), count(r, api) or '',
                                               foundation or '', cells.rstrip()))
    print()


# ---- --fix -----------------------------------------------------------------------------------------------------------

def header_lines(public, used_by):
    one = ' ' * 14 + 'Public: %s      Used by: %s' % (public, used_by)
    if len(one) <= WIDTH:
        return [one]
    out = []
    for word, text in (('Public: ', public), ('Used by: ', used_by)):
        out += textwrap.wrap(word + text, WIDTH, initial_indent=' ' * 14, subsequent_indent=' ' * (14 + len(word)),
                             break_long_words=False, break_on_hyphens=False)
    return out


def fixed(h, public_too):
    lines = list(h.lines)
    for s in reversed(h.sections):
        if s.public is None or not s.used_by:
            continue
        public, used_by = s.public, s.used_by
        if h.wrong_used_by(s):
            used_by = h.used_by(s)
        if public_too and not s.api:
            has = h.public_of(s)
            if set(has) != set([] if public == 'none' else re.split(r',\s*', public)):
                public = ', '.join(has) or 'none'
        if (public, used_by) != (s.public, s.used_by):
            lines[s.public_at - 1:s.end - 1] = header_lines(public, used_by)
    return '\n'.join(lines)


# ---- --plant: what the tool has to find ------------------------------------------------------------------------------

def plants(h):
    """{name: the file with one thing wrong}, at places found by their stage."""
    rest = [s for s in h.sections if not s.api]
    first = {stage: next(s for s in rest if s.word == stage) for stage in STAGES
             if any(s.word == stage for s in rest)}

    def function_of(stage):
        found = sorted((d.line, n) for n, ds in h.defined.items() for d in ds
                       if d.kind == 'function' and d.section.stage == stage and n.startswith('kbi_'))
        return found[0][1]

    def insert(line, text):  # behind that line
        return '\n'.join(h.lines[:line] + [text] + h.lines[line:])

    def replace(line, count, new):
        return '\n'.join(h.lines[:line - 1] + new + h.lines[line - 1 + count:])

    def header(s, public, used_by):
        return replace(s.public_at, s.end - s.public_at, header_lines(public, used_by))

    def worded(s, word):  # another stage's word, or none
        return re.sub(r'^( *>>\w+ +)(\w+: )?', lambda m: m.group(1) + (word + ': ' if word else ''), h.lines[s.at - 1])

    def listed(s):  # its line in the contents
        return next(i for i, line in enumerate(h.lines) if re.match(r' +>>%s ' % s.tag, line)) + 1

    def calls(stage, other):
        return insert(first[stage].end, 'static void kbi_planted(void) { %s(); }' % function_of(other))

    out = {'measure_reads_option': insert(first['measure'].end,
                                          'static bool kbi_planted(const kbi_options* o) { return o->on[0]; }'),
           'record_reads_option': insert(first['record'].end,
                                         'static int kbi_planted(void) { return KBI_OPTION_json; }'),
           'render_calls_judge': calls('render', 'judge'),
           'judge_calls_render': calls('judge', 'render'),
           'declare_calls_plan': calls('declare', 'plan'),
           'judge_declares_render': insert(first['judge'].end, 'static void %s(void);' % function_of('render'))}
    # a render function that measures, in the words of a benchmark
    out['render_measures'] = insert(first['render'].end, 'static void kbi_planted(kb_state* kb) { KB_TIME(kb) {} }')
    # a type of another stage
    both = list(h.lines)
    for stage, text in (('judge', 'typedef struct kbi_planted { kbi_planned* p; } kbi_planted;'),
                        ('plan', 'typedef enum kbi_planned { KBI_PLANNED } kbi_planned;')):  # from the end on
        both.insert(first[stage].end, text)
    out['judge_uses_type_of_plan'] = '\n'.join(both)
    s = next(x for x in rest if x.stage == 'judge' and h.users(x)[0])
    users, _ = h.users(s)
    stranger = next(x for x in rest if x not in users and x is not s)
    right = h.used_by(s)
    out['used_by_names_stranger'] = header(s, s.public, (right + ', ' if right != 'none' else '') + '>>' + stranger.tag)
    out['used_by_lacks_user'] = header(s, s.public, 'none')
    out['used_by_unknown_word'] = header(s, s.public, right + ', whoever likes it')
    narrow = next(x for x in rest if x.used_by != 'everything after it' and not h.broad(x, h.users(x)[0])[1])
    out['used_by_not_everything'] = header(narrow, narrow.public, 'everything after it')
    out['public_names_stranger'] = header(s, 'kb_planted', s.used_by)
    out['public_lacks_function'] = insert(s.end, 'void kb_planted(void) {}')
    out['no_stage_word'] = replace(first['render'].at, 1, [worded(first['render'], None)])
    out['stages_out_of_order'] = replace(first['declare'].at, 1, [worded(first['declare'], 'render')])
    out['contents_other_stage'] = replace(first['judge'].at, 1, [worded(first['judge'], 'render')])
    a, b = listed(s), listed(h.sections[s.index + 1])
    out['contents_out_of_order'] = replace(a, b - a + 1, [h.lines[b - 1]] + h.lines[a:b - 1] + [h.lines[a - 1]])
    out['contents_lack_section'] = replace(listed(s), 1, [])
    first_section = rest[0].first - 1
    out['untagged'] = insert(first_section, 'static int kbi_planted(int x) { return x; }')
    out['long_section'] = insert(first['judge'].end, '\n' * SECTION_LINES)
    out['long_function'] = insert(first['judge'].end, 'static void kbi_planted(int a,\n' + ' ' * 24 + 'int b) {\n' +
                                  '    a += b;\n' * FUNCTION_LINES + '}')
    out['long_api'] = insert(h.sections[0].first - 1, '\n' * API_LINES)
    out['open_brace'] = insert(first['judge'].end, 'static void kbi_planted(void) { if (1) {')
    return out


# ---- the program -----------------------------------------------------------------------------------------------------

def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def main(argv):
    words = [a for a in argv if not a.startswith('--')]
    options = [a for a in argv if a.startswith('--')]
    known = {'--check', '--graph', '--sizes', '--fix', '--public', '--plant'}
    if not words or set(options) - known or len(words) != 1 + ('--plant' in options):
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 2
    h = Header(words[0], read(words[0]))
    if '--sizes' in options:
        found = h.check_sizes()
    else:
        found = h.check()
    if '--plant' in options:
        os.makedirs(words[1], exist_ok=True)
        for name, text in plants(h).items():
            with open(os.path.join(words[1], name + '.h'), 'w', encoding='utf-8') as f:
                f.write(text)
        return 0
    if '--fix' in options:
        text = fixed(h, '--public' in options)
        if text != h.text:
            with open(h.path, 'w', encoding='utf-8') as f:
                f.write(text)
            h = Header(h.path, text)
            found = h.check()
    if '--graph' in options:
        graph(h)
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
