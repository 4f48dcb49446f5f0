"""The two pictures of an ablation: best so far against evaluations, and performance profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelpro.bench.ablation import Trial
from kernelpro.bench.comparison import common_pairs
from kernelpro.bench.statistics import geometric_mean, performance_profile
from kernelpro.report.charts.scales import Scale, padded, ratio_ticks
from kernelpro.report.charts.svg import WIDE, label, line, svg
from kernelpro.report.figures import standalone
from kernelpro.report.markup import Markup, element

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400.0, 48.0, 150.0, 20.0, 40.0
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 2 2 2 2")
"""Line patterns, so that no arm is told by colour alone."""
FACTORS = tuple(1.0 + 0.02 * k for k in range(51))
"""Distances from the best arm at which profiles are drawn: up to twice as slow."""
LABEL_GAP = 15.0


def best_so_far(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Geometric mean over the common pairs after each evaluation, by arm.

    A run that ended early keeps what it had.
    """
    by_arm = common_pairs(trials)
    length = max(len(t.best_so_far) for found in by_arm.values() for t in found)
    return {
        arm: [geometric_mean([_held(t, at) for t in found]) for at in range(length)]
        for arm, found in by_arm.items()
    }


def best_so_far_figure(trials: Sequence[Trial]) -> str:
    """SVG text: what each arm's best candidate was worth after so many evaluations."""
    curves = best_so_far(trials)
    count = max(len(curve) for curve in curves.values())
    low, high = padded([v for curve in curves.values() for v in curve], 1.06)
    x = Scale(1, max(2, count), LEFT, WIDE - RIGHT)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP, log=True)
    ticks = sorted({1, *range(6, count + 1, 6), count})
    drawn = [
        *_grid([(y(t), f"{t:g}×") for t in _levels(low, high)]),
        *(label(x(t), HEIGHT - BOTTOM + 18, str(t), "tick", "middle") for t in ticks),
        label(LEFT, HEIGHT - 4, "evaluations", "note"),
        *_series({arm: [(x(i), y(v)) for i, v in enumerate(c, start=1)]
                  for arm, c in curves.items()}),
    ]  # fmt: skip
    spoken = "Geometric mean of the best speed-up so far against evaluations: " + "; ".join(
        f"{arm} ends at {curve[-1]:.3g}×" for arm, curve in curves.items()
    )
    return standalone(svg(WIDE, HEIGHT, spoken, *drawn))


def profile_figure(trials: Sequence[Trial]) -> str:
    """SVG text: share of the pairs in which an arm's result is within a factor of the best."""
    finals = {arm: [t.final for t in found] for arm, found in common_pairs(trials).items()}
    profiles = performance_profile(finals, FACTORS)
    x = Scale(FACTORS[0], FACTORS[-1], LEFT, WIDE - RIGHT)
    y = Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    drawn = [
        *_grid([(y(s), f"{s:.0%}") for s in (0.0, 0.25, 0.5, 0.75, 1.0)]),
        *(label(x(f), HEIGHT - BOTTOM + 18, f"{f:.2g}", "tick", "middle")
          for f in (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)),
        label(LEFT, HEIGHT - 4, "at most so many times slower than the best arm", "note"),
        *_series({arm: [(x(f), y(s)) for f, s in zip(FACTORS, shares, strict=True)]
                  for arm, shares in profiles.items()}),
    ]  # fmt: skip
    spoken = "Performance profile: " + "; ".join(
        f"{arm} is best in {shares[0]:.0%} of the pairs" for arm, shares in profiles.items()
    )
    return standalone(svg(WIDE, HEIGHT, spoken, *drawn))


def _levels(low: float, high: float) -> tuple[float, ...]:
    """Ticks of the speed-up axis: tenths where the usual ratios are too far apart."""
    ticks = ratio_ticks(low, high)
    if len(ticks) >= 3:
        return ticks
    return tuple(k / 10 for k in range(math.ceil(low * 10), math.floor(high * 10) + 1))


def _held(trial: Trial, at: int) -> float:
    """Best speed-up after evaluation ``at`` (from 0); 1.0 if there was none."""
    if not trial.best_so_far:
        return 1.0
    return max(1.0, trial.best_so_far[min(at, len(trial.best_so_far) - 1)])


def _grid(levels: Sequence[tuple[float, str]]) -> list[Markup]:
    return [
        part
        for y, text in levels
        for part in (line(LEFT, y, WIDE - RIGHT, y, "grid"),
                     label(LEFT - 8, y + 4, text, "tick", "end"))
    ]  # fmt: skip


def _series(curves: dict[str, list[tuple[float, float]]]) -> list[Markup]:
    """Lines with their names at the right end, moved apart where they would overlap."""
    drawn = []
    for place, (arm, points) in enumerate(curves.items()):
        path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
        dash = DASHES[place % len(DASHES)]
        drawn.append(element("path", element("title", arm), d=path, stroke_dasharray=dash or None,
                             class_="best-line" if place == 0 else "roof"))  # fmt: skip
    below = -LABEL_GAP
    for place, arm in sorted(enumerate(curves), key=lambda item: curves[item[1]][-1][1]):
        end_x, end_y = curves[arm][-1]
        below = max(end_y + 4, below + LABEL_GAP)
        dash = DASHES[place % len(DASHES)]
        drawn.append(element("path", d=f"M{end_x + 6:.1f} {below - 4:.1f}h22",
                             stroke_dasharray=dash or None,
                             class_="best-line" if place == 0 else "roof"))  # fmt: skip
        drawn.append(label(end_x + 34, below, arm, "note best" if place == 0 else "note strong"))
    return drawn
