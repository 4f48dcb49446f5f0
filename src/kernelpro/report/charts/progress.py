"""The best-so-far curve: every attempt by order and speed-up, and where the winner came from."""

from __future__ import annotations

from kernelpro.report.charts.scales import Scale, padded, ratio_ticks
from kernelpro.report.charts.svg import label, line, polyline, svg
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import times
from kernelpro.views.progress_view import ProgressPoint
from kernelpro.views.thinning import thinned
from kernelpro.views.words import status_word

MAX_POINTS = 900
"""Marks in a figure: more than pixels can tell apart."""


def progress_chart(
    points: tuple[ProgressPoint, ...], compile_speedup: float | None, width: int, *,
    href: str = "#{}",
) -> Markup:  # fmt: skip
    """The curve; beyond ``MAX_POINTS`` attempts, those that make the picture."""
    height, left, right, top, lane = 380, 44, 16, 16, 40
    count = len(points)
    accepted = [p.speedup for p in points if p.speedup is not None]
    low, high = padded([*accepted, 1.0, compile_speedup or 1.0], 1.18)
    x = Scale(0.5, max(count, 2) + 0.5, left, width - right)
    y = Scale(low, high, height - lane - 30, top, log=True)
    shown = drawn_points(points)
    drawn = [
        *_ratio_grid(y, left, width - right),
        line(left, y(1.0), width - right, y(1.0), "rule-strong"),
        label(width - right, y(1.0) - 6, "eager PyTorch", "note", "end"),
        _compile_rule(y, compile_speedup, left, width - right),
        _lineage(points, x, y),
        [_attempt(p, x(p.order), y(p.speedup) if p.speedup else height - lane, href)
         for p in shown if not p.on_best_path],
        _best_line(points, x, y),
        [_attempt(p, x(p.order), y(p.speedup) if p.speedup else height - lane, href)
         for p in shown if p.on_best_path],
        label(left - 8, height - lane + 4, "fail", "tick", "end"),
        [label(x(k), height - 8, str(k), "tick", "middle") for k in _order_ticks(count)],
    ]  # fmt: skip
    best = max(accepted, default=None)
    text = f"Speed-up of {count} attempts in order of evaluation" + (
        f"; the best reached {times(best)} over eager." if best else "; none was accepted."
    )
    return svg(width, height, text, drawn, links=True)


def drawn_points(points: tuple[ProgressPoint, ...]) -> tuple[ProgressPoint, ...]:
    """At most about ``MAX_POINTS`` of them."""
    return thinned(points, MAX_POINTS, value=lambda p: p.speedup,
                   keep=lambda p: p.improved or p.on_best_path)  # fmt: skip


def _ratio_grid(y: Scale, left: float, right: float) -> list[Markup]:
    return [
        part
        for tick in ratio_ticks(y.low, y.high)
        for part in (
            line(left, y(tick), right, y(tick), "grid"),
            label(left - 8, y(tick) + 4, f"{tick:g}×", "tick", "end"),
        )
    ]


def _compile_rule(y: Scale, speedup: float | None, left: float, right: float) -> list[Markup]:
    if speedup is None:
        return []
    return [
        line(left, y(speedup), right, y(speedup), "rule-dashed"),
        label(right, y(speedup) - 6, f"torch.compile {times(speedup)}", "note", "end"),
    ]


def _best_line(points: tuple[ProgressPoint, ...], x: Scale, y: Scale) -> Markup | None:
    corners: list[tuple[float, float]] = []
    for point in points:
        if point.best is None:
            continue
        if corners and point.improved:
            corners.append((x(point.order), corners[-1][1]))
        corners.append((x(point.order), y(point.best)))
    return polyline(corners, "best-line") if len(corners) > 1 else None


def _lineage(points: tuple[ProgressPoint, ...], x: Scale, y: Scale) -> Markup | None:
    steps = [(x(p.order), y(p.speedup)) for p in points if p.on_best_path and p.speedup]
    return polyline(steps, "lineage") if len(steps) > 1 else None


def _attempt(point: ProgressPoint, x: float, y: float, href: str) -> Markup:
    verdict = times(point.speedup) if point.speedup else status_word(point.status)
    if point.speedup is None:
        shape = element("path", d=f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6", class_="failed")
    else:
        shape = element("circle", cx=x, cy=y, r=5 if point.on_best_path else 3.2,
                        class_="dot on-path" if point.on_best_path else "dot")  # fmt: skip
    hit = element("circle", cx=x, cy=y, r=9, class_="hit")
    said = f"{point.node_id}: {verdict}"
    return element("a", element("title", said), shape, hit, aria_label=said,
                   href=href.format(point.node_id), tabindex=-1)  # fmt: skip


def _order_ticks(count: int) -> list[int]:
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
                 if count / s <= 10), 5000)  # fmt: skip
    return list(range(step, count + 1, step)) or [1]
