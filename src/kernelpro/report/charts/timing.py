"""Charts of the timing evidence: medians as bars, samples as distributions, rounds as dots."""

from __future__ import annotations

import statistics

from kernelpro.report.charts.scales import Scale, linear_ticks
from kernelpro.report.charts.svg import label, line, polyline, svg
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import duration, times
from kernelpro.views.latency_view import Distribution
from kernelpro.views.words import SIDE_WORD

RIDGE_HEIGHT = 36


def bar(share: float, class_: str, mark: float | None = None) -> Markup:
    """A bar that fills ``share`` of its box, with an optional tick at ``mark``."""
    tick = (
        element("rect", x=mark * 100 - 0.12, y=0, width=0.24, height=1, class_="bar-mark")
        if (mark is not None)
        else None
    )
    return element("svg", element("rect", x=0, y=0, width=share * 100, height=1, class_=class_),
                   tick, viewbox="0 0 100 1", preserveaspectratio="none", class_="bar",
                   aria_hidden="true")  # fmt: skip


def distributions_chart(sides: tuple[Distribution, ...], width: int) -> Markup:
    """Samples of every side on one axis that starts at zero."""
    row, top, left, right = 62, 8, 4, 20
    height = top + row * len(sides) + 30
    x = Scale(0.0, max(side.high_us for side in sides) * 1.02, left, width - right)
    base = top + row * len(sides)
    ticks = linear_ticks(x.high, 6 if width > 500 else 3)
    drawn: list[Markup | list[Markup]] = [
        part for tick in ticks for part in (
            line(x(tick), top, x(tick), base, "grid"),
            label(x(tick), base + 18, duration(tick) if tick else "0", "tick",
                  "middle" if tick else "start"))
    ]  # fmt: skip
    for number, side in enumerate(sides):
        floor = top + row * (number + 1)
        own = "candidate" if side.name == "candidate" else "baseline"
        drawn += [line(left, floor, width - right, floor, "grid"), _ridge(side, x, floor, own)]
        name = f"{SIDE_WORD.get(side.name, side.name)} {duration(side.median_us)}"
        class_ = "note best" if own == "candidate" else "note"
        # Above its own samples, whose bars never reach this lane: no label hides a bar.
        start = max(left, min(x(side.low_us), width - right - 7.0 * len(name)))
        drawn.append(label(start, floor - RIDGE_HEIGHT - 6, name, class_))
    text = "Timing samples: " + ", ".join(
        f"{SIDE_WORD.get(s.name, s.name)} {duration(s.median_us)} ({s.samples} samples)"
        for s in sides
    )
    return svg(width, height, text, drawn)


def _ridge(side: Distribution, x: Scale, floor: float, own: str) -> Markup:
    tallest, wide = max(side.counts), (side.high_us - side.low_us) / len(side.counts)
    corners = [(x(side.low_us), floor)]
    for number, count in enumerate(side.counts):
        y = floor - RIDGE_HEIGHT * count / tallest
        corners += [(x(side.low_us + number * wide), y), (x(side.low_us + (number + 1) * wide), y)]
    corners.append((x(side.high_us), floor))
    return polyline(corners, f"ridge ridge-{own}")


def histogram_chart(side: Distribution, width: int) -> Markup:
    """One side's samples close up, with the median and its interval."""
    height, top, bottom = 190, 26, 34
    x = Scale(side.low_us, max(side.high_us, side.low_us * 1.0001), 4, width - 8)
    tallest, base = max(side.counts), height - bottom
    step = (x.end - x.start) / len(side.counts)
    bars = [
        element("rect", x=x.start + k * step + 0.5, y=base - (base - top) * count / tallest,
                width=max(step - 1, 0.5), height=(base - top) * count / tallest,
                class_="histogram-bar")
        for k, count in enumerate(side.counts) if count
    ]  # fmt: skip
    low, high = side.ci95_us
    middle = x(side.median_us)
    drawn = [
        element("rect", x=x(low), y=top - 4, width=max(x(high) - x(low), 1), height=base - top + 4,
                class_="interval"),
        bars,
        line(middle, top - 8, middle, base, "median"),
        label(middle, top - 12, f"median {duration(side.median_us)}", "note best",
              "start" if middle < width * 0.3 else "end" if middle > width * 0.7 else "middle"),
        line(4, base, width - 8, base, "rule-strong"),
        label(4, base + 18, duration(side.low_us), "tick"),
        label(width - 8, base + 18, duration(side.high_us), "tick", "end"),
    ]  # fmt: skip
    text = (f"Histogram of {side.samples} samples from {duration(side.low_us)} to "
            f"{duration(side.high_us)}; median {duration(side.median_us)}, 95 % interval "
            f"{duration(low)} to {duration(high)}.")  # fmt: skip
    return svg(width, height, text, drawn)


def rounds_chart(speedups: tuple[float, ...], width: int) -> Markup:
    """The speed-up of each interleaved round: a trend here would be drift."""
    height, top, bottom, left = 190, 26, 34, 46
    middle = statistics.median(speedups)
    swing = max(*(abs(s / middle - 1) for s in speedups), 0.02)
    reach = swing * 1.4
    x = Scale(0.5, len(speedups) + 0.5, left, width - 8)
    y = Scale(middle * (1 - reach), middle * (1 + reach), height - bottom, top)
    drawn = [
        [part for v in (middle * (1 - swing), middle, middle * (1 + swing)) for part in (
            line(left, y(v), width - 8, y(v), "grid"),
            label(left - 6, y(v) + 4, times(v), "tick", "end"))],
        [element("circle", cx=x(k), cy=y(s), r=4, class_="dot on-path")
         for k, s in enumerate(speedups, start=1)],
        [label(x(k), height - bottom + 18, str(k), "tick", "middle")
         for k in range(1, len(speedups) + 1)],
    ]  # fmt: skip
    text = (f"Speed-up over eager in each of {len(speedups)} interleaved rounds, from "
            f"{times(min(speedups))} to {times(max(speedups))}.")  # fmt: skip
    return svg(width, height, text, drawn)
