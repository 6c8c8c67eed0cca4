#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Generates tables of measured values from the records in tests/evidence/ladder.json. kbench_kernels.cuh shows a
table below the card (description) of each operation. README.md and examples/README.md show the table of matmul.

    ladder.py --check                 prints each difference from the evidence; the exit code is 1 if there is one
    ladder.py --write                 writes the columns: the text between `/*  measured OPERATION DIRECTION: TYPE` and
                                      `end of measured */` after the cards
    ladder.py --run SUITE OUT [OP...] measures every rung of every ladder (or of these operations) with that suite, on
                                      this machine's GPU, with counters. Adds the records to OUT
    ladder.py --diff OP               prints the lines that change from each kernel of a ladder to the next
    --evidence FILE: another file of records;  --root DIR: another copy of the sources

--check also checks two parts of the manual in kbench_kernels.cuh: the list of words that name variants of a
kernel, and the reading order. In kbench_kernels.cuh, --check also finds missing lines that mark the end of the
kernels that add one idea each.

The first line of a table has the arithmetic intensity and the floor (a lower bound of the time). The floor is the
larger of two times: bytes divided by the bandwidth of copy, and FLOPs divided by the rate of a matrix product.
FLOPs and bytes come from the formulas in kbench_kernels.cuh, compiled by $CC. For an H200, this script contains
the bandwidth and the FLOP rate. For the GPU that was measured, both rates come from the records of copy and
matmul.

After the first line of a table, each line describes one rung: number, name, time, percentage of the measured peak,
gain over the previous rung, registers per thread (of the first kernel that the rung launches), achieved occupancy,
percentage of the DRAM bandwidth, bank conflicts of shared memory per launch, and the note on the variant. The gain is
the speed relative to the previous measured rung of the same element type; if rungs between the two were not measured,
the number of the previous rung follows. A dash stands for a value that was not measured.
"""
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile

EVIDENCE = 'tests/evidence/ladder.json'
KEYS = 'name operation direction implementation dtype params time_ms gpu_efficiency status gpu date registers'.split()
COUNTERS = 'occupancy_pct dram_pct bank_conflicts'.split()


def rows_of(columns, batch, length):
    return {'batch_size': batch, 'sequence_length': length, 'tensor_dimension': columns}


MAP, ROWS = rows_of(4096, 16, 2048), rows_of(4096, 8, 1024)
LOGITS, TOKENS = rows_of(50304, 8, 1024), dict(rows_of(768, 16, 1024), vocabulary=50304)
# the attention variant `naive` supports at most 2048 keys
HEADS = dict(rows_of(128, 4, 2048), heads=16, causal=0)
LARGE = {'n': 268435456}
LADDERS = {}
for names, directions, dtype, shape in [
        ('copy fill read triad', 'run', 'f32', LARGE), ('strided', 'run', 'f32', {'n': 8388608, 'stride': 32}),
        ('gather', 'run', 'f32', {'n': 33554432, 'among': 268435456, 'sequential': 0}),
        ('chase', 'run', 'f32', LARGE), ('h2d d2h d2d alloc', 'run', 'f32', {'n': 67108864}),
        ('null', 'run', 'f32', {'n': 1}), ('add mul div relu', 'fwd', 'f32', MAP),
        ('gelu_erf gelu_tanh silu', 'fwd bwd', 'bf16', MAP), ('dropout', 'fwd bwd', 'bf16', MAP),
        ('softmax layernorm rmsnorm', 'fwd bwd', 'f32', ROWS), ('sum', 'run', 'f32', rows_of(4096, 32, 2048)),
        ('mse', 'fwd bwd', 'bf16', MAP), ('weighted_sum', 'fwd bwd', 'f32', rows_of(4096, 32, 2048)),
        ('transpose', 'run', 'f32', rows_of(8192, 16, 1024)), ('cross_entropy', 'fwd bwd fwdbwd', 'bf16', LOGITS),
        ('embedding', 'fwd bwd', 'f32', TOKENS), ('matmul', 'fwd', 'f32', rows_of(4096, 4, 1024)),
        ('matmul', 'fwd', 'bf16', rows_of(4096, 4, 1024)),
        ('matmul_e4m3', 'fwd', 'bf16', dict(rows_of(4096, 4, 1024), layout='NT')),
        ('bmm', 'fwd', 'bf16', rows_of(512, 128, 1024)),
        ('attention', 'fwd bwd', 'bf16', HEADS)]:
    for name in names.split():
        for direction in directions.split():
            LADDERS[name, direction, dtype] = shape
TYPES = {'KBK_ALL': 'f32 f16 bf16', 'KBK_HALF': 'f16 bf16', 'KBK_SINGLE': 'f32', 'KBK_BRAIN': 'bf16'}
ROW = re.compile(r'row\(\s*(\w+),\s*(\w+),\s*(\w+),\s*(\d+)\s*,\s*(KBK_\w+),\s*(\w+),\s*([\w |]+?),\s*"([^"]*)"\)')


class Rung:
    def __init__(self, m):
        self.op, self.direction, self.name, self.number = m[1], m[2], m[3], int(m[4])
        # a vendor function with a rung of its own, such as cudaMallocAsync, is a normal step of the ladder
        self.types, self.vendor, self.note = TYPES[m[5]].split(), self.number == 99, m[8]
        self.needs = [', '.join(self.types)] * (len(self.types) < 3) + ['sm_' + m[6]] * (m[6][:2] == '90')


def table(header):
    out = {}
    for m in ROW.finditer(header):
        r = Rung(m)
        out.setdefault((r.op, r.direction), []).append(r)
    return out


def complete(header):
    """Adds the ladders that LADDERS does not name, at the size "large" of the operation's row in the table of
    operations."""
    lines = header.replace('\\\n', ' ')
    macros = dict(re.findall(r'#define (KBKI_(?:AXES|SIZES|SQUARE)\w*) (.*)', lines))
    for (op, direction), rungs in table(header).items():
        if any(key[:2] == (op, direction) for key in LADDERS):
            continue
        sizes = re.search(r'row\(%s, %s, KBK_.*?(KBKI_SIZES.*)' % (op, direction), lines)[1]
        while any(name in macros for name in re.findall(r'\bKBKI_\w+', sizes)):
            sizes = re.sub(r'\bKBKI_\w+', lambda m: macros.get(m[0], ''), sizes)
        text = ''.join(re.findall(r'"([^"]*)"', sizes))
        found = [m[1] for c in ('large', 'medium', 'small') for m in [re.search(r'\b%s ([\dx,]+)' % c, text)] if m]
        dtype = 'bf16' if 'bf16' in rungs[0].types else rungs[0].types[0]
        axes, values = text.split(':')[0].split(' x '), [int(v.split(',')[-1]) for v in found[0].split('x')]
        LADDERS[op, direction, dtype] = dict(zip(axes, values))


# ---- evidence --------------------------------------------------------------------------------------------------------

def shape_text(op, shape):
    p = dict(shape)
    if op == 'attention':
        return '%d x %d x %d x %d%s' % (p['batch_size'], p['heads'], p['sequence_length'], p['tensor_dimension'],
                                        ' causal' if p.get('causal') else '')
    columns, batch = p.get('tensor_dimension'), p.get('batch_size')
    if op in ('matmul', 'matmul_e4m3', 'bmm'):
        m, n = p.get('M'), p.get('N', columns)
        m = m or (p['sequence_length'] if op == 'bmm' else batch * p['sequence_length'])
        text = '%d x %d x %d' % (m, n, p.get('K', n))
        return ('%d times ' % batch if op == 'bmm' else '') + text + (
            ' ' + p['layout'] if p.get('layout', 'NN') != 'NN' else '')
    if columns is None:
        return ', '.join(str(v) if k == 'n' else '%s %s' % (k, v) for k, v in p.items())
    text = ' x '.join(str(n) for n in (batch * p['sequence_length'], p.get('heads'), columns) if n)
    return text + (' of %d' % p['vocabulary'] if 'vocabulary' in p else '')


def where_of(op, params):
    left = {k: v for k, v in params.items() if k not in ('dtype', 'dir', 'p')}
    if left.get('layout') == 'NN':
        del left['layout']
    return shape_text(op, left)


def gather(path):
    """{(operation, direction, type, shape): {implementation: record}}"""
    evidence = {}
    with open(path) as f:
        for r in json.load(f):
            if r['status'] == 'ok' and r.get('time_ms'):
                key = r['operation'], r['direction'], r['dtype'], where_of(r['operation'], r['params'])
                evidence.setdefault(key, {})[r['implementation']] = r
    return evidence


# ---- floors ----------------------------------------------------------------------------------------------------------

# Measured on an NVIDIA H200 with CUDA 13.0: a copy of 4 GiB in bytes/s, cuBLAS at 4096^3 in FLOP/s.
H200 = {'copy': 4.276e12, 'bf16': 783e12, 'f32': 51.3e12, 'e4m3': 1448e12}
PEAKS = {'copy': ('copy', 'run', 'f32'), 'bf16': ('matmul', 'fwd', 'bf16'), 'f32': ('matmul', 'fwd', 'f32'),
         'e4m3': ('matmul_e4m3', 'fwd', 'bf16')}
OTHER_LIMITS = {'h2d': 'the bus', 'd2h': 'the bus', 'alloc': 'the allocator', 'null': 'the launch', 'chase': 'latency'}


def work_of_ladders(folder):
    """{(operation, direction, type): (FLOPs, bytes)} at the shape of the ladder, by the formulas of the header."""
    calls = []
    for (op, direction, dtype), shape in LADDERS.items():
        get, batched = shape.get, op in ('bmm', 'attention')
        batch, length, cols = get('batch_size', 1), get('sequence_length', 1), get('tensor_dimension', get('n', 1))
        fields = {'batch': batch if batched else 1, 'heads': get('heads', 1), 'cols': cols, 'k': cols,
                  'rows': length if batched else batch * length}
        fields.update((f, shape[f]) for f in ('vocabulary', 'stride', 'among', 'causal') if f in shape)
        calls.append('print("%s", "%s", "%s", %d, (kbk_shape){%s});' % (
            op, direction, dtype, 4 if dtype == 'f32' else 2, ', '.join('.%s = %d' % f for f in fields.items())))
    with tempfile.TemporaryDirectory() as place:
        program = os.path.join(place, 'work')
        with open(program + '.c', 'w') as f:
            f.write('#include <stdio.h>\n#include "kbench_kernels.cuh"\n'
                    'static void print(const char* op, const char* dir, const char* type, int elem, kbk_shape s) {\n'
                    '    for (int i = 0; i < KBK_OP_COUNT; i++)\n'
                    '        if (!strcmp(kbk_ops[i].name, op) && !strcmp(kbk_ops[i].dir, dir))\n'
                    '            printf("%s %s %s %.17g %.17g\\n", op, dir, type, kbk_ops[i].flops(&s),\n'
                    '                   kbk_ops[i].bytes(&s, elem));\n'
                    '}\nint main(void) {\n' + '\n'.join(calls) + '\n}\n')
        made = subprocess.run(os.environ.get('CC', 'cc').split() + ['-I', folder, program + '.c', '-o', program, '-lm'],
                              stderr=subprocess.PIPE)
        if made.returncode:
            sys.exit('the formulas do not compile: ' + made.stderr.decode().partition('error: ')[2].partition('\n')[0])
        lines = subprocess.check_output([program]).decode().strip().split('\n')
    return {tuple(x[:3]): (float(x[3]), float(x[4])) for x in map(str.split, lines)}


def scaled(value, unit):
    for power, letter in ((12, 'T'), (9, 'G'), (6, 'M'), (3, 'k')):
        if value >= 10**power:
            return '%.4g %s%s' % (value / 10**power, letter, unit)
    return '%.4g %s' % (value, unit)


def floor(key, work, evidence):
    op, dtype = key[0], key[2]
    if op in OTHER_LIMITS:
        return '    no floor from bytes or operations: %s limits the time' % OTHER_LIMITS[op]
    flops, size = work[key]
    rate = 'e4m3' if op == 'matmul_e4m3' else dtype if op in ('matmul', 'bmm', 'attention') else 'f32'

    def found(k):
        return evidence.get(k + (shape_text(k[0], LADDERS[k]),), {})
    gpus = {r['gpu'] for r in found(key).values()}
    own = {}
    for name, k in PEAKS.items():
        times = [r['time_ms'] for r in found(k).values() if {r['gpu']} == gpus and r['implementation'] != 'tf32']
        if times:
            own[name] = work[k][name == 'copy'] / min(times) * 1e3
    texts = []
    for peaks in [H200] + [own] * ('copy' in own and rate in own):
        seconds, work_text, speed = max((size / peaks['copy'], scaled(size, 'B'), scaled(peaks['copy'], 'B/s')),
                                        (flops / peaks[rate], scaled(flops, 'FLOP'), scaled(peaks[rate], 'FLOP/s')))
        texts.append((time_text(seconds * 1e3), work_text, speed))
    intensity = '%.*f' % (0 if flops >= 100 * size else 3, flops / size)
    line = '    %s FLOP/B; floor on an H200 %s = %s / %s' % ((intensity,) + texts[0])
    return line + ('; on this GPU %s at %s' % (texts[1][0], texts[1][2]) if len(texts) > 1 else '')


# ---- lines -----------------------------------------------------------------------------------------------------------

def time_text(ms):
    us = ms * 1000
    if us >= 9999.5:
        return '%.*f ms' % (2 if ms < 100 else 1, ms)
    return '%.*f us' % (2 if us < 10 else 1 if us < 1000 else 0, us)


def times_text(gain):
    return '%.*f x' % (2 if gain < 10 else 1 if gain < 100 else 0, gain)


# rungs that do not build on the rung before, and the earlier rung with which each is compared
BRANCHES = {('matmul', 'fwd', 'mma'): 'swizzle', ('matmul', 'fwd', 'select'): 'tma',
            ('attention', 'fwd', 'flashws'): 'warpmma', ('attention', 'fwd', 'pingpong'): 'flashws'}


def before(rungs, i, dtype, here):
    branch = BRANCHES.get((rungs[i].op, rungs[i].direction, rungs[i].name))
    if branch:
        return next((k for k, r in enumerate(rungs) if r.name == branch and r.name in here), None)
    return next((k for k in range(i - 1, -1, -1) if not rungs[k].vendor and dtype in rungs[k].types and
                 rungs[k].name in here), None)


def percent(value):
    return '-' if value is None else '%.0f %%' % value


def count_text(n):
    return '-' if n is None else '%.0f' % n if n < 1e4 else '%.0f k' % (n / 1e3) if n < 1e7 else '%.0f M' % (n / 1e6)


def ladder(op, direction, dtype, rungs, evidence):
    """Returns rows of ten strings (as in the table), and GPU and date of the measurement."""
    shape = shape_text(op, LADDERS[op, direction, dtype])
    here, lines = evidence.get((op, direction, dtype, shape), {}), []
    shown = sorted((r for r in rungs if dtype in r.types), key=lambda r: r.number)
    for i, r in enumerate(shown):
        t, gain = here.get(r.name), '-'
        if not t:
            lines.append([str(r.number), r.name] + ['-'] * 7 + [r.note])
            continue
        k = None if r.vendor else before(shown, i, dtype, here)
        if k is not None:
            gain = times_text(here[shown[k].name]['time_ms'] / t['time_ms'])
            if k != i - 1:
                gain += ' of %d' % shown[k].number
        counters = t.get('counters') or {}
        registers = t.get('registers')
        lines.append([str(r.number), r.name, time_text(t['time_ms']), percent(t.get('gpu_efficiency')), gain,
                      str(registers) if registers else '-', percent(counters.get('occupancy_pct')),
                      percent(counters.get('dram_pct')), count_text(counters.get('bank_conflicts')), r.note])
    stamps = {(here[r.name]['gpu'], here[r.name]['date'][:10]) for r in shown if r.name in here}
    title = '%s %s' % (dtype, shape)
    if stamps:
        title += ', %s, %s' % (sorted(stamps)[0][0], ' and '.join(sorted({d for _, d in stamps})))
    return title, lines


HEADS_OF_COLUMNS = ['', '', 'time', 'peak', 'gain', 'regs', 'occ', 'DRAM', 'conflicts', '']


def columns(lines, wanted):
    """The name and the note are left-aligned, all other columns right-aligned."""
    wide = {k: max(len(x[k]) for x in lines) for k in wanted}
    return ['    ' + ' '.join(x[k].ljust(wide[k]) if k == 1 else ' ' + x[k] if k == 9 else x[k].rjust(wide[k])
                              for k in wanted).rstrip() for x in lines]


def card(key, rungs, evidence, work):
    op, direction, dtype = key
    title, lines = ladder(op, direction, dtype, rungs, evidence)
    shown = [k for k in range(10) if k in (0, 1, 2, 9) or any(x[k] != '-' for x in lines)]
    return (['/*  measured %s %s: %s' % (op, direction, title), floor(key, work, evidence)] +
            columns([HEADS_OF_COLUMNS] + lines, shown) + ['    end of measured */'])


EXCERPT = 'naive regblock warpmma tmaload tma select cublas'.split()  # the rungs in README.md


def document(rungs, evidence, excerpt):
    """Returns the ladder of matmul for examples/README.md. excerpt: only the rungs of EXCERPT, without the gain over
    the previous rung."""
    title, lines = ladder('matmul', 'fwd', 'bf16', rungs, evidence)
    lines = [x for x in lines if not excerpt or x[1] in EXCERPT]
    return ['<!-- measured matmul fwd bf16: %s -->' % title] + columns(lines, [0, 1, 2, 3, 9] if excerpt else
                                                                      [0, 1, 2, 3, 4, 9])


# ---- files -----------------------------------------------------------------------------------------------------------

def rewritten(text, rungs, evidence, work, problems):
    out, lines, i, seen = [], text.split('\n'), 0, set()
    while i < len(lines):
        m = re.match(r'/\*  measured (\w+) (\w+):(?: (b?f16|f32)\b.*)?', lines[i])
        if not m:
            out.append(lines[i])
            i += 1
            continue
        last = next((k for k in range(i, len(lines)) if lines[k].endswith('*/')), i)
        end = last if lines[last] == '    end of measured */' else None
        keys = [k for k in LADDERS if k[:2] == (m[1], m[2]) and (k[2] == m[3] or not m[3])]
        if end is None or len(keys) != 1:
            problems.append('line %d: %s' % (i + 1, 'this generated part has no end mark' if end is None else
                                             'no such ladder: %s' % lines[i].strip()))
            return text
        out += card(keys[0], rungs[keys[0][:2]], evidence, work)
        seen.add(keys[0])
        i = end + 1
    for key in LADDERS:
        if key not in seen:
            problems.append('no card (generated comment with measurements) shows %s %s in %s' % key)
    for key in rungs:
        if not any(k[:2] == key for k in LADDERS):
            problems.append('tests/ladder.py names no shape for %s %s' % key)
    return '\n'.join(out)


OPERATIONS = ['| operation | directions | implementations, in the order of the ladder |', '|---|---|---|']


def operations(rungs):
    """Returns the lines of the table of operations. Operations with the same variants share a line.
    A line of more than 120 characters is split: the first part has the variants that run on every GPU and type,
    and each further part has the variants with one requirement, for example sm_90a."""
    shared = {}
    for (op, direction), all_ in rungs.items():
        parts = {}
        for r in sorted(all_, key=lambda r: r.number):
            parts.setdefault(', '.join(r.needs), []).append(r.name)
        texts = tuple((k + ': ') * bool(k) + ' '.join(v) for k, v in parts.items())
        shared.setdefault(texts, {}).setdefault(op, []).append(direction)
    out = []
    for texts, directions in shared.items():
        alike = {}
        for op, of_op in directions.items():
            alike.setdefault(', '.join(of_op), []).append(op)
        for of_ops, ops in alike.items():
            left = '| %s | %s | ' % (', '.join(ops), of_ops)
            line = left + '; '.join(texts) + ' |'
            out += [line] if len(line) <= 120 else [left + t + ' |' for t in texts]
    return OPERATIONS + out


def rewritten_document(text, name, rungs, evidence, problems):
    lines = text.split('\n')
    if OPERATIONS[0] in lines:
        first = lines.index(OPERATIONS[0])
        last = next(i for i in range(first, len(lines)) if not lines[i].startswith('|'))
        lines[first:last] = operations(rungs)
    first = next((i for i, x in enumerate(lines) if x.startswith('<!-- measured matmul fwd bf16')), None)
    if first is None:
        problems.append('%s shows no ladder' % name)
        return text
    last = next((i for i in range(first + 1, len(lines)) if not lines[i].startswith('    ')), len(lines))
    shown = document(rungs['matmul', 'fwd'], evidence, excerpt=name == 'README.md')
    return '\n'.join(lines[:first] + shown + lines[last:])


PLAIN = '// ---- The kernels that add one idea each end here.'


def order(text, rungs, problems):
    """Rung numbers must rise from section to section. Within a section, the kernels that add one idea each stand
    above a line, and must have lower rung numbers than the optimised kernels below the line."""
    kernels = {'kbk_%s_%s_%s_k' % (r.op, r.direction, r.name): r for all_ in rungs.values() for r in all_}
    above, below, lines, section = {}, {}, 0, ''
    for line in text.split('\n'):
        m = re.match(r' *>>(\w+)  ', line)
        section = m[1] if m else section
        if line.startswith('/*-----') or line.startswith(PLAIN):
            lines += line.startswith(PLAIN)
            for key, found in below.items():
                above.setdefault(key, []).extend(found)
            below = {}
        m = re.search(r'\b(kbk_\w+_k)\(', line)
        if m and m[1] in kernels and '<<<' not in line:
            r = kernels[m[1]]
            below.setdefault((r.op, r.direction), []).append((r, section))
            for k, where in above.get((r.op, r.direction), []):
                if k.number > r.number and set(k.types) & set(r.types):
                    problems.append('wrong order of rungs: %s (rung %d) is below %s, but %s (rung %d) is above' % (
                        m[1], r.number, 'the end of the kernels that add one idea each' if where == section else '>>' + where,
                        k.name, k.number))
    if lines < 10:
        problems.append('fewer than 10 lines mark the end of the kernels that add one idea each: %d' % lines)
    sections(text, kernels, problems)


def sections(text, kernels, problems):
    found = {}  # operation: for each of its sections, whether the section marks the end of the kernels that add one idea each
    for body in re.findall(r'^/\*-+\n  >>\w+(.*?)(?=^/\*-----|\Z)', text, re.S | re.M):
        for key in {(kernels[k].op, kernels[k].direction)
                    for k in re.findall(r'\b(kbk_\w+_k)\(', body) if k in kernels}:
            found.setdefault(key, []).append('\n' + PLAIN in body)
    for key, lines in found.items():
        if len(lines) > 1 and not any(lines):
            problems.append('%s %s: no section marks the end of the kernels that add one idea each' % key)


def words(text, rungs, problems):
    """Compares the words in variant names with the lists in the manual and in KBKI_WORDS. A listed word must be used
    or reserved, and a used word must be listed."""
    found = re.search(r'Variant words are a closed list, KBKI_WORDS in >>table:\n(.*?)\n\n   [A-Z]{4}', text, re.S)
    macro = re.search(r'#define KBKI_WORDS\(word\)(( *\\\n *word\(.*\))+)', text)
    compiled = set(re.findall(r'word\((\w+)\)', macro[1])) if macro else set()
    listed, kept, prose = set(), set(), False
    for line in found[1].split('\n') if found else []:
        m = re.match(r' {7}(\w+) +(.*)', line) or re.match(r' {9,}()(.*)', line)
        if not m or not m[2]:
            continue
        prose = m[1] in ('attention', 'host', 'vendor') or (prose and not m[1])
        plain, _, reserved = re.sub(r'\([^()]*\)', '', m[2]).partition('Reserved, used by no variant:')
        listed |= set(re.findall(r'\w+', plain)) - {'copies', 'allocations'} if prose else {plain.split()[0]}
        kept |= set(re.findall(r'\w+', reserved))
    used = {r.name for all_ in rungs.values() for r in all_}
    for what, which in (('a kernel has this word, but the list in the manual lacks it', used - listed),
                        ('the manual calls this word reserved, but a kernel has it', kept & used),
                        ('no kernel has this word, and the manual does not call it reserved', listed - kept - used),
                        ('this word is in KBKI_WORDS or in the manual, but not in both',
                         compiled ^ (listed | kept))):
        problems += ['%s: %s' % (word, what) for word in sorted(which)]


def stations(text, rungs, problems):
    found = re.search(r'\n   READING ORDER.*?\n\n', text, re.S)
    lines = re.findall(r'\n +\d+ ([\w ]+):', found[0]) if found else []
    if len(lines) < 10:
        problems.append('only %d stations in READING ORDER' % len(lines))
    names, tags = {op for op, _ in rungs}, set(re.findall(r'\n  >>(\w+)  ', text))
    for name in [x for line in lines for x in line.split() if x not in names] + [
            '>>' + x for x in re.findall(r'>>(\w+)', found[0] if found else '') if x not in tags]:
        problems.append('READING ORDER: %s does not exist' % name)


def shortened(record):
    out = {k: record.get(k) for k in KEYS}
    out['counters'] = {k: v for k, v in (record.get('counters') or {}).items() if k in COUNTERS}
    return {k: float('%.6g' % v) if isinstance(v, float) else v for k, v in out.items()}


def run(suite, path, only):
    kept, calls = [], {}
    if os.path.exists(path):
        with open(path) as f:
            kept = json.load(f)
    for (op, direction, dtype), shape in LADDERS.items():
        if not only or op in only:
            calls.setdefault((dtype, tuple(shape.items())), []).append(op)
    for (dtype, shape), ops in calls.items():
        ops = list(dict.fromkeys(ops))
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'records.json')
            words = [suite, '--fast', '--no-progress', '--counters', '--op', ','.join(ops), '--dtype', dtype,
                     '--filter', '/%s=%s%s' % (*shape[0], '.*/causal=0' if ('causal', 0) in shape else '')]
            for k, v in shape:
                words += ['-a', '%s=%s' % (k, v)] if v else []
            print(' '.join(words), flush=True)
            done = subprocess.run(words + ['--json', out])
            if not os.path.exists(out):
                print('%s wrote no records (exit code %d)' % (suite, done.returncode), file=sys.stderr)
                continue
            with open(out) as f:
                new = [r for r in json.load(f) if r['status'] == 'ok' and
                       where_of(r['operation'], r['params']) == shape_text(r['operation'], dict(shape))]
        names = {r['name'] for r in new}
        kept = [r for r in kept if r['name'] not in names] + [shortened(r) for r in new]
        with open(path, 'w') as f:  # a record a line
            f.write('[\n' + ',\n'.join(json.dumps(r, separators=(',', ':')) for r in kept) + '\n]\n')
    print('%d records in %s' % (len(kept), path))
    return 0


def diff(header, op):
    seen = set()
    for (name, direction), rungs in table(header).items():
        shown = sorted(rungs, key=lambda r: r.number) if name == op else []
        for dtype, (i, r) in ((t, x) for t in ('f32', 'bf16') for x in enumerate(shown)):
            k = before(shown, i, dtype, {x.name for x in shown}) if dtype in r.types else None
            found = [re.search(r'\n(template[^;{]*?\bkbk_%s_%s_%s_k\(.*?\n}\n)' % (op, direction, x.name), header, re.S)
                     for x in ((shown[k], r) if k is not None else ())]
            if not all(found) or not found or (k, i, direction) in seen:
                continue
            seen.add((k, i, direction))
            old, new = (re.sub(r'(?m)^ +', '', m[1]).split('\n') for m in found)
            changed = list(difflib.unified_diff(old, new, lineterm='', n=0))[2:]
            print('== %s %s: %d %s (%d lines) -> %d %s (%d lines): %d added, %d removed' % (
                op, direction, shown[k].number, shown[k].name, len(old), r.number, r.name, len(new),
                sum(x[0] == '+' for x in changed), sum(x[0] == '-' for x in changed)))
            print('\n'.join(changed))
    if not seen:
        print('ladder.py: nothing to compare: the operation %s is unknown, or its rungs have no kernels named '
              'kbk_%s_..._k. examples/README.md lists the operations.' % (op, op), file=sys.stderr)
    return 0 if seen else 2


def main(argv):
    options, asked = {'--evidence': None, '--root': '.'}, []
    left = iter(argv)
    for word in left:
        if word in options:
            options[word] = next(left, '')
        else:
            asked.append(word)
    root = options['--root']
    names = ['kbench_kernels.cuh', 'README.md', 'examples/README.md']
    paths = [os.path.join(root, n) for n in names]
    with open(paths[0], encoding='utf-8') as f:
        header = f.read()
    complete(header)
    if asked[:1] == ['--run'] and len(asked) > 2:
        return run(asked[1], asked[2], asked[3:])
    if asked[:1] == ['--diff'] and len(asked) == 2:
        return diff(header, asked[1])
    if asked not in (['--check'], ['--write']):
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 2
    evidence, problems, stale = gather(options['--evidence'] or os.path.join(root, EVIDENCE)), [], []
    rungs = table(header)
    order(header, rungs, problems)
    words(header, rungs, problems)
    stations(header, rungs, problems)
    for name, path in zip(names, paths):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        if name.endswith('.md'):
            new = rewritten_document(text, name, rungs, evidence, problems)
        else:
            new = rewritten(text, rungs, evidence, work_of_ladders(root), problems)
        if new != text and asked == ['--write']:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(new)
        elif new != text:
            old, now = text.split('\n'), new.split('\n')
            at = next((k for k, (a, b) in enumerate(zip(old, now)) if a != b), min(len(old), len(now)))
            stale.append('%s, line %d: the evidence says "%s"; python3 tests/ladder.py --write corrects it' % (
                name, at + 1, now[at].strip() if at < len(now) else ''))
    for text in problems + stale:
        print(text)
    return 1 if problems or stale else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
