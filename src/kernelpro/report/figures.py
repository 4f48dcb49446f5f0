"""Single figures as files for papers: SVG text that stands alone, and PNG from it.

The drawing is the report's own; here it gets its colours written in, since a file has no page.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kernelpro._optional import require
from kernelpro.errors import UserError
from kernelpro.report.charts.energy import energy_chart
from kernelpro.report.charts.mix import mix_chart
from kernelpro.report.charts.progress import progress_chart
from kernelpro.report.charts.roofline import roofline_chart
from kernelpro.report.charts.suite import suite_chart
from kernelpro.report.charts.svg import WIDE
from kernelpro.report.charts.timing import distributions_chart, histogram_chart, rounds_chart
from kernelpro.report.charts.tree import tree_chart
from kernelpro.report.document import asset
from kernelpro.report.markup import Markup
from kernelpro.views.energy_view import energy_view
from kernelpro.views.instruction_view import instruction_view
from kernelpro.views.latency_view import LatencyView, latency_view
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import roofline_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import compile_over_eager
from kernelpro.views.suite_view import SuiteView
from kernelpro.views.tree_view import tree_view

PNG_SCALE = 2.0
"""Pixels per CSS pixel: 834 wide becomes 1668, enough for a column in print."""
MARGIN = 14
"""CSS pixels around the drawing."""
FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def progress_figure(run: Run, node_id: str | None) -> Markup | str:
    """The best-so-far curve."""
    outcome = run.outcome(run.best_id) if run.best_id else None
    return progress_chart(progress_view(run), compile_over_eager(outcome), WIDE)


def tree_figure(run: Run, node_id: str | None) -> Markup | str:
    """The tree of attempts."""
    return tree_chart(tree_view(run)) if run.facts else "The run has no attempt yet."


def roofline_figure(run: Run, node_id: str | None) -> Markup | str:
    """Every version under the device's ceilings."""
    view = roofline_view(run)
    return view if isinstance(view, str) else roofline_chart(view, WIDE)


def energy_figure(run: Run, node_id: str | None) -> Markup | str:
    """Speed against energy."""
    view = energy_view(run)
    return view if isinstance(view, str) else energy_chart(view, WIDE)


def timing_figure(run: Run, node_id: str | None) -> Markup | str:
    """All timing samples of an attempt and its baselines on one axis."""
    view = _timing(run, node_id)
    return view if isinstance(view, str) else distributions_chart(view.distributions, WIDE)


def histogram_figure(run: Run, node_id: str | None) -> Markup | str:
    """An attempt's timing samples close up."""
    view = _timing(run, node_id)
    return view if isinstance(view, str) else histogram_chart(view.distributions[-1], WIDE // 2)


def rounds_figure(run: Run, node_id: str | None) -> Markup | str:
    """The speed-up of every interleaved round of an attempt."""
    view = _timing(run, node_id)
    if isinstance(view, str):
        return view
    if not view.round_speedups:
        return "The attempt was not timed in interleaved rounds."
    return rounds_chart(view.round_speedups, WIDE // 2)


def mix_figure(run: Run, node_id: str | None) -> Markup | str:
    """The instructions of an attempt's first kernel by class."""
    chosen = node_id or run.best_id
    mixes = instruction_view(run.nodes[chosen].profile if chosen else None)
    return mixes if isinstance(mixes, str) else mix_chart(mixes[0], WIDE // 2)


FIGURES: dict[str, Callable[[Run, str | None], Markup | str]] = {
    "progress": progress_figure, "tree": tree_figure, "roofline": roofline_figure,
    "energy": energy_figure, "timing": timing_figure, "histogram": histogram_figure,
    "rounds": rounds_figure, "mix": mix_figure,
}  # fmt: skip
"""Name -> drawing of a run (and, for the last four, of one attempt: the best by default), or why
there is nothing to draw."""


def figure(run: Run, name: str, *, node_id: str | None = None, dark: bool = False) -> str:
    """The figure as SVG text that needs nothing else.

    ``UserError`` if there is no such figure, or the run has no evidence for it.
    """
    if name not in FIGURES:
        raise UserError(f"There is no figure {name!r}. Known: {', '.join(FIGURES)}")
    drawn = FIGURES[name](run, node_id)
    if not isinstance(drawn, Markup):
        raise UserError(f"The figure {name!r} cannot be drawn. {drawn}")
    return standalone(drawn, dark=dark)


def suite_figure(view: SuiteView, *, dark: bool = False) -> str:
    """The distribution of the speed-ups of many runs, as :func:`figure`.

    ``UserError`` if no run has an accepted attempt.
    """
    if not any(row.speedup is not None for row in view.rows):
        raise UserError("The figure 'distribution' cannot be drawn. No run has an accepted attempt")
    return standalone(suite_chart(view, WIDE), dark=dark)


def standalone(drawn: Markup, *, dark: bool = False) -> str:
    """``drawn`` with its style inside, without links, which lead nowhere outside a page."""
    colours = palette(dark=dark)
    style = re.sub(r"var\(--([a-z-]+)\)", lambda m: colours[m[1]], _chart_rules())
    body = re.sub(r"<a\b", "<g", drawn.replace("</a>", "</g>"))
    body = re.sub(r' (?:href|tabindex)="[^"]*"', "", body)
    rest = body.split(">", 1)[1]
    label = re.search(r'aria-label="[^"]*"', body)
    box = re.findall(r'viewBox="0 0 (\S+) (\S+)"', body)[0]
    width, height = (float(side) + 2 * MARGIN for side in box)
    frame = f"{-MARGIN} {-MARGIN} {width:g} {height:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{frame}" width="{width:g}" '
        f'height="{height:g}" role="img" {label[0] if label else ""}><style>{style}</style>'
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width:g}" height="{height:g}" '
        f'fill="{colours["paper"]}"/>{rest}\n'
    )


def png(svg: str) -> bytes:
    """``svg`` as a PNG of twice its size. ``UserError`` where resvg is not installed."""
    resvg = require("resvg_py", extra="dashboard", purpose="A figure as PNG")
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=PNG_SCALE))


def palette(*, dark: bool = False) -> dict[str, str]:
    """The style sheet's variables, without their dashes."""
    light, _, night = asset("tokens.css").partition("@media")
    found = dict(re.findall(r"--([a-z-]+):\s*([^;]+);", light))
    if dark:
        found |= dict(re.findall(r"--([a-z-]+):\s*([^;]+);", night))
    return found | {"sans": FONTS}


def _chart_rules() -> str:
    """The chart rules that a renderer without a page understands."""
    text = re.sub(r"/\*.*?\*/", "", asset("charts.css"), flags=re.S)
    rules = re.findall(r"[^{}]+\{[^{}]*\}", text)
    return "".join(rule.strip() for rule in rules if ":" not in rule.partition("{")[0])


def _timing(run: Run, node_id: str | None) -> LatencyView | str:
    chosen = node_id or run.best_id
    outcome = run.outcome(chosen) if chosen else None
    if outcome is None:
        return "No attempt was accepted."
    return latency_view(outcome) or f"Attempt {chosen} was not timed."
