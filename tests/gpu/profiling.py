#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Compares the counters of the kernels of profiling.cu with the known values, and times with and without profiling.

    profiling.py LOOKED.json PLAIN.json    prints a line "good ..." or "BAD ..." with the values for each comparison
    profiling.py --energy ENERGY.json      the same for --energy
"""
import json
import sys


def told(good, what):
    print('%s %s' % ('good' if good else 'BAD', what))


def by_operation(path):
    with open(path) as f:
        return {r['operation'] + ''.join('/%s' % v for v in r['params'].values()): r for r in json.load(f)}


if sys.argv[1] == '--energy':
    for name, r in by_operation(sys.argv[2]).items():
        mj, idle = r['energy_mj'] or 0, r['idle_power_w'] or 0
        watts = mj / r['time_ms']
        told(5 < idle < 300 and idle < watts < 1500, '%s: %.4g mJ a launch, %.0f W at work, %.0f W at rest' % (name, mj, watts, idle))
        if r['bytes']:
            told(abs(r['bytes_per_joule'] * mj * 1e-3 / r['bytes'] - 1) < 1e-9, '%s: %.4g GB/J' % (name, r['bytes_per_joule'] * 1e-9))
    sys.exit()
looked, plain = by_operation(sys.argv[1]), by_operation(sys.argv[2])
for name, r in looked.items():
    told(r['status'] == 'ok', '%s: %s' % (name, r['message']))
c = {name: r['counters'] for name, r in looked.items()}
t = looked['triad/2048']
told(abs(c['triad/2048']['dram_bytes'] / t['bytes'] - 1) <= 0.02,
     'triad: %.4g bytes of DRAM, %.4g declared' % (c['triad/2048']['dram_bytes'], t['bytes']))
told(c['triad/2048']['ffma'] == t['flops'] / 2, 'triad: %d FFMA, %d declared' % (c['triad/2048']['ffma'], t['flops'] / 2))
want = 4 * 4096 * 132 * 256
told(c['chains']['ffma'] == want, 'chains: %d FFMA of %d' % (c['chains']['ffma'], want))
for name, flags in (('triad/2048', []), ('halved/2048', []), ('doubled', ['DECLARED_BYTES']), ('chains', []),
                    ('chains_doubled', ['DECLARED_FLOPS'])):
    found = [f for f in looked[name]['flags'] if f.startswith('DECLARED')]
    told(found == flags, '%s: %s, %s' % (name, found, looked[name]['message']))
told('times the bytes of kb_bytes' in (looked['halved/2048']['message'] or ''), 'halved: %s' % looked['halved/2048']['message'])
told(t['bound'] == 'memory', 'triad is bound by %s' % t['bound'])
told(abs(c['again']['l2_hit_pct'] - 87.5) <= 5, 'again: %.1f %% of L2 hits, of 87.5' % c['again']['l2_hit_pct'])
told(c['conflicts/1']['bank_conflicts'] < 0.01 * c['conflicts/32']['bank_conflicts'],
     'conflicts: %d without, %d with' % (c['conflicts/1']['bank_conflicts'], c['conflicts/32']['bank_conflicts']))
told(abs(c['chains']['occupancy_pct'] - 12.5) <= 5, 'chains: %.1f %% of the warps, of 12.5' % c['chains']['occupancy_pct'])
for name, r in looked.items():
    if r['cache'] == 'cold':
        told(c[name]['evicted_pct'] >= 90, '%s: after the eviction, %.1f %% of the L2 contents came from DRAM' % (name, c[name]['evicted_pct']))
level = c['triad/2048']
told(abs(level['intensity_dram'] * level['dram_bytes'] / t['flops'] - 1) < 1e-9 and level['intensity_l2'] < level['intensity_dram'],
     'triad: %.3g operations a byte of L2, %.3g of DRAM' % (level['intensity_l2'], level['intensity_dram']))
# profiling does not change the timed samples, because they are measured in processes that never load CUPTI
for name, r in looked.items():
    a, b = r['time_ms'], plain[name]['time_ms']
    near = max(0.01 * b, 3 * (r['precision'] * a + plain[name]['precision'] * b))
    told(abs(a - b) <= near, '%s: %.6f ms with profiling, %.6f ms without' % (name, a, b))
