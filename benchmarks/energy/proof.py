"""What a trace of ``h200.py`` proves or not: ladders, repeatability, equal and unequal kernels.

Pure arithmetic on a stored trace; every figure of the report can be had again from the file.
"""

from __future__ import annotations

import random
import re
import statistics
from typing import Any

from kernelpro.energy.meter import idle_watts, summarise, summarise_pair
from kernelpro.energy.statistics import line
from kernelpro.energy.trace import Trace
from kernelpro.energy.windows import SETTLE_S, unaligned_joules, window_power

SHORT_S = 0.1
"""The naive window of the demonstration: one look before and one after 100 ms."""
DRAWS = 200


def report_of(trace: Trace) -> dict[str, Any]:
    """Every figure that the labels in ``trace`` allow."""
    labels = list(dict.fromkeys(window.label for window in trace.windows))
    return {
        "meter": trace.meter, "device": trace.device, "power_limit_w": trace.power_limit_w,
        "idle_w": idle_watts(trace),
        "windows": len(trace.windows),
        "measured": {label: measured(trace, label) for label in labels
                     if label != "idle" and not label.startswith(("warm:", "short:"))},
        "ladders": {name: ladder(trace, name) for name in families(labels, "ladder")},
        "repeatability": {name: repeats(trace, name) for name in families(labels, "repeat")},
        "pairs": {name: pair(trace, name) for name in families(labels, "pair")},
        "short_windows": short_windows(trace),
    }  # fmt: skip


def families(labels: list[str], kind: str) -> list[str]:
    """Names between ``kind:`` and the last colon, in order."""
    found = (re.fullmatch(rf"{kind}:(.+):[^:]+", label) for label in labels)
    return list(dict.fromkeys(match[1] for match in found if match))


def measured(trace: Trace, label: str) -> dict[str, Any] | str:
    """Joules of one launch, with what was observed beside it."""
    found = summarise(trace, label)
    if isinstance(found, str):
        return found
    return {
        "joules": found.joules.value, "ci95": [found.joules.low, found.joules.high],
        "dynamic_joules": found.dynamic_joules.value if found.dynamic_joules else None,
        "watts": found.watts, "us_per_launch": 1e6 * found.seconds_per_launch,
        "sampled_over_counter": found.sampled_ratio, "sm_clock_mhz": found.sm_clock_mhz,
        "temperature_c": found.temperature_c, "power_limited": found.power_limited,
        "windows": list(found.windows),
    }  # fmt: skip


def ladder(trace: Trace, name: str) -> dict[str, Any] | str:
    """Is energy proportional to work? The label's last part is the amount of work."""
    rungs = sorted({int(w.label.rsplit(":", 1)[1]) for w in trace.windows
                    if w.label.startswith(f"ladder:{name}:")})  # fmt: skip
    found = [summarise(trace, f"ladder:{name}:{rung}") for rung in rungs]
    joules = [one.joules.value for one in found if not isinstance(one, str)]
    if len(joules) != len(rungs) or len(rungs) < 3:
        return "a rung was not measured"
    fit = line(rungs, joules)
    per_work = [value / rung for value, rung in zip(joules, rungs, strict=True)]
    return {
        "work": rungs, "joules": joules, "r_squared": fit.r_squared,
        "intercept_over_slope": fit.intercept / fit.slope,
        "worst_residual": fit.worst_residual_share,
        "spread_of_joules_per_work": max(per_work) / min(per_work) - 1.0,
    }  # fmt: skip


def repeats(trace: Trace, name: str) -> dict[str, Any] | str:
    """The same kernel again and again: coefficient of variation over the measurements."""
    labels = sorted({w.label for w in trace.windows if w.label.startswith(f"repeat:{name}:")},
                    key=lambda label: int(label.rsplit(":", 1)[1]))  # fmt: skip
    found = [summarise(trace, label) for label in labels]
    values = [one.joules.value for one in found if not isinstance(one, str)]
    if len(values) != len(labels) or len(values) < 2:
        return "a measurement failed"
    starts = [trace.of(label)[0].start_s for label in labels]
    return {
        "joules": values, "minutes": [(s - starts[0]) / 60 for s in starts],
        "coefficient_of_variation": statistics.stdev(values) / statistics.fmean(values),
    }  # fmt: skip


def pair(trace: Trace, name: str) -> dict[str, Any] | str:
    """Labels ``pair:NAME:first`` and ``pair:NAME:second``, measured in turns."""
    found = summarise_pair(trace, f"pair:{name}:first", f"pair:{name}:second")
    if isinstance(found, str):
        return found
    return {
        key: {"ratio": value.ratio.value, "ci95": [value.ratio.low, value.ratio.high],
              "p_value": value.p_value, "significant": value.significant, "pairs": value.pairs}
        for key, value in (("energy", found.energy), ("time", found.time))
    }  # fmt: skip


def short_windows(trace: Trace) -> dict[str, Any]:
    """Error of reading the counter around 100 ms of a steady kernel, against the same window's
    edge-aligned power; and around 100 ms launched from idle (labels ``short:``)."""
    rng, steady = random.Random(0), list[float]()
    for window in trace.windows:
        power = window_power(trace, window) if window.launches else "idle"
        if isinstance(power, str) or window.label.startswith(("short:", "warm:")):
            continue
        for _ in range(max(1, DRAWS // len(trace.windows))):
            start = rng.uniform(window.start_s + SETTLE_S, window.end_s - SHORT_S)
            joules = unaligned_joules(trace, start, start + SHORT_S)
            if joules is not None:
                steady.append(joules / (power.watts * SHORT_S) - 1.0)
    from_idle = []
    for window in trace.windows:
        match = re.fullmatch(r"short:(.+):\d+", window.label)
        truth = summarise(trace, f"repeat:{match[1]}:1") if match else "other"
        joules = unaligned_joules(trace, window.start_s, window.end_s) if match else None
        if joules is not None and not isinstance(truth, str):
            from_idle.append(joules / (truth.joules.value * window.launches) - 1.0)
    return {"seconds": SHORT_S, "steady": spread(steady), "from_idle": spread(from_idle)}


def spread(errors: list[float]) -> dict[str, float] | None:
    """Median and worst error of a list; None if it is empty."""
    if not errors:
        return None
    sizes = sorted(abs(error) for error in errors)
    return {"median_error": statistics.median(sizes), "worst_error": sizes[-1],
            "share_wrong_by_a_third": sum(s > 1 / 3 for s in sizes) / len(sizes),
            "readings": len(sizes)}  # fmt: skip
