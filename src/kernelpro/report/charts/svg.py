"""What every figure is made of: the drawing with its text alternative, lines, labels, paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernelpro.report.markup import Child, Markup, element

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


def svg(width: float, height: float, label: str, *children: Child, links: bool = False) -> Markup:
    """A chart with its text alternative; with ``links`` a group, since an image has no parts."""
    return element(
        "svg", element("title", label), *children, viewbox=f"0 0 {width} {height}", width=width,
        height=height, role="group" if links else "img", aria_label=label,
    )  # fmt: skip


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
