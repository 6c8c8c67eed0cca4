#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Tests pages and figures of artificial records. The files must be well-formed and must have no text such as nan in
place of a number. The tool must print the same table from a page as from the file of records.

    html_pages.py TOOL FOLDER RECORDS...    a line for each kind of records: "ok KIND", or what is wrong

"make test" draws up to three of the eleven kinds of figures for each kind of records. Successive kinds of records get
different kinds of figures. "make test-all" (TEST_ALL) draws all kinds of figures for each kind of records.
"""
import copy
import html.parser
import json
import math
import os
import random
import re
import subprocess
import sys
import time
import xml.dom.minidom

KINDS = 'speed roofline time gbps gflops efficiency heat fits samples ratios changes'.split()
EVERYTHING = bool(os.environ.get('TEST_ALL'))
tool, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
looked = 0
random.seed(1)


def case(op, impl, params, ms, bytes_=None, flops=None, samples=20, **more):
    r = dict(name='%s/impl=%s/%s' % (op, impl, '/'.join('%s=%s' % p for p in params.items())), operation=op,
             implementation=impl, dtype='f32', params=params, planned=9, status='ok', flags=[], verified=True,
             time_ms=ms, time_ms_mean=ms, time_ms_std=ms / 99, time_ms_min=ms * .9, time_ms_max=ms * 1.2,
             time_ms_p5=ms * .97, time_ms_p95=ms * 1.03, time_ms_ci_low=ms * .99, time_ms_ci_high=ms * 1.01,
             precision=.01, samples=samples, samples_ms=[ms * random.gauss(1, .01) for _ in range(samples)],
             memory_bytes=1 << 20, memory_mb=1, max_error=1e-7, cache='cold', timer='events', backend='cuda', device=0, gpu='NVIDIA H200',
             compute_capability='9.0', driver='580.1', cuda='13.0', cpu='Xeon', copy_roof_gbps=4200,
             compute_roof='f32', compute_roof_gflops=58000, l2_bytes=50 << 20, schema=3, run_id='r',
             kernel='void %s<float, %s>(float const*, float*, int)' % (op, impl), grid='64x1x1', block='256x1x1',
             registers=32, shared_bytes=0, local_bytes=0, occupancy_theoretical=100, command='prog --html x.html',
             kbench_version='0.1.0', date='2026-01-31T00:00:00Z', build='13.3.0, optimised, CUDA')
    for k, key in enumerate('mad p25 p75 p99 raw'.split()):
        r['time_ms_' + key] = ms * (1 + k / 7)
    for k, key in enumerate('cv bias_ms floor_ms wall_ms inference_speed host_memory_mb tolerance power_w'.split()):
        r[key] = ms / (3 + k)
    r.update(launches_per_sample=8, samples_retaken=0, processes=1, process_ms=[ms], rating='needs work', leaked_bytes=0)
    if bytes_:
        r.update(bytes=bytes_, throughput_gbps=bytes_ / ms / 1e6, gpu_efficiency=bytes_ / ms / 42e6, roof='copy', bound='memory')
    if flops:
        r.update(flops=flops, gflops=flops / ms / 1e6)
    r.update(more)
    return r


def sweep(rows, cols, impls, **more):
    out = []
    for n in rows:
        for m in cols:
            base = n * m * 1e-7
            for k, impl in enumerate(impls):
                ms = base / (k + 1) ** .5
                rival = dict(baseline=impls[0], speedup=base / ms, winner=impls[-1], winner_certain=True)
                if k:
                    rival.update(speedup_low=base / ms * .99, speedup_high=base / ms * 1.01, noise_floor=.01, verdict='FASTER')
                out.append(case('layernorm', impl, dict(rows=n, cols=m), ms, 8. * n * m, 9. * n * m, **dict(rival, **more)))
    return out


def every(records, **fields):
    return [dict(copy.deepcopy(r), **fields) for r in records]


small = sweep((512, 2048, 8192), (64, 256), ('naive', 'warp', 'vec'))
evil = 'a<b>&"\'</script><script>alert(1)</script>]]>\u2028\x01%s~^$@' + 'x' * 150
nothing = {k: None for k in small[0]}
SETS = {
    'a few': small,
    'one case': small[:1],
    'one implementation': small[::3],
    'failed': every(small[:4], time_ms=None, status='failed', flags=['CRASHED'], message=evil),
    'skipped': every(small[:2], time_ms=None, status='skipped', message='no GPU'),
    'null': [dict(nothing, name='x%d' % i, operation='x', status='ok', flags=[], params={}) for i in range(3)],
    'times alone': [dict(nothing, name='x%d' % i, operation='x', status='ok', flags=[], time_ms=1, params={'n': i}) for i in range(5)],
    'one sample': every(small, samples=1, samples_ms=[.5]),
    'no samples': every(small, samples_ms=None),
    'unknown samples': every(small, samples_ms=[None, None]),
    'equal': every(small, time_ms=1, time_ms_ci_low=1, time_ms_ci_high=1, gpu_efficiency=50, samples_ms=[1, 1, 1]),
    'no bytes': every(small, bytes=None, flops=None, throughput_gbps=None, gflops=None, gpu_efficiency=None, roof=None),
    'strange texts': [dict(r, name=evil + str(i), operation=evil, direction='<d>', dtype='"&', gpu=evil, kernel=evil, command=evil,
                           message=evil, implementation='<i>' + r['implementation'], flags=['NOISY'], baseline='<i>naive',
                           winner='<i>vec', params={evil: i + 1, '<s>': evil}) for i, r in enumerate(small)],
    'huge': every(small, time_ms=1e300, time_ms_ci_low=1e-300, time_ms_ci_high=1e308, bytes=1e308, flops=5e-324, gflops=1e-310,
                  gpu_efficiency=1e300, speedup=1e300, speedup_low=1e-300, speedup_high=1e308, samples_ms=[1e-300, 1e300]),
    'tiny': every(small, time_ms=1e-300, time_ms_ci_low=1e-320, bytes=1e-308, flops=1e308, gflops=1e308, gpu_efficiency=1e-300),
    'negative': every(small, time_ms=-1, bytes=-5, flops=-3, gflops=-1, gpu_efficiency=-7, speedup=-2, samples_ms=[-1, 0, 1]),
    'zero': every(small, time_ms=0, bytes=0, flops=0, gflops=0, gpu_efficiency=0, speedup=0, samples_ms=[0, 0, 0]),
    'sixty implementations': [case('o', 'impl_%d' % i, {'n': 2 ** (i % 6)}, i + 1., 1e6) for i in range(60)],
    'axes of all kinds': [case('o', 'i', {'a': i % 3, 'b': -i, 'c': i * 1e300, 'd': .5 * i, 'e': 't%d' % i}, i + 1.) for i in range(30)],
    'two machines': small + every(small, gpu='NVIDIA H100', run_id='s'),
}
for file in files:
    with open(file) as f:
        SETS[file.rsplit('/', 1)[-1]] = json.load(f)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.scripts = [], [], 0
        self.feed(text)
        self.close()
        assert not self.open, 'left open: %s' % self.open
        assert len(set(self.ids)) == len(self.ids), 'an id occurs twice'
        assert self.scripts == 2, '%d scripts' % self.scripts

    def handle_starttag(self, tag, attrs):
        if tag not in ('meta', 'link', 'input', 'br'):
            self.open.append(tag)
        self.scripts += tag == 'script'
        for key, value in attrs:
            assert not key.startswith('on') and key != 'src', 'attribute ' + key
            assert key != 'href' or value.startswith(('#', 'data:')), value
            if key == 'id':
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        assert tag in ('path', 'rect'), tag

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, '</%s> at %s, open are %s' % (tag, self.getpos(), self.open[-3:])
        self.open.pop()


NO_NUMBER = re.compile(r'''[=\s'"(>:,-](nan|inf|infinity)[\s'"),<]''', re.I)


def numbers(text, what):
    bad = NO_NUMBER.search(text)
    assert not bad, '%s: %s' % (what, text[max(0, bad.start() - 80):bad.end() + 20])


def run(*args):
    r = subprocess.run([tool, '--load', *args], capture_output=True)
    assert r.returncode in (0, 1, 3), '%s: exit code %d: %s' % (args, r.returncode, r.stderr[-300:])
    return r.stdout.decode()


def look(name, records):
    global looked
    looked += 1
    file, page = '%s/set.json' % folder, '%s/set.html' % folder
    with open(file, 'w') as f:
        json.dump(records, f)
    run(file, '--html', page)
    with open(page, encoding='utf-8') as f:
        text = f.read()
    Page(text)
    shown, data = text.split('<script type="application/json"', 1)
    numbers(shown, 'page')
    for svg in re.findall(r'<svg.*?</svg>', shown, re.S):
        xml.dom.minidom.parseString(svg)
    held = json.loads(data.split('>', 1)[1].split('</script>', 1)[0])
    assert len(held['records']) == len(records), 'the numbers of records in the page and in the file differ'
    assert run(file) == run(page), 'the table of the page differs from the table of the file'
    for kind in KINDS if EVERYTHING else KINDS[looked % 4::4]:
        svg = run(file, '--svg', '-', '--plot', kind, '--baseline', file)
        xml.dom.minidom.parseString(svg)
        numbers(svg, kind)
    return text


def large():
    """A page with 200 cases of a GPU sweep has less than 1 MiB, and is written in less than a second."""
    records = sweep([2 ** k for k in range(8, 18)], (256, 512, 1024, 2048, 4096), ('naive', 'warp', 'block', 'vec'), samples=392)
    for r in records:
        r['samples_ms'] = [r['time_ms'] * random.gauss(1, .01) for _ in range(392)]
    assert len(records) == 200
    text = look('200 cases', records)
    assert len(text.encode()) < 1 << 20, '%d bytes' % len(text.encode())
    began = time.time()
    run('%s/set.json' % folder, '--html', '%s/set.html' % folder)
    assert time.time() - began < 1, '%.2f s' % (time.time() - began)


def many():
    if EVERYTHING:
        look('500 cases', sweep([2 ** k for k in range(5, 30)], [2 ** k for k in range(5, 15)], ('naive', 'vec')))


def missing():
    text = look('no bytes', SETS['no bytes'])
    assert 'no case declares both kb_bytes and kb_flops' in text


def numbers_drawn():
    """Times that grow with the square of the size give an exponent of 2.00 +- 0.01."""
    records = [case('o', 'i', {'n': n}, 3e-6 * n * n * random.gauss(1, .002), 8. * n) for n in (64, 256, 1024, 4096)]
    text = look('a power', records)
    power = re.search(r'3\.\d+ ns.*?n</span><sup>(2\.00|1\.99\d?|2\.01)</sup>', text)
    assert power, 'the exponent is not shown: %s' % re.findall(r'n</span><sup>.*?</sup>', text)


def levels():
    """In the roofline figure, each case with counters has a ring (L2 traffic) and a dot (DRAM traffic), joined by a
    line."""
    records = [case('o', 'i', {'n': n}, n * 1e-6, 8. * n, 9. * n) for n in (1024, 16384)]
    assert 'ring: FLOP per L2 byte' not in look('without levels', records), 'without counters, the roofline figure shows L2 and DRAM traffic'
    for r, l2 in zip(records, (2, .5)):  # 2 and 0.5 FLOP per byte of L2 traffic, 16 per byte of DRAM traffic
        flops = r['flops']
        r['counters'] = {'dram_bytes': flops / 16, 'l2_bytes': flops / l2, 'intensity_dram': 16, 'intensity_l2': l2}
    records[1].update(bytes=None, throughput_gbps=None, gflops=None)
    records.append(case('o', 'i', {'n': 1 << 20}, 1, 8e6))  # all data comes from the cache, so there is no dot
    records[2]['counters'] = {'dram_bytes': 1, 'l2_bytes': 1e6, 'intensity_dram': 8e6, 'intensity_l2': 8}
    look('levels', records)
    svg = run('%s/set.json' % folder, '--svg', '-', '--plot', 'roofline')
    pairs = re.findall(r"<path class='thin k\d' d='M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)'/><path class='mk k\d hollow' d='M([\d.]+) "
                       r"[^>]*/><path class='pt k\d' d='M([\d.]+) ", svg)
    assert len(pairs) == 3, 'expected a ring and a dot for each of two cases and in the legend: %s' % pairs
    for x0, y0, x1, y1, ring, dot in pairs[:2]:
        assert y0 == y1 and float(x0) < float(x1) and abs(float(ring) + 2 - float(x0)) < .1 and dot == x1, pairs
    assert pairs[0][2] == pairs[1][2], 'two cases with equal DRAM intensity have dots at different places: %s' % pairs
    assert svg.count('hollow') == 5, svg.count('hollow')
    assert 'ring: FLOP per L2 byte; dot: FLOP per DRAM byte (counters)' in svg


def machines():
    for n in (1, 3, 4, 6):
        text = look('machines', [dict(case('o', 'i', {'n': i}, 1), gpu='NVIDIA H%d' % i) for i in range(n)])
        head = re.findall(r"<p class='dim'>(NVIDIA H\d), driver", text.split('</header>')[0])
        assert head == ['NVIDIA H%d' % i for i in range(min(n, 4))], 'of %d: %s' % (n, head)
    text = look('one machine', small)
    assert text.split('</header>')[0].count("<p class='dim'>NVIDIA H200") == 1


def cache():
    """In each plot over sizes, one mark shows where the cases begin to exceed L2."""
    records = [case('o', 'i', {'n': n}, n * 1e-6, 8. * n, memory_bytes=n * 1024) for n in (1024, 16384, 262144, 4194304)]
    text = look('a cache', records)
    marks = re.findall(r"<path class='hint' d='M([\d.]+) .*?</path>|<path class='hint' d='M([\d.]+) [^>]*/><text[^>]*>L2, 50.0 MiB<", text)
    assert len(marks) == 3, 'marks: %s' % marks


failed = False
for name, test in [(n, lambda n=n: look(n, SETS[n])) for n in SETS] + [('200 cases', large), ('500 cases', many),
                   ('missing', missing), ('a power', numbers_drawn), ('a cache', cache), ('levels', levels), ('machines', machines)]:
    try:
        test()
        print('ok', name)
    except Exception as e:  # after a failed test, the other tests still run
        print('%s: %s' % (name, ' '.join(str(e).split())[:400]))
        failed = True
sys.exit(failed)
