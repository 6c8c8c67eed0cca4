#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Checks that a file is a timeline that Perfetto and chrome://tracing can read (Chrome's trace event format), and
counts the events of each kind.

    trace.py FILE [CATEGORY=COUNT...]    prints each violated rule, or "good"

If Perfetto's trace_processor_shell is on the PATH, trace_processor_shell must also read every slice of the file
without an error.
"""
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

wrong = []


def need(fine, what, event=None):
    if not fine:
        wrong.append(what + (': ' + json.dumps(event) if event else ''))


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)


def constant(name):
    raise ValueError(name + ' is not valid JSON')


with open(sys.argv[1], encoding='utf-8') as f:
    trace = json.load(f, parse_constant=constant)
need(set(trace) == {'displayTimeUnit', 'otherData', 'traceEvents'}, 'the file has the expected keys')
need(trace.get('displayTimeUnit') in ('ns', 'ms'), 'displayTimeUnit is ns or ms')
processes, threads, slices, flows, kinds = set(), set(), defaultdict(list), defaultdict(list), Counter()
for e in trace['traceEvents']:
    phase = e.get('ph')
    need(phase in ('M', 'X', 'C', 's', 'f'), 'the phase is known', e)
    need(type(e.get('pid')) is int and type(e.get('tid')) is int, 'pid and tid are integers', e)
    need(isinstance(e.get('name'), str) and e['name'], 'the event has a name', e)
    if phase != 'M':
        need(number(e.get('ts')) and e['ts'] >= 0, 'the event has a time', e)
    if phase == 'M':
        need(e['name'] in ('process_name', 'thread_name') and e['args']['name'], 'metadata has a name', e)
        (processes if e['name'] == 'process_name' else threads).add(
            e['pid'] if e['name'] == 'process_name' else (e['pid'], e['tid']))
    elif phase == 'X':
        need(number(e.get('dur')) and e['dur'] >= 0, 'the slice has a duration', e)
        need(isinstance(e.get('args'), dict) and e['args'].get('case'), 'the slice names its case', e)
        kinds[e['cat']] += 1
        slices[e['pid'], e['tid']].append((round(1000 * e['ts']), round(1000 * (e['ts'] + e['dur']))))
    elif phase == 'C':
        need(e['args'] and all(number(x) for x in e['args'].values()), 'a counter has finite values', e)
        kinds[e['name']] += 1
    else:
        need(phase == 's' or e.get('bp') == 'e', 'a flow ends at its enclosing slice', e)
        flows[e.get('id'), e['cat'], e['name']].append(e)
for (pid, tid), on in slices.items():
    need(pid in processes and (pid, tid) in threads, 'process %d and its thread %d have names' % (pid, tid))
    on.sort(key=lambda s: (s[0], -s[1]))
    open_ = []
    for start, end in on:
        while open_ and open_[-1] <= start:
            open_.pop()
        need(not open_ or end <= open_[-1], 'slices of process %d, thread %d are disjoint or nested' % (pid, tid))
        open_.append(end)
for key, ends in flows.items():
    need(sorted(e['ph'] for e in ends) == ['f', 's'], 'a flow has a start and an end', ends[0])
    ends.sort(key=lambda e: e['ph'], reverse=True)
    need(ends[0]['ts'] <= ends[-1]['ts'], 'a flow does not go back in time', ends[0])
    for e in ends:
        at = round(1000 * e['ts'])
        need(any(a <= at <= b for a, b in slices[e['pid'], e['tid']]), 'a flow starts and ends in slices', e)
need(len(flows) == kinds['kernel'] + kinds['copy'] + kinds['memset'], 'every kernel, copy and memset has a flow')
for word in sys.argv[2:]:
    kind, n = word.split('=')
    need(kinds[kind] == int(n), '%d of %s, not %s' % (kinds[kind], kind, n))
perfetto = shutil.which('trace_processor_shell') or shutil.which('trace_processor')
if perfetto:
    with tempfile.NamedTemporaryFile('w', suffix='.sql') as query:
        query.write("select (select count(*) from slice) || ' slices, ' || "
                    "(select coalesce(sum(value), 0) from stats where severity = 'error') || ' errors' as found;")
        query.flush()
        p = subprocess.run([perfetto, '-q', query.name, sys.argv[1]], capture_output=True, text=True)
    need('%d slices, 0 errors' % sum(len(on) for on in slices.values()) in p.stdout,
         'Perfetto: %s' % ' '.join((p.stdout + p.stderr)[-300:].split()))
print('\n'.join(wrong[:20]) if wrong else 'good')
sys.exit(bool(wrong))
