"""One attempt as a page: code, findings, evidence, prompt and reply, memory, lineage."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpro.dashboard.web.exchanges import MAX_TEXT, exchange_blocks
from kernelpro.dashboard.web.frame import frame, spaced
from kernelpro.report.attempt import (
    DetailLimits,
    attempt_head,
    attempt_parts,
    memory_list,
)
from kernelpro.report.blocks import (
    diff_block,
    diff_size,
    disclosure,
    facts,
    node_link,
    section,
    source_block,
)
from kernelpro.report.charts.mix import mix_chart
from kernelpro.report.charts.svg import responsive
from kernelpro.report.findings import diagnosis_block
from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.report.sections import timing_evidence
from kernelpro.report.words import seconds
from kernelpro.schema.exchange import Exchange
from kernelpro.text import short_hash
from kernelpro.views.candidate_view import CandidateView
from kernelpro.views.instruction_view import KernelMix, instruction_view
from kernelpro.views.words import plain

MAX_DIFF_LINES = 3000
PANEL = DetailLimits(6000, 200, histogram=True)


def panel(view: CandidateView, run_id: str) -> Markup:
    """The attempt beside the tree, with the way to its page."""
    page = f"/runs/{run_id}/nodes/{view.id}"
    links = element("p", spaced([
        element("a", "Open page", href=page),
        element("a", "Compare with parent",
                href=f"/compare?first={run_id}:{view.parent_id}&second={run_id}:{view.id}")
        if view.parent_id else None,
    ]), class_="panel-links")  # fmt: skip
    head = attempt_head(view, PANEL, links)
    body = [element("section", element("h4", title), content)
            for title, content in attempt_parts(view, PANEL)]  # fmt: skip
    return element("article", head, body, class_="attempt-panel", aria_label=f"Attempt {view.id}")


def node_page(
    view: CandidateView,
    source: str,
    run_id: str,
    problem: str,
    best_id: str | None,
    exchanges: Sequence[Exchange] = (),
) -> str:
    """Everything recorded about the attempt."""
    limits = DetailLimits(MAX_TEXT, MAX_DIFF_LINES, href=f"/runs/{run_id}/nodes/{{}}")
    top = element("div", attempt_head(view, limits, _ways(view, run_id, best_id), title="h1"),
                  class_="page-head node-head")  # fmt: skip
    body = element("main", top, _sections(view, source, run_id, limits, exchanges), id="main")
    crumbs = ((problem or run_id, f"/runs/{run_id}"), (view.id, f"/runs/{run_id}/nodes/{view.id}"))
    return frame(f"{view.id} · {problem} · kernelpro", body, crumbs=crumbs, script="node.js")


def _ways(view: CandidateView, run_id: str, best_id: str | None) -> Markup:
    here, parent = f"{run_id}:{view.id}", f"{run_id}:{view.parent_id}"
    compare = "/compare?first="
    return element("p", spaced([
        element("a", "In the tree", href=f"/runs/{run_id}#{view.id}"),
        element("a", "Compare with parent", href=f"{compare}{parent}&second={here}")
        if view.parent_id else None,
        element("a", "Compare with the best", href=f"{compare}{here}&second={run_id}:{best_id}")
        if best_id and best_id != view.id else None,
        element("a", "Source file", href=f"/runs/{run_id}/nodes/{view.id}/source.py"),
    ]), class_="panel-links")  # fmt: skip


def _sections(
    view: CandidateView,
    source: str,
    run_id: str,
    limits: DetailLimits,
    exchanges: Sequence[Exchange],
) -> list[Child]:
    parts = dict(attempt_parts(view, limits))
    return [
        section("verdict", "What the referee found", None, parts.get("What the referee found"),
                *_evidence(view, run_id)),
        section("change", "What it changed", _change_note(view), *_change(view, source)),
        section("findings", "What the tools then said",
                "Findings by worth, each with its evidence.", diagnosis_block(view.diagnosis)),
        section("why", "Why it was tried", None, parts.get("Why here"),
                _titled("Guidance it received", parts.get("Guidance it received"))),
        section("instructions", "What it is made of", "Static counts from the machine code.",
                _mixes(view, run_id)),
        section("exchange", "Prompt and reply", None, _exchanges(view, exchanges)),
        section("memory", "What the search remembers", None, memory_list(view) or element(
            "p", "This attempt made no memory entries.", class_="quiet")),
        section("lineage", "Lineage", None, parts.get("Lineage"), _record(view)),
    ]  # fmt: skip


def _titled(title: str, content: Child) -> Child:
    return (element("h3", title), content) if content else None


def _evidence(view: CandidateView, run_id: str) -> list[Child]:
    outcome = view.again or view.outcome
    if outcome is None:
        return []
    said = "Measured again after the search, on fresh inputs:" if view.again else None
    drawn: list[Child] = [element("p", said, class_="quiet") if said else None]
    drawn += timing_evidence(outcome)
    if outcome.latency is not None:
        drawn.append(downloads(run_id, ("timing", "histogram", "rounds"), view.id))
    return drawn


def downloads(run_id: str, names: tuple[str, ...], node_id: str | None = None) -> Markup:
    """Links to figures as files."""
    query = f"?node={node_id}" if node_id else ""
    links: list[Child] = [figure_links(name, f"/runs/{run_id}/figures/{name}", query)
                          for name in names]  # fmt: skip
    return element("p", spaced(links), class_="quiet downloads")


def figure_links(name: str, address: str, query: str = "") -> Markup:
    """A figure's name with its two files."""
    files = [element("a", kind.upper(), href=f"{address}.{kind}{query}",
                     aria_label=f"{name} figure as {kind.upper()}")
             for kind in ("svg", "png")]  # fmt: skip
    return join((f"{name} ", files[0], " ", files[1]))


def _change_note(view: CandidateView) -> Markup:
    origin = f"{view.parent_id}" if view.parent_id else "the reference"
    return join((f"Against {origin}: ", diff_size(view.diff), " lines."))


def _change(view: CandidateView, source: str) -> list[Child]:
    knobs = [(plain(k), f"{old} → {new}") for k, old, new in view.changed_knobs]
    return [
        element("p", view.rationale) if view.rationale else None,
        facts(knobs, "facts tight") if knobs else None,
        diff_block(view.diff, f"Difference of {view.id}", MAX_DIFF_LINES),
        disclosure("The whole file", source_block(source, f"Source of {view.id}")),
    ]


def _mixes(view: CandidateView, run_id: str) -> Child:
    mixes = instruction_view(view.profile)
    if isinstance(mixes, str):
        return element("p", mixes, class_="quiet")
    drawn: list[Child] = [
        element("figure", element("figcaption", element("code", mix.kernel),
                                  f", {mix.total:g} instructions; classes may overlap."),
                _mix(mix))
        for mix in mixes
    ]  # fmt: skip
    return (*drawn, downloads(run_id, ("mix",), view.id))


def _mix(mix: KernelMix) -> Markup:
    return responsive(lambda w: mix_chart(mix, w), 560)


def _exchanges(view: CandidateView, exchanges: Sequence[Exchange]) -> Child:
    if exchanges:
        return exchange_blocks(exchanges)
    who = "The playbook" if view.writer == "playbook" else f"The writer ({view.writer})"
    return element("p", f"{who} recorded no prompt.", class_="quiet")


def _record(view: CandidateView) -> Markup:
    rows: list[tuple[str, Child]] = [
        ("source", element("code", short_hash(view.source_hash))),
        ("wall time", seconds(view.seconds)),
        ("writer", view.writer),
    ]
    if view.recipe:
        rows.append(("recipe", view.recipe))
    if view.duplicate_of:
        rows.append(("same source as", node_link(view.duplicate_of, "{}")))
    return facts(rows, "facts tight")
