"""How far corrected times are from CUPTI's durations: accuracy.py cold.json cupti_cold.json hot.json cupti_hot.json

Bar: within max(0.15 us, 1 %) for every kernel; aim: max(0.10 us, 0.5 %). Exit code 1 when the bar is missed."""
import json
import sys

times = [{r["name"]: r for r in json.load(open(f))} for f in sys.argv[1:5]]
missed = aimed = worst = 0
print(f"{'kernel':34} {'cold us':>9} {'CUPTI':>9} {'error':>7} {'hot us':>9} {'CUPTI':>9} {'error':>7}")
for name in times[0]:
    line = f"{name.replace('/impl=one', '').replace('/impl=default', ''):34}"
    for got, want in ((times[0], times[1]), (times[2], times[3])):
        t, c = got[name]["time_ms"], want[name]["time_ms"]
        if t is None or c is None:
            line += "   no number"
            missed += 1
            continue
        t, c = 1000 * t, 1000 * c
        share = abs(t - c) / max(0.15, 0.01 * c)
        worst = max(worst, share)
        missed += share > 1
        aimed += abs(t - c) <= max(0.10, 0.005 * c)
        line += f" {t:9.3f} {c:9.3f} {t - c:+7.3f}{'!' if share > 1 else ' '}"
    print(line)
n = 2 * len(times[0])
print(f"{n - missed} of {n} within max(0.15 us, 1 %), {aimed} within max(0.10 us, 0.5 %); worst {worst:.2f} of the bar")
sys.exit(missed > 0)
