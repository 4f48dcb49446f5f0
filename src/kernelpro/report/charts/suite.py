"""The distribution of a suite's speed-ups: every run in order, with median, quartiles, geomean."""

from __future__ import annotations

from kernelpro.report.charts.scales import Scale, padded, ratio_ticks
from kernelpro.report.charts.svg import label, line, svg
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import times
from kernelpro.views.suite_view import Spread, SuiteRow, SuiteView


def suite_chart(view: SuiteView, width: int, *, href: str = "#{}") -> Markup:
    """Runs from slowest to fastest; the band holds the middle half of those that count."""
    height, left, right, top, bottom = 380, 44, 16, 16, 34
    solved = [row for row in reversed(view.rows) if row.speedup is not None]
    low, high = padded([*(r.speedup or 1.0 for r in solved), 1.0], 1.2)
    x = Scale(0.5, max(len(solved), 2) + 0.5, left, width - right)
    y = Scale(low, high, height - bottom, top, log=True)
    drawn = [
        _spread(view.over_eager, y, left, width - right) if view.over_eager else None,
        [part for t in ratio_ticks(low, high) for part in (
            line(left, y(t), width - right, y(t), "grid"),
            label(left - 8, y(t) + 4, f"{t:g}×", "tick", "end"))],
        line(left, y(1.0), width - right, y(1.0), "rule-strong"),
        label(width - right, y(1.0) - 6, "eager PyTorch", "note", "end"),
        [_run(row, x(k), y(row.speedup or 1.0), href) for k, row in enumerate(solved, start=1)],
        label(left, height - 8, "slowest", "tick"),
        label(width - right, height - 8, "fastest", "tick", "end"),
    ]  # fmt: skip
    spoken = f"Speed-up over eager of {len(solved)} runs, slowest to fastest."
    if view.over_eager:
        spoken += f" Geometric mean {times(view.over_eager.geomean)}."
    return svg(width, height, spoken, drawn, links=True)


def _spread(spread: Spread, y: Scale, left: float, right: float) -> list[Markup]:
    low, high = spread.quartiles
    return [
        element("rect", x=left, y=y(high), width=right - left, height=max(1.0, y(low) - y(high)),
                class_="quartiles"),
        line(left, y(spread.median), right, y(spread.median), "rule-dashed"),
        line(left, y(spread.geomean), right, y(spread.geomean), "geomean"),
        label(left + 8, y(spread.geomean) - 6, f"geometric mean {times(spread.geomean)}",
              "note best"),
    ]  # fmt: skip


def _run(row: SuiteRow, x: float, y: float, href: str) -> Markup:
    flagged = f", flagged: {', '.join(row.labels)}" if row.labels else ""
    title = f"{row.problem} ({row.name}): {times(row.speedup or 1.0)}{flagged}"
    kind = "flagged" if row.labels else "below" if (row.speedup or 1.0) < 1.0 else "on-path"
    return element("a", element("title", title),
                   element("circle", cx=x, cy=y, r=5, class_=f"dot {kind}"),
                   element("circle", cx=x, cy=y, r=10, class_="hit"),
                   href=href.format(row.name), aria_label=title)  # fmt: skip
