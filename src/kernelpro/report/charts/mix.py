"""What a kernel is made of: its instructions by class, as bars."""

from __future__ import annotations

from kernelpro.report.charts.svg import label, svg
from kernelpro.report.markup import Markup, element
from kernelpro.views.instruction_view import KernelMix
from kernelpro.views.words import plain

MAX_CLASSES = 14


def mix_chart(mix: KernelMix, width: int) -> Markup:
    """One bar per class of instructions, longest first."""
    row, left, right = 22, 128, 96
    classes = mix.classes[:MAX_CLASSES]
    height = row * max(1, len(classes)) + 4
    longest = max((c.found for c in classes), default=1.0)
    drawn = [
        part for k, c in enumerate(classes) for part in (
            label(left - 10, row * k + 15, plain(c.name), "tick", "end"),
            element("rect", x=left, y=row * k + 5, height=row - 9, class_="mix-bar",
                    width=max(1.0, (width - left - right) * c.found / longest)),
            label(left + (width - left - right) * c.found / longest + 8, row * k + 15,
                  f"{c.found:g} ({c.share:.0%})", "tick"))
    ]  # fmt: skip
    spoken = f"Instructions of {mix.kernel}: " + ", ".join(
        f"{plain(c.name)} {c.found:g}" for c in classes
    )
    return svg(width, height, spoken, drawn)
