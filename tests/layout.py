#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Checks the layout of a header: list of contents, order of stages, calls to functions of later stages, prefixes of
names, and size.

    layout.py FILE                prints each error on a line; the exit code is 1 if there is one

A section begins with a ruler, then `  >>tag  text`. In kbench.h, the title of a section after the line "Stop here"
begins with the section's stage and a colon. Sections are in the order of STAGES. C requires a declaration before
each use, so a function can normally call only functions of earlier stages. The compiler accepts a call of a
function of a later stage only if that function is public or has a forward declaration; this script reports such
calls.
"""
import re
import sys

STAGES = ['foundation', 'declare', 'plan', 'measure', 'judge', 'record', 'render', 'program']
NO_OPTIONS = {'measure', 'judge', 'record', 'render'}  # stages that do not know the command line's options
ANYWHERE = {'ptx'}  # data
BUDGET = {'kbench.h': (13500, 700000), 'kbench_report.h': (7000, 335000), 'kbench_inspect.h': (2500, 125000), 'kbench_kernels.cuh': (15820, 920000)}  # lines, bytes
PREFIX = {'kbench.h': r'(KB|KBI|KBENCH|kb|kbi)(_|$)|_(DEFAULT|GNU)_SOURCE$', 'kbench_report.h': r'(KBI|KBENCH)_', 'kbench_inspect.h': r'(KBI|KBENCH)_', 'kbench_kernels.cuh': r'(KBK|KBKI|kbk|kbki)_|KBENCH_KERNELS_CUH$'}


def code_of(text):
    blank = lambda m: re.sub(r'[^\n]', ' ', m.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text, flags=re.S)


def check(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    name, lines, code = re.sub(r'.*/', '', path), text.split('\n'), code_of(text).split('\n')
    found = []
    # sections: (tag, stage, index of the first line)
    sections, stop = [], next((i for i, s in enumerate(lines) if s.startswith('  Stop here')), None)
    for i, s in enumerate(lines[1:], 1):
        m = re.match(r'  >>(\w+)\s+(?:(\w+):)?', s)
        if m and lines[i - 1].startswith('/*---'):
            sections.append((m.group(1), m.group(2) if m.group(2) in STAGES else None, i))
    head = next(i for i, s in enumerate(lines) if s.endswith('*/'))
    listed, group = [], None  # of kbench.h: lines "    stage   >>tag >>tag"; of other headers: a line for each tag
    for s in lines[:head]:
        many, one = re.match(r'    (\w*) +(>>\w+(?: >>\w+)*)$', s), re.match(r' +>>(\w+)\s+(?:(\w+):)?', s)
        if many:
            group = many.group(1) or group
            listed += [(t, group if group in STAGES else None) for t in re.findall(r'>>(\w+)', many.group(2))]
        elif one:
            listed.append(one.groups())
    if [t for t, _ in listed] != [t for t, _, _ in sections]:
        odd = next((pair for pair in zip([t for t, _ in listed] + ['nothing'], [t for t, _, _ in sections] + ['nothing'])
                    if pair[0] != pair[1]), ('?', '?'))
        found.append(f'contents: the list has >>{odd[0]} where the file has >>{odd[1]}')
    size = len(lines) - 1, len(text.encode())
    if name in BUDGET and (size[0] > BUDGET[name][0] or size[1] > BUDGET[name][1]):
        found.append(f'size: {size[0]} lines, {size[1]} bytes; the budget is {BUDGET[name][0]} and {BUDGET[name][1]}')
    prefix = PREFIX.get(name)
    for i, s in enumerate(code):
        m = re.match(r'\s*#\s*define\s+(\w+)', s)
        if m and prefix and not re.match(prefix, m.group(1)):
            found.append(f'macro without a prefix: {m.group(1)}, line {i + 1}')
    if stop is None:
        return found
    behind = [s for s in sections if s[2] > stop]
    last = 0
    for (tag, stage, at), (told_tag, told) in zip(sections, listed):
        if at > stop and stage is None:
            found.append(f'>>{tag}: its header bears no stage')
        if at > stop and tag == told_tag and told != stage:
            found.append(f'>>{tag}: the contents say {told}, its header says {stage}')
        if at > stop and stage and tag not in ANYWHERE:
            if STAGES.index(stage) < last:
                found.append(f'>>{tag} ({stage}) is out of the order of the stages')
            last = max(last, STAGES.index(stage))
    # finds the line that defines each function, then the calls of functions that a later stage defines
    stage_of, where = {}, {}
    ends = [s[2] for s in behind[1:]] + [len(lines)]
    for (tag, stage, at), end in zip(behind, ends):
        for i in range(at, end):
            stage_of[i] = (tag, stage)
    for i in stage_of:
        m = re.match(r'(?!typedef|extern|#)[A-Za-z_][\w \t\*\(\),"]*?\b((?:kb|kbi)_\w+)\(', code[i])
        if m and ';' not in code[i]:
            rest = '\n'.join(code[i:i + 12])
            brace, semicolon = rest.find('{'), rest.find(';')
            if brace >= 0 and (semicolon < 0 or brace < semicolon):
                where[m.group(1)] = i
    for i, (tag, stage) in stage_of.items():
        if stage is None:
            continue
        for m in re.finditer(r'\b((?:kb|kbi)_\w+)\s*\(', code[i]):
            f = m.group(1)
            if f not in where or where[f] <= i or stage_of[where[f]][1] is None:
                continue
            other, later = stage_of[where[f]]
            if STAGES.index(later) > STAGES.index(stage):
                found.append(f'>>{tag} ({stage}) calls {f} of >>{other} ({later}), line {i + 1}')
        if stage in NO_OPTIONS and re.search(r'\b(kbi_options?|KBI_OPTIONS?|KBI_OPTION_\w+)\b', code[i]):
            found.append(f">>{tag} ({stage}) reads the command line's options, line {i + 1}")
    return found


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = check(sys.argv[1])
    for text in wrong:
        print(text)
    sys.exit(1 if wrong else 0)
