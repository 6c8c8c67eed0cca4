#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Generates the measured columns of the cards in kbench_kernels.cuh, and the ladder in the documents, from the
evidence.

    ladder.py --check                 prints each difference from the evidence; the exit code is 1 if there is one
    ladder.py --write                 writes the columns: the text between `/*  measured OPERATION DIRECTION: TYPE` and
                                      `end of measured */` after the cards
    ladder.py --run SUITE OUT [OP...] measures every rung of every ladder (or of these operations) with that suite, on
                                      this machine's GPU, at the shape of the ladder. Adds the records to OUT, which
                                      becomes evidence as tests/evidence/h200/ladder.json
    Both also check the manual's closed list of terms, and the end of the portable rungs.
    --evidence FILE  (repeatable)     replaces the files below;  --root DIR: another copy of the sources

A line is a rung: number, name, time, share of the measured peak, speed relative to the previous measured rung of this
type (with its number if it is not the one before), and the table's note. A line below a rung says at which shapes it is
more than 1 % slower than the rung before. A rung without evidence has dashes. The first evidence that has a rung
counts: records of kbench (ladder.json, operations.json), then the output of attention_matrix.py for kbench's kernels
(attention_matrix.txt), then times by CUDA events in TFLOP/s (hopper.txt, hopper_attention.txt, e4m3.txt), which are
marked with a star.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

RECORDS = ['tests/evidence/h200/ladder.json', 'tests/evidence/h200/operations.json']
TABLES = ['tests/evidence/h200/attention_matrix.txt']
TEXTS = ['tests/evidence/h200/hopper.txt', 'tests/evidence/h200/hopper_attention.txt', 'tests/evidence/h200/e4m3.txt']
SAME = 0.99  # a smaller loss counts as equally fast


def rows_of(columns, batch, length):
    return {'batch_size': batch, 'sequence_length': length, 'tensor_dimension': columns}


MAP, ROWS = rows_of(4096, 16, 2048), rows_of(4096, 8, 1024)
LOGITS, TOKENS = rows_of(50304, 8, 1024), dict(rows_of(768, 16, 1024), vocabulary=50304)
HEADS = dict(rows_of(128, 4, 2048), heads=16, causal=0)  # as many keys as naive supports
LARGE = {'n': 268435456}
# (operation, direction, type): the shape for its ladder
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
        # a vendor function with a rung of its own, for example cudaMallocAsync, is a normal step of the ladder
        self.types, self.vendor, self.note = TYPES[m[5]].split(), self.number == 99, m[8]


def table(header):
    """The rungs of every operation and direction, in the table's order."""
    out = {}
    for m in ROW.finditer(header):
        r = Rung(m)
        out.setdefault((r.op, r.direction), []).append(r)
    return out


# ---- evidence --------------------------------------------------------------------------------------------------------

class Time:
    """One rung at one shape. star: not measured by kbench. rates: peaks of the GPU, GFLOP/s and GB/s."""

    def __init__(self, ms, roof, star, gpu, date, source, rates=None):
        self.ms, self.roof, self.star, self.gpu, self.date, self.source = ms, roof, star, gpu, date, source
        self.rates = rates


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
    text = '%d x %d' % (batch * p['sequence_length'], columns)
    return text + (' of %d' % p['vocabulary'] if 'vocabulary' in p else '')


def where_of(op, params):
    """The parameters of a record that form its shape; without a layout, NN."""
    left = {k: v for k, v in params.items() if k not in ('dtype', 'dir', 'p')}
    if left.get('layout') == 'NN':
        del left['layout']
    return shape_text(op, left)


def records(path, evidence):
    with open(path) as f:
        found = json.load(f)
    for r in found['kbench'] if isinstance(found, dict) else found:
        if not r.get('time_ms') or r['status'] != 'ok':
            continue
        key = r['operation'], r['direction'], r['dtype'], where_of(r['operation'], r['params'])
        here = evidence.setdefault(key, {})
        if r['implementation'] not in here:
            here[r['implementation']] = Time(r['time_ms'], r['gpu_efficiency'], False, r['gpu'], r['date'][:10],
                                             os.path.basename(path),
                                             (r.get('compute_roof_gflops'), r.get('copy_roof_gbps')))


def tables(path, evidence):
    """The table of attention_matrix.py: kbench's kernels, timed by kbench. The peak comes from a record of the same
    type."""
    with open(path) as f:
        head, *lines = f.read().split('\n')
    stamp = re.match(r'(NVIDIA \w+), .*(\d{4}-\d\d-\d\d)', head)
    if not stamp:
        return
    for line in lines:
        m = re.match(r' *(\d+) +(\d+) +(\d+) +(\d+) +(b?f16|f32) +kb:(\w+) +([\d.]+) +\S+ +([\d.e+]+) +([\d.e+]+) ',
                     line)
        if not m:
            continue
        text = ' x '.join(m.group(1, 2, 3, 4)) + (' causal' if '--causal' in head else '')
        rates = next((t.rates for key, all_ in evidence.items() if key[:3] == ('attention', 'fwd', m[5])
                      for t in all_.values() if t.rates and all(t.rates)), None)
        roof = 100 * max(float(m[8]) / rates[0], float(m[9]) / rates[1]) if rates else None
        here = evidence.setdefault(('attention', 'fwd', m[5], text), {})
        if m[6] not in here:
            here[m[6]] = Time(float(m[7]) / 1000, roof, False, stamp[1], stamp[2], os.path.basename(path))


def texts(path, evidence):
    """Tables in TFLOP/s: a line of names, then `type layout MxNxK` or `type heads rows d full`, and a rate for
    each."""
    names, head, date, timed, direction = [], '', '', False, 'fwd'
    with open(path) as f:
        for line in f:
            m = re.match(r'(NVIDIA \w+), .*(\d{4}-\d\d-\d\d)', line)
            if m:
                head, date = m[1], m[2]
            if re.match(r'((fwd|bwd), )?TFLOP/s', line):
                direction, timed = line[:3] if line[3] == ',' else 'fwd', 'cuBLAS us' in line
                plain = {'TFLOP/s', 'fwd,', 'bwd,', 'B,', 'M,', 'N,', 'M', 'N', 'K', 'x', 'heads', 'rows', 'd'}
                names = [w for w in line.replace('cuBLAS us', '').split() if w not in plain]
            product = re.match(r'(b?f16|f32|e4m3) +(N[NT]|TN) +(\d+)x *(\d+)x *(\d+) +(.*)', line)
            heads = re.match(r'(b?f16) +(\d+) +(\d+) +(\d+) (full|causal) +(.*)', line)
            if product:
                m, n, k = (int(product[i]) for i in (3, 4, 5))
                text = '%d x %d x %d%s' % (m, n, k, '' if product[2] == 'NN' else ' ' + product[2])
                key, flops = ('matmul', 'fwd', product[1], text), 2 * m * n * k
                if product[1] == 'e4m3':  # matmul_e4m3 is an operation of its own, with C in bf16
                    key = 'matmul_e4m3', 'fwd', 'bf16', text
            elif heads:
                h, rows, d = (int(heads[i]) for i in (2, 3, 4))
                causal = heads[5] == 'causal'
                flops = (4 if direction == 'fwd' else 10) * h * rows * rows * d // (2 if causal else 1)
                at = [(16, 4), (32, 4)] if h in (64, 128) and rows == 4096 else [(h, 1)]
                each = next((a, b) for a, b in at if a * b == h)
                text = '%d x %d x %d x %d%s' % (each[1], each[0], rows, d, ' causal' if causal else '')
                key = 'attention', direction, heads[1], text
            else:
                continue
            rates = [None if w == '-' else float(w) for w in (product or heads)[6].split()][timed:]
            # each rate but the first is followed by its ratio to the first
            rates = rates[:1] + rates[1::2] if len(rates) == 2 * len(names) - 1 else rates[:2]
            here = evidence.setdefault(key, {})
            for name, rate in zip(names, rates):
                name = 'cublas' if name == 'cuBLAS' else name
                other = key[2] == 'f32' and name == 'cublas'  # in tf32
                if rate and not other and name not in here:
                    here[name] = Time(flops / rate / 1e9, None, True, head, date, os.path.basename(path))


def roofs(evidence):
    """Adds the share of the peak to times without one, if a record of the same shape tells the peak."""
    for here in evidence.values():
        known = [t for t in here.values() if t.roof]
        for t in here.values():
            if not t.roof and known:
                t.roof = known[0].roof * known[0].ms / t.ms
    return evidence


def gather(root, given):
    evidence = {}
    for path in given or RECORDS + TABLES + TEXTS:
        full = path if given else os.path.join(root, path)
        if os.path.exists(full) or given:
            table_there = os.path.basename(full).startswith('attention_matrix')
            (tables if table_there else texts if full.endswith('.txt') else records)(full, evidence)
    return roofs(evidence)


# ---- lines -----------------------------------------------------------------------------------------------------------

def time_text(ms):
    us = ms * 1000
    if us >= 9999.5:
        return '%.*f ms' % (2 if ms < 100 else 1, ms)
    return '%.*f us' % (2 if us < 10 else 1 if us < 1000 else 0, us)


def times_text(gain):
    return '%.*f x' % (2 if gain < 10 else 1 if gain < 100 else 0, gain)


def before(rungs, i, dtype, here):
    """The index of the rung that rung i is compared with, or None."""
    return next((k for k in range(i - 1, -1, -1) if not rungs[k].vendor and dtype in rungs[k].types and
                 rungs[k].name in here), None)


def losses(rungs, i, evidence):  # rungs in order
    """(speedup, where) against the previous rung, at all shapes and types of the evidence; only times of the same
    kind."""
    out, r = [], rungs[i]
    for (op, direction, dtype, where), here in evidence.items():
        if (op, direction) != (r.op, r.direction) or r.name not in here:
            continue
        k = before(rungs, i, dtype, here)
        if k is not None and here[rungs[k].name].star == here[r.name].star:
            out.append((here[rungs[k].name].ms / here[r.name].ms, dtype + ' ' + where))
    return sorted(out)


def loses_text(found):
    slower = [f for f in found if f[0] < SAME]
    if not slower:
        return None
    text = 'loses at %s (%s)' % (slower[0][1], times_text(slower[0][0]))
    if len(found) > 1:
        also = 'all' if len(slower) == len(found) else len(slower) - 1
        text += ' and %s of %d more' % (also, len(found) - 1) if also else ' alone of %d shapes' % len(found)
    best = found[-1]
    return text + ('; gains at %s (%s)' % (best[1], times_text(best[0])) if best[0] > 1 / SAME else '')


def ladder(op, direction, dtype, rungs, evidence):
    """[(number, name, time, share of the peak, gain, note, losses)], and where it was measured."""
    shape = shape_text(op, LADDERS[op, direction, dtype])
    here, lines = evidence.get((op, direction, dtype, shape), {}), []
    shown = sorted((r for r in rungs if dtype in r.types), key=lambda r: r.number)
    for i, r in enumerate(shown):
        t, gain = here.get(r.name), '-'
        k = None if r.vendor or not t else before(shown, i, dtype, here)
        if k is not None:
            gain = times_text(here[shown[k].name].ms / t.ms)
            if k != i - 1:
                gain += ' of %d' % shown[k].number
        time = time_text(t.ms) + ('*' if t.star else '') if t else '-'
        loses = None if r.vendor else loses_text(losses(shown, i, evidence))
        lines.append((r.number, r.name, time, '%.0f %%' % t.roof if t and t.roof else '-', gain, r.note, loses))
    stamps = {(t.gpu, t.date) for r in shown for t in [here.get(r.name)] if t}
    title = '%s %s' % (dtype, shape)
    if stamps:
        title += ', %s, %s' % (sorted(stamps)[0][0], ' and '.join(sorted({d for _, d in stamps})))
    if any(here[r.name].star for r in shown if r.name in here):
        title += '; * by CUDA events'
    return title, lines


def card(key, rungs, evidence):
    op, direction, dtype = key
    title, lines = ladder(op, direction, dtype, rungs, evidence)
    gains = max(len(x[4]) for x in lines)
    out = ['/*  measured %s %s: %s' % (op, direction, title)]
    for number, name, time, roof, gain, note, loses in lines:
        out.append(('    %2d %-9s %10s %6s %*s  %s' % (number, name, time, roof, gains, gain, note)).rstrip())
        if loses:
            out += textwrap.wrap(loses, 117, initial_indent=' ' * 17, subsequent_indent=' ' * 17,
                                 break_long_words=False, break_on_hyphens=False)
    return out + ['    end of measured */']


EXCERPT = 'naive regblock warpmma warpgroup wgmma coop select cublas'.split()  # the rungs that README.md shows


def document(rungs, evidence, excerpt):
    """The ladder of matmul for examples/README.md; excerpt: some rungs, without the gain over the rung before."""
    title, lines = ladder('matmul', 'fwd', 'bf16', rungs, evidence)
    gains = max(len(x[4]) for x in lines)
    out = ['<!-- measured matmul fwd bf16: %s -->' % title]
    for number, name, time, roof, gain, note, _ in lines:
        if excerpt and name not in EXCERPT:
            continue
        middle = '' if excerpt else '  %*s' % (gains, gain)
        out.append(('    %2d %-9s %10s %6s%s  %s' % (number, name, time, roof, middle, note)).rstrip())
    return out


# ---- files -----------------------------------------------------------------------------------------------------------

def rewritten(text, rungs, evidence, problems):
    """The header with all measured columns, generated from the evidence."""
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
            problems.append('line %d: %s' % (i + 1, 'no end of measured' if end is None else
                                             'no such ladder: %s' % lines[i].strip()))
            return text
        out += card(keys[0], rungs[keys[0][:2]], evidence)
        seen.add(keys[0])
        i = end + 1
    for key in LADDERS:
        if key not in seen:
            problems.append('no card shows the measurement of %s %s in %s' % key)
    for key in rungs:
        if not any(k[:2] == key for k in LADDERS):
            problems.append('tests/ladder.py names no shape for %s %s' % key)
    return '\n'.join(out)


def rewritten_document(text, name, rungs, evidence, problems):
    lines = text.split('\n')
    first = next((i for i, x in enumerate(lines) if x.startswith('<!-- measured matmul fwd bf16')), None)
    if first is None:
        problems.append('%s shows no ladder' % name)
        return text
    last = next((i for i in range(first + 1, len(lines)) if not lines[i].startswith('    ')), len(lines))
    shown = document(rungs['matmul', 'fwd'], evidence, excerpt=name == 'README.md')
    return '\n'.join(lines[:first] + shown + lines[last:])


PLAIN = '// ---- The plain rungs end here.'


def order(text, rungs, problems):
    """Kernels in earlier sections, and above the line that ends the portable rungs, have lower numbers than those
    below: a reader finds each portable rung without reading production code first."""
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
                    problems.append('%s is rung %d and stands below %s, %s is rung %d and above it' % (
                        m[1], r.number, 'the line' if where == section else '>>' + where, k.name, k.number))
    if lines < 10:
        problems.append('only %d lines say that the plain rungs end' % lines)
    sections(text, kernels, problems)


def sections(text, kernels, problems):
    """Of an operation in several sections, one says where its plain rungs end."""
    found = {}  # for each operation, whether each of its sections has the line
    for body in re.findall(r'^/\*-+\n  >>\w+(.*?)(?=^/\*-----|\Z)', text, re.S | re.M):
        for key in {(kernels[k].op, kernels[k].direction)
                    for k in re.findall(r'\b(kbk_\w+_k)\(', body) if k in kernels}:
            found.setdefault(key, []).append('\n' + PLAIN in body)
    for key, lines in found.items():
        if len(lines) > 1 and not any(lines):
            problems.append('%s %s: no section says that the plain rungs end' % key)


def words(text, rungs, problems):
    """The closed list, in the manual and in KBKI_WORDS: a word of it has a row or is reserved, and none is
    missing."""
    found = re.search(r'Variant words are a closed list, KBKI_WORDS in >>table:\n(.*?)\n\n   [A-Z]{4}', text, re.S)
    macro = re.search(r'#define KBKI_WORDS\(word\)(( *\\\n *word\(.*\))+)', text)
    compiled = set(re.findall(r'word\((\w+)\)', macro[1])) if macro else set()
    listed, kept, prose = set(), set(), False
    for line in found[1].split('\n') if found else []:
        m = re.match(r' {7}(\w+) +(.*)', line) or re.match(r' {9,}()(.*)', line)
        if not m or not m[2]:
            continue
        prose = m[1] in ('attention', 'host', 'vendor') or (prose and not m[1])
        plain, _, reserved = re.sub(r'\([^()]*\)', '', m[2]).partition('Reserved, no row bears them:')
        listed |= set(re.findall(r'\w+', plain)) - {'copies', 'allocations'} if prose else {plain.split()[0]}
        kept |= set(re.findall(r'\w+', reserved))
    used = {r.name for all_ in rungs.values() for r in all_}
    for what, which in (('no word of the closed list', used - listed), ('reserved, and has a row', kept & used),
                        ('has no row, and is not marked as reserved', listed - kept - used),
                        ('in one of KBKI_WORDS and the manual alone', compiled ^ (listed | kept))):
        problems += ['%s: %s' % (word, what) for word in sorted(which)]


def run(suite, path, only):
    """A suite's records of every ladder."""
    kept = []
    if os.path.exists(path):
        with open(path) as f:
            kept = json.load(f)
    calls = {}
    for (op, direction, dtype), shape in LADDERS.items():
        if not only or op in only:
            calls.setdefault((dtype, tuple(shape.items())), []).append(op)
    for (dtype, shape), ops in calls.items():
        ops = list(dict.fromkeys(ops))
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'records.json')
            words = [suite, '--fast', '--no-progress', '--op', ','.join(ops), '--dtype', dtype]
            for k, v in shape:
                words += ['-a', '%s=%s' % (k, v)]
            print(' '.join(words), flush=True)
            subprocess.run(words + ['--json', out])
            with open(out) as f:
                new = json.load(f)
        names = {r['name'] for r in new}
        kept = [r for r in kept if r['name'] not in names] + [r for r in new if r['status'] == 'ok']
        with open(path, 'w') as f:  # a record a line
            f.write('[\n' + ',\n'.join(json.dumps(r, separators=(',', ':')) for r in kept) + '\n]\n')
    print('%d records in %s' % (len(kept), path))
    return 0


def main(argv):
    given, asked, root, i = [], [], '.', 0
    while i < len(argv):
        if argv[i] in ('--evidence', '--root') and i + 1 < len(argv):
            i += 1
            if argv[i - 1] == '--root':
                root = argv[i]
            else:
                given.append(argv[i])
        else:
            asked.append(argv[i])
        i += 1
    if asked[:1] == ['--run'] and len(asked) > 2:
        return run(asked[1], asked[2], asked[3:])
    if asked not in (['--check'], ['--write']):
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 2
    evidence, problems, stale = gather(root, given), [], []
    names = ['kbench_kernels.cuh', 'README.md', 'examples/README.md']
    paths = [os.path.join(root, n) for n in names]
    with open(paths[0], encoding='utf-8') as f:
        header = f.read()
    rungs = table(header)
    order(header, rungs, problems)
    words(header, rungs, problems)
    for name, path in zip(names, paths):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        if name.endswith('.md'):
            new = rewritten_document(text, name, rungs, evidence, problems)
        else:
            new = rewritten(text, rungs, evidence, problems)
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
