"""Speed against energy, with the attempts that no other beats in both."""

from __future__ import annotations

from kernelpro.report.charts.scales import Scale, padded, ratio_ticks
from kernelpro.report.charts.svg import label, line, polyline, svg
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import times
from kernelpro.text import format_si
from kernelpro.views.energy_view import EnergyPoint, EnergyView
from kernelpro.views.thinning import thinned

MAX_POINTS = 900


def energy_chart(view: EnergyView, width: int, *, href: str = "#{}") -> Markup:
    """Up is less energy per call, right is faster: the front is the upper right edge."""
    height, left, right, top, bottom = 380, 66, 16, 24, 44
    energies = [p.energy_j for p in view.points]
    low_y, high_y = padded([*energies, view.baseline_j or energies[0]], 1.12)
    low_x, high_x = padded([*(p.speedup for p in view.points), 1.0], 1.12)
    x = Scale(low_x, high_x, left, width - right, log=True)
    y = Scale(low_y, high_y, top, height - bottom, log=True)
    front = sorted((p for p in view.points if p.on_front), key=lambda p: p.speedup)
    shown = thinned(view.points, MAX_POINTS, value=lambda p: p.energy_j,
                    keep=lambda p: p.on_front or p.is_best)  # fmt: skip
    drawn = [
        [part for t in ratio_ticks(x.low, x.high) for part in (
            line(x(t), top, x(t), height - bottom, "grid"),
            label(x(t), height - bottom + 18, f"{t:g}×", "tick", "middle"))],
        [part for e in (low_y, (low_y * high_y) ** 0.5, high_y) for part in (
            line(left, y(e), width - right, y(e), "grid"),
            label(left - 8, y(e) + 4, format_si(e, "J"), "tick", "end"))],
        label(width - right, height - 6, "speed-up over eager", "note", "end"),
        label(left, top - 10, "energy per call, less is higher", "note"),
        polyline([(x(p.speedup), y(p.energy_j)) for p in front], "front")
        if len(front) > 1 else None,
        _eager(view, x, y),
        [_point(p, x(p.speedup), y(p.energy_j), href) for p in shown],
    ]  # fmt: skip
    spoken = (f"Energy per call against speed-up of {len(view.points)} attempts; {len(front)} are "
              "beaten by no other in both.")  # fmt: skip
    return svg(width, height, spoken, drawn, links=True)


def _eager(view: EnergyView, x: Scale, y: Scale) -> Markup | None:
    if view.baseline_j is None:
        return None
    at, level = x(1.0), y(view.baseline_j)
    return element("g", line(at - 7, level, at + 7, level, "rung-baseline"),
                   label(at + 12, level + 4, "eager", "note"))  # fmt: skip


def _point(point: EnergyPoint, x: float, y: float, href: str) -> Markup:
    title = f"{point.node_id}: {times(point.speedup)}, {format_si(point.energy_j, 'J')}"
    class_ = "rung-best" if point.is_best else "dot on-path" if point.on_front else "dot"
    mark = element("circle", cx=x, cy=y, r=6 if point.is_best else 4 if point.on_front else 3,
                   class_=class_)  # fmt: skip
    return element("a", element("title", title), mark, href=href.format(point.node_id), tabindex=-1,
                   aria_label=title)  # fmt: skip
