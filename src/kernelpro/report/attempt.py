"""The details of one attempt: opened from the tree, the charts and the tables."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.report.blocks import diff_block, diff_size, facts, node_link, prose
from kernelpro.report.charts.mix import mix_chart
from kernelpro.report.charts.timing import histogram_chart
from kernelpro.report.findings import checks_table, diagnosis_block
from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.report.words import duration, seconds, times
from kernelpro.schema.outcome import Correctness, Outcome
from kernelpro.schema.profile import Profile
from kernelpro.text import short_hash
from kernelpro.views.candidate_view import CandidateView
from kernelpro.views.instruction_view import instruction_view
from kernelpro.views.latency_view import latency_view
from kernelpro.views.words import plain, status_word

MAX_MIXES = 4
"""Kernels of an attempt whose instructions are drawn."""


class DetailLimits(NamedTuple):
    """How much of each attempt is kept, so that a large run stays one small file."""

    text: int
    """Characters of guidance and messages."""
    diff_lines: int
    histogram: bool = False
    """Whether the timing samples are drawn."""
    href: str = "#{}"
    """Address of another attempt, with ``{}`` for its id."""


def attempt_block(view: CandidateView, limits: DetailLimits) -> Markup:
    """One attempt, whole."""
    head = attempt_head(view, limits, element("a", "Close", href="#search", class_="close"))
    body = [element("section", element("h4", title), content)
            for title, content in attempt_parts(view, limits)]  # fmt: skip
    return element("article", head, body, id=view.id, class_="attempt", tabindex=-1,
                   aria_label=f"Attempt {view.id}")  # fmt: skip


def attempt_head(
    view: CandidateView, limits: DetailLimits, *links: Child, title: str = "h3"
) -> Markup:
    """Name, origin and verdict; ``title`` is the heading's element."""
    verdict = times(view.speedup) if view.speedup else status_word(view.status)
    return element(
        "header",
        element("p", view.id, " · ", view.mode, " · ", view.writer, class_="kicker"),
        element(title, view.title),
        element("p", element("strong", verdict), _gain(view, limits), again_words(view),
                class_="verdict"),
        links,
    )  # fmt: skip


def attempt_parts(view: CandidateView, limits: DetailLimits) -> list[tuple[str, Child]]:
    """Title and content of every part that has something to say, in reading order."""
    parts = [
        ("Why here", _why(view)),
        ("Guidance it received", _received(view, limits)),
        (_change_title(view), _change(view, limits)),
        ("What the referee found", _verdict(view, limits)),
        ("Its timing samples", _samples(view, limits)),
        ("What the tools then said", _diagnosis(view)),
        ("What it is made of", instructions(view.profile)),
        ("What the search remembers of it", memory_list(view)),
        ("Lineage", _lineage(view, limits)),
    ]
    return [(title, content) for title, content in parts if content]


def _samples(view: CandidateView, limits: DetailLimits) -> Child:
    timing = latency_view(view.outcome, bins=24) if view.outcome and limits.histogram else None
    return histogram_chart(timing.distributions[-1], 350) if timing else None


def instructions(profile: Profile | None) -> Child:
    """Instruction mixes; nothing where no machine code was read."""
    mixes = instruction_view(profile)
    if isinstance(mixes, str):
        return None
    return join(
        element("figure", element("figcaption", element("code", mix.kernel),
                                  f", {mix.total:g} instructions; classes may overlap."),
                mix_chart(mix, 350))
        for mix in mixes[:MAX_MIXES]
    )  # fmt: skip


def memory_list(view: CandidateView) -> Child:
    """Entries of the search memory that this attempt made."""
    if not view.memory:
        return None
    return element("ul", [
        element("li", element("span", entry.category, class_="tool"), " ", entry.text,
                " (retired by a later fact)" if entry.retired_by is not None else None)
        for entry in view.memory
    ], class_="memory")  # fmt: skip


def _gain(view: CandidateView, limits: DetailLimits) -> Child:
    if view.duplicate_of:
        twin = node_link(view.duplicate_of, limits.href)
        return join((" · same source as ", twin, ", not measured again"))
    if view.gain is None:
        return None
    return f" · {times(view.gain)} over {view.parent_id}"


def again_words(view: CandidateView) -> str | None:
    """The second measurement of a finalist, to put behind the first."""
    if view.again is None:
        return None
    again = times(view.again.speedup) if view.again.speedup else status_word(view.again.status)
    return f" · measured again: {again}"


def _why(view: CandidateView) -> Child:
    return element("p", view.decision.text) if view.decision and view.decision.text else None


def _received(view: CandidateView, limits: DetailLimits) -> Child:
    if view.received is not None:
        return prose(view.received.text, limits.text)
    return element("p", "None: it was written from scratch.", class_="quiet")


def _change_title(view: CandidateView) -> str:
    return f"What it changed from {view.parent_id}" if view.parent_id else "What it replaced"


def _change(view: CandidateView, limits: DetailLimits) -> Child:
    knobs = [(plain(k), f"{old} → {new}") for k, old, new in view.changed_knobs]
    return join(
        (
            element("p", view.rationale) if view.rationale else None,
            facts(knobs, "facts tight") if knobs else None,
            element("p", diff_size(view.diff), " lines", class_="quiet"),
            diff_block(view.diff, f"Difference of {view.id}", limits.diff_lines),
        )
    )


def _verdict(view: CandidateView, limits: DetailLimits) -> Child:
    outcome = view.outcome
    if outcome is None:
        return None
    rows: list[tuple[str, Child]] = [("verdict", status_word(outcome.status))]
    if outcome.latency:
        low, high = outcome.latency.ci95_us
        rows.append(("latency", f"{duration(outcome.latency.median_us)} "
                                f"({duration(low)} to {duration(high)})"))  # fmt: skip
    if outcome.correctness:
        rows += correctness_rows(outcome.correctness)
    rows += [("source", element("code", short_hash(view.source_hash))),
             ("wall time", seconds(view.seconds))]  # fmt: skip
    failed = any(check.passed is False for check in outcome.integrity)
    return join(
        (
            prose(outcome.message, limits.text) if not outcome.ok else None,
            facts(rows, "facts tight"),
            checks_table(outcome) if failed else _checks_line(outcome),
        )
    )


def correctness_rows(correctness: Correctness) -> list[tuple[str, Child]]:
    """Errors against their bound."""
    bound = ", ".join(f"{name} {value:.2g}" for name, value in correctness.tolerance.items())
    rows: list[tuple[str, Child]] = [
        ("largest error", f"{correctness.max_abs_error:.2g} absolute, "
                          f"{correctness.max_rel_error:.2g} relative to the output's RMS"),
        ("bound", bound),
        ("trials", f"{correctness.trials}" + _families(correctness)),
        ("arithmetic", f"{correctness.precision_class} class"),
    ]  # fmt: skip
    if correctness.mismatch_share:
        rows.append(("elements that differ", f"{correctness.mismatch_share:.2%}"))
    return rows


def _families(correctness: Correctness) -> str:
    if not correctness.families:
        return ""
    passed = [plain(name) for name, ok in correctness.families.items() if ok]
    failed = [plain(name) for name, ok in correctness.families.items() if not ok]
    text = f" over input families {', '.join(passed)}" if passed else ""
    return text + (f"; failed on {', '.join(failed)}" if failed else "")


def _checks_line(outcome: Outcome) -> Child:
    passed = sum(check.passed is True for check in outcome.integrity)
    missing = [plain(c.check) for c in outcome.integrity if c.passed is None]
    if not outcome.integrity:
        return None
    text = f"{passed} integrity checks passed"
    return element("p", text + (f"; not run: {', '.join(missing)}" if missing else "") + ".",
                   class_="quiet")  # fmt: skip


def _diagnosis(view: CandidateView) -> Child:
    return diagnosis_block(view.diagnosis) if view.diagnosis else None


def _lineage(view: CandidateView, limits: DetailLimits) -> Child:
    children: list[Child] = []
    for child in view.children:
        children += [" ", node_link(child, limits.href)]
    parent = node_link(view.parent_id, limits.href) if view.parent_id else "scratch"
    return element("p", "From ", parent, "; led to", children or " nothing", ".")  # fmt: skip
