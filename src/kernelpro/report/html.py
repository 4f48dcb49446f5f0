"""The whole report as one HTML file: no network, no other file, inert candidate text."""

from __future__ import annotations

from kernelpro.report.attempt import DetailLimits, attempt_block
from kernelpro.report.document import document
from kernelpro.report.environment import reproduce_section
from kernelpro.report.headline import headline
from kernelpro.report.markup import Markup, element, join
from kernelpro.report.sections import (
    advice_section,
    attempts_section,
    code_section,
    energy_section,
    evidence_section,
    path_section,
    roofline_section,
    search_section,
)
from kernelpro.report.words import times
from kernelpro.views.candidate_view import candidate_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, run_summary

MAX_BYTES = 3_000_000
"""Size the file is kept under by shortening the details of attempts, most generous first."""
LIMITS = (DetailLimits(6000, 400, histogram=True), DetailLimits(3000, 160, histogram=True),
          DetailLimits(1200, 60), DetailLimits(400, 20), DetailLimits(120, 0))  # fmt: skip


def html_report(run: Run) -> str:
    """The report of ``run`` as HTML text."""
    summary = run_summary(run)
    top = join((headline(run, summary), _contents(summary), element("main", _sections(run, summary),
                                                                    id="main")))  # fmt: skip
    views = [candidate_view(run, node_id) for node_id in run.nodes]
    page = ""
    for limits in LIMITS:
        attempts = [attempt_block(view, limits) for view in views]
        page = _page(summary, join((top, element("aside", attempts, aria_label="Attempts"))))
        if len(page.encode("utf-8", "replace")) <= MAX_BYTES:
            break
    return page


def _sections(run: Run, summary: RunSummary) -> Markup:
    return join(
        (
            evidence_section(run, summary),
            path_section(run, summary),
            search_section(run, summary),
            roofline_section(run),
            energy_section(run),
            code_section(run, summary),
            advice_section(run, summary),
            attempts_section(run),
            reproduce_section(run, summary),
        )
    )


def _contents(summary: RunSummary) -> Markup:
    entries = [("search", "Search"), ("roofline", "Limit"), ("advice", "Advice"),
               ("attempts", "Attempts"), ("reproduce", "Repeat")]  # fmt: skip
    if summary.best_id:
        entries[0:0] = [("evidence", "Evidence"), ("path", "Path")]
        entries.insert(4, ("code", "Code"))
    return element("nav", [element("a", name, href=f"#{anchor}") for anchor, name in entries],
                   aria_label="Contents")  # fmt: skip


def _page(summary: RunSummary, body: Markup) -> str:
    result = f", {times(summary.speedup)}" if summary.speedup else ""
    skip = element("a", "Skip to the evidence", href="#main", class_="skip-link")
    return document(f"{summary.problem}{result} · kernelpro", join((skip, body)))
