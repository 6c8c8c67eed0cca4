#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Sentences that people read, drawn at random for a review of the language.

    python3 tests/sentences.py [--count 100] [--seed N] [FILE...]

Draws from comments, documents, docstrings and messages of all source files, or of the files named. A line is
FILE:LINE, a tab, and the sentence. Without --seed every call draws others; the seed is printed on stderr.
With --words WORD,WORD... it prints every sentence that holds one of these words or phrases instead; exit code 1 if
there is one.
"""
import argparse
import io
import random
import re
import subprocess
import sys
import tokenize

C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
EVIDENCE = re.compile(r'^tests/(evidence|fixtures)/(?!README)')


def c_pieces(text):
    """(line, text) of comments, with the lines of one paragraph together, and of string literals."""
    comment, last, line, at = [], None, 1, 0
    for m in C_TOKEN.finditer(text):
        line, at, s = line + text.count('\n', at, m.start()), m.start(), m.group(0)
        if s.startswith('//'):
            alone = not text[text.rfind('\n', 0, m.start()) + 1:m.start()].strip()
            if comment and alone and last == line - 1:
                comment[1] += ' ' + s[2:].strip()
            else:
                if comment:
                    yield tuple(comment)
                comment = [line, s[2:].strip()]
            last = line if alone else None
            continue
        if s.startswith('/*'):
            for i, part in enumerate(re.split(r'\n\s*\n', s[2:-2])):
                yield line, re.sub(r'[\s*]*\n[\s*]*', ' ', part)
        elif s.startswith('"'):
            yield line, re.sub(r'\\[nt]', ' ', s[1:-1])
    if comment:
        yield tuple(comment)


def hash_pieces(text):
    """The same of a shell script or a Makefile: comments that stand alone, and text in double quotes."""
    comment = None
    for i, s in enumerate(text.split('\n') + [''], 1):
        if s.startswith('#') and not s.startswith('#!'):
            comment = (comment[0], comment[1] + ' ' + s.lstrip('# ')) if comment else (i, s.lstrip('# '))
            continue
        if comment:
            yield comment
        comment = None


def python_pieces(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip('# ')
        elif token.type == tokenize.STRING:
            for part in re.split(r'\n\s*\n', re.sub(r'^\w{0,2}["\']+|["\']+$', '', token.string)):
                yield token.start[0], ' '.join(part.split())


def markdown_pieces(text):
    text = re.sub(r'```.*?```', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)
    line = 1
    for part in re.split(r'(\n\s*\n)', text):
        if not re.match(r'\s{4}|\||<!--', part.lstrip('\n')):
            yield line, ' '.join(part.split())
        line += part.count('\n')


def sentences(path):
    """(line, sentence) of a file: at least four words that are no code."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    ending = path.rsplit('.', 1)[-1]
    pieces = {'py': python_pieces, 'md': markdown_pieces}.get(
        ending, c_pieces if ending in ('h', 'cuh', 'cu', 'c', 'cpp') else hash_pieces)
    for line, piece in pieces(text):
        for s in re.split(r'(?<=[.!?])\s+(?=[A-Z`"(])', piece):
            words = re.findall(r"[A-Za-z][a-z'-]+", s)
            if len(words) >= 4 and sum(map(len, words)) > len(s) / 2 and not re.search(r'(^|\s)--op\b', s):
                yield line, s.strip()


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--count', type=int, default=100)
    ask.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10**6))
    ask.add_argument('--words', default='')
    ask.add_argument('files', nargs='*')
    given = ask.parse_args()
    files = given.files or subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.split()
    kinds = ('.h', '.cuh', '.cu', '.c', '.py', '.sh', '.md', '.lib', 'Makefile', '.ci/run')
    files = [f for f in files if given.files or (f.endswith(kinds) and not EVIDENCE.match(f))]
    drawn = [(f, line, s) for f in files for line, s in sentences(f)]
    if given.words:
        words = re.compile(r'\b(' + '|'.join(map(re.escape, given.words.split(','))) + r')\b', re.I)
        found = [d for d in drawn if words.search(d[2])]
    else:
        print(f'{len(drawn)} sentences, seed {given.seed}', file=sys.stderr)
        found = random.Random(given.seed).sample(drawn, min(given.count, len(drawn)))
    for f, line, s in found:
        print(f'{f}:{line}\t{s}')
    return 1 if given.words and found else 0


if __name__ == '__main__':
    sys.exit(main())
