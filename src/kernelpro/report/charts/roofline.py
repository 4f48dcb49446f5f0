"""The roofline: ceilings, every version at the problem's intensity, the path of the best."""

from __future__ import annotations

import math

from kernelpro.report.charts.scales import Scale, decade_ticks
from kernelpro.report.charts.svg import label, line, polyline, svg
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import duration
from kernelpro.text import format_si
from kernelpro.views.roofline_view import RooflinePoint, RooflineView
from kernelpro.views.thinning import thinned

MAX_POINTS = 500
"""Candidates drawn: more than pixels can tell apart."""
EDGE = 10
"""Pixels kept free at both ends of the candidates' band."""
RADIUS = {"candidate": 3.0, "path": 4.0, "best": 6.0}


def roofline_chart(view: RooflineView, width: int, *, href: str = "#{}") -> Markup:
    """Ceilings, and every version at the problem's own intensity.

    All versions do the same work, so they share one abscissa: candidates are spread to the right
    of it, in order of evaluation, so that they do not hide each other.
    """
    height, left, right, top, bottom = 420, 62, 20, 20, 44
    rates = [p.flops_per_s for p in view.points] or [view.attainable]
    low_x = min(view.intensity, view.ridge) / 12
    x = Scale(low_x, max(view.intensity, view.ridge) * 12, left, width - right, log=True)
    y = Scale(min(*rates, view.attainable) / 4, view.peak_flops * 2.2, height - bottom, top,
              log=True)  # fmt: skip
    at, band = x(view.intensity), min(150.0, (width - left) * 0.17)
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
        line(at, y(view.attainable), at + band, y(view.attainable), "rule-dashed"),
        _candidates(view, at, band, y, href),
        _labels(view, at + band + 8, y, short=width < 500),
    ]  # fmt: skip
    best = next((p for p in view.points if p.kind == "best"), None)
    text = f"Roofline: the problem is {view.bound}-bound on this device" + (
        f"; the best kernel reaches {best.share:.0%} of the attainable rate." if best else "."
    )
    return svg(width, height, text, drawn, links=True)


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


def _candidates(
    view: RooflineView, at: float, band: float, y: Scale, href: str
) -> list[Markup | None]:
    """Baselines as bars across the band, candidates as dots, the best and its ancestors joined."""
    baselines = [p for p in view.points if p.kind == "baseline"]
    tried = [p for p in view.points if p.kind != "baseline"]
    step = (band - 2 * EDGE) / max(1, len(tried) - 1)
    place = {p.name: (at + EDGE + k * step, y(p.flops_per_s))
             for k, p in enumerate(tried)}  # fmt: skip
    path = [place[p.name] for p in tried if p.kind in {"path", "best"}]
    shown = thinned(tried, MAX_POINTS, value=lambda p: p.flops_per_s,
                    keep=lambda p: p.kind != "candidate")  # fmt: skip
    return [
        *(element("g", element("title", _spoken(p)),
                  line(at, y(p.flops_per_s), at + band, y(p.flops_per_s),
                       "rung-baseline")) for p in baselines),
        polyline(path, "roof-path") if len(path) > 1 else None,
        *(_dot(p, *place[p.name], href) for p in shown if p.kind != "best"),
        *(_dot(p, *place[p.name], href) for p in shown if p.kind == "best"),
    ]  # fmt: skip


def _dot(point: RooflinePoint, x: float, y: float, href: str) -> Markup:
    said = _spoken(point)
    return element("a", element("title", said),
                   element("circle", cx=x, cy=y, r=RADIUS[point.kind],
                           class_=f"rung-{point.kind}"),
                   href=href.format(point.name), tabindex=-1, aria_label=said)  # fmt: skip


def _spoken(point: RooflinePoint) -> str:
    return f"{point.name}: {duration(point.latency_us)}, {point.share:.0%} of attainable"


def _labels(view: RooflineView, x: float, y: Scale, *, short: bool) -> list[Markup]:
    named = [(y(view.attainable), f"attainable {duration(view.floor_us)}", "note strong")]
    for point in view.points:
        if point.kind in {"baseline", "best"}:
            name = "torch.compile" if point.name == "compile" and not short else point.name
            text = f"{name} {duration(point.latency_us)}"
            text += "" if short else f" · {point.share:.0%}"
            named.append(
                (y(point.flops_per_s), text, "note best" if point.kind == "best" else "note")
            )
    named.sort()
    drawn, last = [], -math.inf
    for at, text, class_ in named:
        last = max(at, last + 17)
        drawn.append(label(x, last + 4, text, class_))
    return drawn
