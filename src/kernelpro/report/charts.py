"""Charts of the whole run as SVG: best-so-far curve, roofline, and the tree of attempts.

Each takes a width in CSS pixels, so that type keeps its size on a phone. Colours are classes of
the style sheet; nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.scales import Scale, decade_ticks, padded, ratio_ticks
from kernelpro.report.words import STATUS_SHORT, duration, times
from kernelpro.text import format_si
from kernelpro.views.progress_view import ProgressPoint
from kernelpro.views.roofline_view import RooflinePoint, RooflineView
from kernelpro.views.tree_view import TreeNode, TreeView
from kernelpro.views.words import plain, status_word

WIDE, FULL, NARROW = 834, 1100, 350
"""Widths at which charts are drawn: text column and whole page on a desktop, and a phone."""


def responsive(draw: Callable[[int], Markup], wide: int = WIDE) -> Markup:
    """The chart at both widths; the style sheet shows the one that fits."""
    return element(
        "div",
        element("div", draw(wide), class_="wide"),
        element("div", draw(NARROW), class_="narrow"),
        class_="chart",
    )


def svg(width: float, height: float, label: str, *children: Child) -> Markup:
    """A chart with its text alternative."""
    return element("svg", element("title", label), *children, viewbox=f"0 0 {width} {height}",
                   width=width, height=height, role="img", aria_label=label)  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def label(x: float, y: float, text: str, class_: str = "tick", anchor: str = "start") -> Markup:
    """Text at a point."""
    return element("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def polyline(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """A line through ``points``."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return element("path", d=path, class_=class_)


def progress_chart(
    points: tuple[ProgressPoint, ...], compile_speedup: float | None, width: int
) -> Markup:
    """Every attempt by order and speed-up, the best so far, and where the winner came from."""
    height, left, right, top, lane = 380, 44, 16, 16, 40
    accepted = [p.speedup for p in points if p.speedup is not None]
    low, high = padded([*accepted, 1.0, compile_speedup or 1.0], 1.18)
    x = Scale(0.5, max(len(points), 2) + 0.5, left, width - right)
    y = Scale(low, high, height - lane - 30, top, log=True)
    drawn = [
        *_ratio_grid(y, left, width - right),
        line(left, y(1.0), width - right, y(1.0), "rule-strong"),
        label(width - right, y(1.0) - 6, "eager PyTorch", "note", "end"),
        _compile_rule(y, compile_speedup, left, width - right),
        _best_line(points, x, y),
        _lineage(points, x, y),
        [_attempt(p, x(p.order), y(p.speedup) if p.speedup else height - lane) for p in points],
        label(left - 8, height - lane + 4, "fail", "tick", "end"),
        [label(x(k), height - 8, str(k), "tick", "middle") for k in _order_ticks(len(points))],
    ]
    best = max(accepted, default=None)
    text = f"Speed-up of {len(points)} attempts in order of evaluation" + (
        f"; the best reached {times(best)} over eager." if best else "; none was accepted."
    )
    return svg(width, height, text, drawn)


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


def _attempt(point: ProgressPoint, x: float, y: float) -> Markup:
    verdict = times(point.speedup) if point.speedup else status_word(point.status)
    if point.speedup is None:
        shape = element("path", d=f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6", class_="failed")
    else:
        shape = element("circle", cx=x, cy=y, r=5 if point.on_best_path else 3.2,
                        class_="dot on-path" if point.on_best_path else "dot")  # fmt: skip
    hit = element("circle", cx=x, cy=y, r=9, class_="hit")
    return element("a", element("title", f"{point.node_id}: {verdict}"), shape, hit,
                   href=f"#{point.node_id}", tabindex=-1)  # fmt: skip


def _order_ticks(count: int) -> list[int]:
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if count / s <= 10), 1000)
    return list(range(step, count + 1, step)) or [1]


def roofline_chart(view: RooflineView, width: int) -> Markup:
    """Ceilings, and every version on the problem's own intensity."""
    height, left, right, top, bottom = 420, 62, 20, 20, 44
    rates = [p.flops_per_s for p in view.points] or [view.attainable]
    low_x = min(view.intensity, view.ridge) / 12
    x = Scale(low_x, max(view.intensity, view.ridge) * 12, left, width - right, log=True)
    y = Scale(min(*rates, view.attainable) / 4, view.peak_flops * 2.2, height - bottom, top,
              log=True)  # fmt: skip
    at = x(view.intensity)
    drawn = [
        [part for t in decade_ticks(x.low, x.high) for part in (
            line(x(t), top, x(t), height - bottom, "grid"),
            label(x(t), height - bottom + 18, f"{t:g}", "tick", "middle"))],
        [part for t in decade_ticks(y.low, y.high) for part in (
            line(left, y(t), width - right, y(t), "grid"),
            label(left - 8, y(t) + 4, format_si(t, "", 4), "tick", "end"))],
        label(width - right, height - 6, "FLOP per byte of compulsory traffic", "note", "end"),
        label(left, top - 6, "FLOP/s", "note"),
        _roof(view, x, y),
        line(at, y(view.attainable), at, height - bottom, "rule-dashed"),
        [_rung(p, at, y(p.flops_per_s)) for p in view.points if p.kind != "best"],
        [_rung(p, at, y(p.flops_per_s)) for p in view.points if p.kind == "best"],
        _rung_labels(view, at, y),
    ]  # fmt: skip
    best = next((p for p in view.points if p.kind == "best"), None)
    text = f"Roofline: the problem is {view.bound}-bound on this device" + (
        f"; the best kernel reaches {best.share:.0%} of the attainable rate." if best else "."
    )
    return svg(width, height, text, drawn)


def _roof(view: RooflineView, x: Scale, y: Scale) -> list[Markup]:
    drawn = []
    ceilings = [("memory", view.bandwidth, "roof")]
    if view.cache_bandwidth:
        ceilings.append(("cache", view.cache_bandwidth, "roof-cache"))
    for name, bandwidth, class_ in ceilings:
        ridge = min(view.peak_flops / bandwidth, x.high)
        start = max(x.low, y.low / bandwidth)
        corners = [(x(start), y(start * bandwidth)), (x(ridge), y(ridge * bandwidth))]
        if name == "memory":
            corners.append((x(x.high), y(view.peak_flops)))
        drawn.append(polyline(corners, class_))
        slope = math.degrees(math.atan2(corners[1][1] - corners[0][1],
                                        corners[1][0] - corners[0][0]))  # fmt: skip
        along = 0.08
        px = corners[0][0] + along * (corners[1][0] - corners[0][0])
        py = corners[0][1] + along * (corners[1][1] - corners[0][1]) - 7
        drawn.append(
            element("text", f"{name} {format_si(bandwidth, 'B/s', 3)}", x=px, y=py, class_="note",
                    transform=f"rotate({slope:.1f} {px:.1f} {py:.1f})")
        )  # fmt: skip
    peak = f"{view.peak_name} peak {format_si(view.peak_flops, 'FLOP/s', 3)}"
    drawn.append(label(x.end, y(view.peak_flops) - 8, peak, "note", "end"))
    return drawn


def _rung(point: RooflinePoint, x: float, y: float) -> Markup:
    reach = {"baseline": 13.0, "candidate": 6.0, "path": 9.0, "best": 15.0}[point.kind]
    title = f"{point.name}: {duration(point.latency_us)}, {point.share:.0%} of attainable"
    if point.kind == "best":
        mark = element("circle", cx=x, cy=y, r=6, class_="rung-best")
    else:
        mark = line(x - reach, y, x + reach, y, f"rung-{point.kind}")
    if point.kind == "baseline":
        return element("g", element("title", title), mark)
    return element("a", element("title", title), mark, href=f"#{point.name}", tabindex=-1)


def _rung_labels(view: RooflineView, x: float, y: Scale) -> list[Markup]:
    named = [(y(view.attainable), f"attainable {duration(view.floor_us)}", "note strong")]
    for point in view.points:
        if point.kind in {"baseline", "best"}:
            name = {"eager": "eager", "compile": "torch.compile"}.get(point.name, point.name)
            text = f"{name} {duration(point.latency_us)} · {point.share:.0%}"
            named.append(
                (y(point.flops_per_s), text, "note best" if point.kind == "best" else "note")
            )
    named.sort()
    drawn, last = [], -math.inf
    for at, text, class_ in named:
        last = max(at, last + 17)
        drawn.append(label(x + 22, last + 4, text, class_))
    return drawn


PILL_WIDTH, PILL_HEIGHT, COLUMN, ROW = 84, 22, 108, 29


def tree_chart(view: TreeView) -> Markup:
    """The tree from left to right; every node is a link to its details."""
    width = view.columns * COLUMN - (COLUMN - PILL_WIDTH) + 4
    height = view.rows * ROW + 4
    by_id = {node.id: node for node in view.nodes}
    edges = [(by_id[n.parent_id], n) for n in view.nodes if n.parent_id in by_id]
    edges.sort(key=lambda edge: edge[1].on_best_path)
    best = max((n.speedup for n in view.nodes if n.speedup), default=1.0)
    low = min((n.speedup for n in view.nodes if n.speedup), default=1.0)
    return element(
        "svg",
        [_edge(parent, child) for parent, child in edges],
        [_pill(node, low, best) for node in view.nodes],
        viewbox=f"0 0 {width} {height}", width=width, height=height, class_="tree",
        role="group", aria_label=f"Tree of {len(view.nodes)} attempts",
    )  # fmt: skip


def _corner(node: TreeNode) -> tuple[float, float]:
    return node.depth * COLUMN + 2, node.row * ROW + 2


def _edge(parent: TreeNode, child: TreeNode) -> Markup:
    (px, py), (cx, cy) = _corner(parent), _corner(child)
    x0, y0, y1 = px + PILL_WIDTH, py + PILL_HEIGHT / 2, cy + PILL_HEIGHT / 2
    middle = (x0 + cx) / 2
    path = f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {cx:.1f} {y1:.1f}"
    return element("path", d=path, class_="edge on-path" if child.on_best_path else "edge")


def _pill(node: TreeNode, low: float, best: float) -> Markup:
    x, y = _corner(node)
    if node.speedup is not None:
        verdict, spoken = times(node.speedup), times(node.speedup)
        classes = f"pill heat-{heat(node.speedup, low, best)}"
    else:
        verdict, spoken = (
            "✕ " + STATUS_SHORT[node.status] if node.status else "?",
            status_word(node.status),
        )
        classes = "pill pill-failed"
    if node.duplicate_of:
        classes += " pill-duplicate"
    if node.is_best:
        classes += " pill-best"
    same = f", same source as {node.duplicate_of}" if node.duplicate_of else ""
    name = f"{node.id}, {spoken}{same}: {node.title}"
    return element(
        "a",
        element("title", name),
        element("rect", x=x, y=y, width=PILL_WIDTH, height=PILL_HEIGHT, rx=4),
        label(x + 7, y + 15, node.id.removeprefix("n").lstrip("0") or node.id, "pill-id"),
        label(x + PILL_WIDTH - 7, y + 15, verdict, "pill-verdict", "end"),
        href=f"#{node.id}", class_=classes, aria_label=name,
    )  # fmt: skip


def heat(speedup: float, low: float, high: float) -> int:
    """0 (slowest accepted) to 5 (fastest) on a log scale."""
    if high <= low:
        return 5
    return min(5, int(6 * math.log(speedup / low) / math.log(high / low)))


def path_words(names: Iterable[str]) -> str:
    """Stable ids as a readable list."""
    return ", ".join(plain(name) for name in names)
