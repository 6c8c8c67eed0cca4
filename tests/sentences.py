#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Prints a random sample of the sentences that people read, for a review of the language.

    python3 tests/sentences.py [--count 100] [--seed N] [--context] [FILE...]

The sample is drawn from comments, documents, docstrings and messages of all source files, or of the given files. A
line of output is FILE:LINE, a tab, and the sentence. A fragment, such as the comment of a field, is followed by
its line of code. Without --seed, every call draws different sentences; the seed is printed on stderr.

With --context, a sentence is printed in its place: FILE:LINE, the paragraph with the sentence in [[brackets]], and
the next three lines of code. With --words WORD,WORD... the script draws no sample, but prints every sentence that
contains one of the given words or phrases; the exit code is then 1 if a sentence is printed.
"""
import argparse
import ast
import bisect
import functools
import inspect
import io
import random
import re
import subprocess
import sys
import textwrap
import tokenize

C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*|\'(?:\\.|[^\'\\\n])\'', re.S)
C_ENDINGS = ('h', 'cuh', 'cu', 'c', 'cpp')
EVIDENCE = re.compile(r'^tests/(evidence|fixtures)/(?!README)')
# matches lines of a comment or docstring that are not prose: table, command, code, heading, licence, or a mark of
# tests/run.sh
NO_PROSE = re.compile(r'\s{4}|\s*\S.*\S\s{3,}\S|#|--- |-{9}|SPDX|measures time$|takes long$|only in make|>>|[{}$|]')
ITEM = re.compile(r'\s*([-*]|\d+\.|:\w+:|[A-Za-z_.]+:|a program of its own:) ')


def paragraphs(line, text):
    """Paragraphs and list items are joined to one line."""
    start, part = line, []
    for i, s in enumerate(text.split('\n') + ['']):
        goes_on = part and ITEM.match(part[0]) and s.startswith('   ')  # a list item goes on
        ends = not s.strip() or NO_PROSE.match(s) and not goes_on
        if part and (ends or ITEM.match(s) and part[-1][-1] in '.:;'):
            yield start, ' '.join(part)
            part = []
        if not ends:
            start = start if part else line + i
            part.append(s.strip())


def comment_pieces(text, mark):
    """Comments that stand alone on their lines."""
    block = []
    for i, s in enumerate(text.split('\n') + [''], 1):
        if s.lstrip().startswith(mark) and not s.startswith('#!'):
            block.append(s.lstrip()[len(mark):].removeprefix(' '))
        elif block:
            yield from paragraphs(i - len(block), '\n'.join(block))
            block = []


def code_line(text, at):
    return text[text.rfind('\n', 0, at) + 1:text.find('\n', at)].strip()


def c_pieces(text):
    yield from comment_pieces(text, '//')
    line, at = 1, 0
    for m in C_TOKEN.finditer(text):
        line, at, s = line + text.count('\n', at, m.start()), m.start(), m.group(0)
        if s.startswith('//'):
            if not code_line(text, m.start()).startswith('//'):
                yield line, s[2:].strip(), code_line(text, m.start())
        elif s.startswith('/*'):
            yield from paragraphs(line, re.sub(r'\n[ *]? ?', '\n', s[2:-2]))
        elif s.startswith('"'):
            string = re.sub(r'"\s*"', '', s)[1:-1].replace('\\n', '\n').replace('\\t', '\t').replace('\\"', '"')
            for _, part in paragraphs(line, string):
                yield line, part, code_line(text, m.start())


def hash_pieces(text):
    yield from comment_pieces(text, '#')
    for m in re.finditer(r'(?:echo|skip|fail) "([^"\n]*)"', text):
        yield text.count('\n', 0, m.start()) + 1, m.group(1), code_line(text, m.start())


def python_pieces(text):
    yield from comment_pieces(text, '#')
    strings, start, lines = [], 0, text.split('\n')
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if not token.line.lstrip().startswith('#'):
                yield token.start[0], token.string.lstrip('# '), token.line.strip()
        elif token.type == tokenize.STRING:
            if '".split()' in token.line:
                continue  # a list of names
            start = start if strings else token.start[0]
            strings.append(re.sub(r'^\w{0,2}("""|\'\'\'|["\'])|("""|\'\'\'|["\'])$', '', token.string))
        elif strings and token.type != tokenize.NL:
            for line, part in paragraphs(start, inspect.cleandoc(''.join(strings))):
                yield line, part, lines[min(line, len(lines)) - 1].strip()
            strings = []


def markdown_pieces(text):
    text = re.sub(r'```.*?```|<!--.*?-->', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)
    yield from paragraphs(1, text)


def comment_lines(ending, text):
    """Returns the numbers of the lines that hold only a comment or docstring."""
    lines = text.split('\n')
    bare = lines
    if ending in C_ENDINGS:
        bare = C_TOKEN.sub(lambda m: m[0] if m[0][0] in '"\'' else re.sub(r'[^\n]', '', m[0]), text).split('\n')
    elif ending == 'py':
        owners = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        spans = [n.body[0] for n in owners if ast.get_docstring(n, False)]
        docstrings = {k for d in spans for k in range(d.lineno, d.end_lineno + 1)}
        bare = ['' if i in docstrings else s for i, s in enumerate(lines, 1)]
    if ending not in C_ENDINGS:
        bare = [re.sub(r'^\s*#.*', '', s) for s in bare]
    return {i for i, (old, new) in enumerate(zip(lines, bare), 1) if old.strip() and not new.strip()}


@functools.lru_cache
def lines_of(path):
    """Returns the lines of a file, and its lines of code: (number, line)."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    lines, comments = text.split('\n'), comment_lines(path.rsplit('.', 1)[-1], text)
    return lines, [(i, s) for i, s in enumerate(lines, 1) if s.strip() and i not in comments]


def in_place(path, line, sentence, piece):
    """Returns a sentence with its paragraph `piece`, which begins at `line`, and the next three lines of code."""
    lines, code = lines_of(path)
    # the line above a docstring names its function
    first = line - lines[min(line, len(lines)) - 1].lstrip().startswith('"""')
    at = bisect.bisect_left(code, (first,))
    after = [] if path.endswith('.md') else [f'    | {s}\n' for _, s in code[at:at + 3]]
    marked = textwrap.fill(piece.replace(sentence, f'[[{sentence}]]', 1), 110, break_long_words=False)
    return f'{path}:{line}\n' + textwrap.indent(marked, '    ') + '\n' + ''.join(after)


def sentences(path):
    """Yields (line, sentence, code, paragraph). `code` is the line that contains a fragment, such as a label or the
    comment of a field; for a full sentence, `code` is empty."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    ending = path.rsplit('.', 1)[-1]
    pieces = {'py': python_pieces, 'md': markdown_pieces}.get(
        ending, c_pieces if ending in C_ENDINGS else hash_pieces)
    for line, piece, *code in pieces(text):
        for s in re.split(r'(?<!e\.g\.)(?<!i\.e\.)(?<!\d\.)(?<=[.!?])\s+', piece):
            words = re.findall(r"(?<!\S)[(`'\"]*([A-Za-z][a-z'-]+)[`'\"]*[.,;:!?)]*(?!\S)", s)
            if len(words) < 4 or sum(map(len, words)) <= len(s) / 2 or re.search(r'(^|\s)--op\b', s):
                continue
            whole = not code or re.match(r'[^a-z]', s) and s.rstrip('`\'"()').endswith(('.', '?', '!'))
            yield line, s.strip(), '' if whole or len(code[0]) < len(s) + 9 else f'    [{code[0]}]', piece


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--count', type=int, default=100)
    ask.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10**6))
    ask.add_argument('--words', default='')
    ask.add_argument('--context', action='store_true')
    ask.add_argument('files', nargs='*')
    given = ask.parse_args()
    files = given.files or subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.split()
    kinds = ('.h', '.cuh', '.cu', '.c', '.py', '.sh', '.md', '.lib', 'Makefile', '.ci/run')
    files = [f for f in files if given.files or (f.endswith(kinds) and not EVIDENCE.match(f))]
    drawn = [(f, *sentence) for f in files for sentence in sentences(f)]
    if given.words:
        words = re.compile(r'\b(' + '|'.join(map(re.escape, given.words.split(','))) + r')\b', re.I)
        found = [d for d in drawn if words.search(d[2])]
    else:
        print(f'{len(drawn)} sentences, seed {given.seed}', file=sys.stderr)
        found = random.Random(given.seed).sample(drawn, min(given.count, len(drawn)))
    for f, line, s, code, piece in found:
        print(in_place(f, line, s, piece) if given.context else f'{f}:{line}\t{s}{code}')
    return 1 if given.words and found else 0


if __name__ == '__main__':
    sys.exit(main())
