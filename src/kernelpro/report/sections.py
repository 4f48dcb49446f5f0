"""The parts of the page, in reading order: what was found, why to believe it, how it came about."""

from __future__ import annotations

from kernelpro.report.attempt import again_words, correctness_rows
from kernelpro.report.blocks import (
    diff_block,
    diff_size,
    disclosure,
    facts,
    node_link,
    section,
    source_block,
    table,
)
from kernelpro.report.charts.energy import energy_chart
from kernelpro.report.charts.progress import progress_chart
from kernelpro.report.charts.roofline import roofline_chart
from kernelpro.report.charts.svg import FULL, responsive
from kernelpro.report.charts.timing import distributions_chart, histogram_chart, rounds_chart
from kernelpro.report.charts.tree import tree_chart
from kernelpro.report.findings import checks_table, diagnosis_block, tools_table
from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.report.words import duration, path_words, seconds, times
from kernelpro.schema.outcome import Outcome, Status
from kernelpro.views.candidate_view import CandidateView, candidate_view
from kernelpro.views.diff_view import diff_view
from kernelpro.views.energy_view import EnergyView, energy_view
from kernelpro.views.latency_view import latency_view, warnings_of
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import RooflineView, roofline_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, compile_over_eager
from kernelpro.views.tools_view import tools_view
from kernelpro.views.tree_view import tree_view
from kernelpro.views.words import STATUS_WORD, plain, status_word

MAX_BEST_DIFF_LINES = 1500
PROGRESS_CAPTION = (
    "Each dot is an attempt; the line is the best so far; rings joined by the thin line are the "
    "winner and its ancestors."
)
ROOFLINE_CAPTION = (
    "All versions do the same work, so they belong on the dashed vertical; candidates are spread "
    "to its right in order of evaluation. Higher is faster. Bars are the baselines; rings joined "
    "by a line lead to the best, the filled circle."
)


def evidence_section(run: Run, summary: RunSummary) -> Child:
    """Timing, correctness and integrity of the best candidate."""
    if summary.best_id is None:
        return None
    outcome = run.outcome(summary.best_id)
    if outcome is None or outcome.latency is None or outcome.correctness is None:
        return None
    searched = run.search_speedup(summary.best_id) or 0.0
    rows = [*_timing_rows(outcome, summary, searched), *correctness_rows(outcome.correctness),
            *((f"{name} verdict", plain(v)) for name, v in outcome.verdicts.items())]  # fmt: skip
    return section(
        "evidence", "Is it real?",
        "The candidate never sees the referee's inputs, seeds or reference outputs. What follows "
        "is what the referee measured and checked.",
        timing_charts(outcome), facts(rows), _remarks(outcome), checks_table(outcome),
    )  # fmt: skip


def timing_evidence(outcome: Outcome) -> list[Child]:
    """What the referee measured and checked of any attempt: charts, verdicts, remarks, checks."""
    verdicts = [(f"{name} verdict", plain(v)) for name, v in outcome.verdicts.items()]
    return [
        *timing_charts(outcome), facts(verdicts) if verdicts else None, _remarks(outcome),
        checks_table(outcome) if outcome.integrity else None,
    ]  # fmt: skip


def timing_charts(outcome: Outcome) -> list[Child]:
    """Samples of every side, the candidate's close up, and its rounds; nothing if not timed."""
    view = latency_view(outcome)
    if view is None:
        return []
    own = view.distributions[-1]
    return [
        element("figure", responsive(lambda w: distributions_chart(view.distributions, w)),
                element("figcaption", "Every timing sample: kernel and eager interleaved in one "
                        "session, torch.compile and eager in their own. The axis starts at 0.")),
        element("div",
            element("figure", histogram_chart(own, 350), element("figcaption",
                "The kernel's samples close up; the band is the median's 95 % interval.")),
            element("figure", rounds_chart(view.round_speedups, 350), element("figcaption",
                "Speed-up over eager, round by round. A slope would be drift."))
            if len(view.round_speedups) > 1 else None, class_="pair"),
    ]  # fmt: skip


def _remarks(outcome: Outcome) -> Child:
    said = warnings_of(outcome)
    if not said:
        return None
    items = [element("li", remark) for remark in said]
    return element("div", element("h3", "The referee remarks"), element("ul", items),
                   class_="remarks")  # fmt: skip


def _timing_rows(outcome: Outcome, summary: RunSummary, searched: float) -> list[tuple[str, Child]]:
    latency = outcome.latency
    assert latency is not None
    low, high = latency.ci95_us
    again = "no: the number is the search's own"
    if summary.remeasured:
        again = f"yes, on fresh inputs (the search had {times(searched)})"
    rounds = f" in {len(latency.rounds)} interleaved rounds" if latency.rounds else ""
    return [
        ("latency", f"{duration(latency.median_us)}, 95 % interval {duration(low)} to "
                    f"{duration(high)}"),
        ("samples", f"{len(latency.samples)} per side{rounds}, {plain(latency.timer)} clock"),
        ("measured again after the search", again),
    ]  # fmt: skip


def path_section(run: Run, summary: RunSummary) -> Child:
    """The winner's ancestors, each with the advice it followed."""
    path = run.path(summary.best_id)
    if not path:
        return None
    return section(
        "path", "How it got there",
        "From the first version to the winner: what each step was told, what it changed, and what "
        "that brought.",
        path_list(run, path),
    )  # fmt: skip


def path_list(run: Run, path: tuple[str, ...]) -> Markup:
    """One step per node id: what it was told, changed and gained."""
    steps = [_step(candidate_view(run, node_id)) for node_id in path]
    return element("ol", steps, class_="path")


def _step(view: CandidateView) -> Markup:
    verdict = times(view.speedup) if view.speedup else status_word(view.status)
    told = _told(view)
    gain = f"{times(view.gain)} over its parent" if view.gain else None
    return element(
        "li",
        element("div", element("a", view.id, href=f"#{view.id}", class_="node"),
                element("strong", verdict), class_="step-verdict"),
        element("div",
            element("h3", view.title),
            element("p", element("span", "Told", class_="kicker"), " ", told, class_="told")
            if told else None,
            element("p", diff_size(view.diff), f" lines · {gain}" if gain else " lines",
                    f" · acted on {path_words(view.acted_on)}" if view.acted_on else None,
                    again_words(view),
                    class_="quiet"),
        ),
        class_=None if view.speedup else "step-failed",
    )  # fmt: skip


def _told(view: CandidateView) -> str | None:
    """The advice the step says it followed, else the first it was given."""
    items = view.received.items if view.received else ()
    followed = (item.title for item in items if item.tool in view.acted_on)
    return next(followed, items[0].title if items else None)


def search_section(run: Run, summary: RunSummary) -> Markup:
    """Every attempt: by time, and as a tree."""
    points = progress_view(run)
    outcome = run.outcome(summary.best_id) if summary.best_id else None
    compiled = compile_over_eager(outcome)
    counts = [f"{summary.statuses[s.value]} {STATUS_WORD[s]}" for s in Status
              if s.value in summary.statuses]  # fmt: skip
    return section(
        "search", "The search",
        f"{summary.evaluations} attempts: {', '.join(counts)}. Follow any mark to the attempt's "
        "code, guidance and verdict.",
        element("figure", responsive(lambda w: progress_chart(points, compiled, w), FULL),
                element("figcaption", PROGRESS_CAPTION)),
        element("figure",
            element("div", tree_chart(tree_view(run)), class_="scroll", tabindex=0, role="region",
                    aria_label="Search tree"),
            element("figcaption", "Left to right: attempts grown from attempts. Stronger colour is "
                    "faster; a cross is a failure, named; dashed is a repeat of a source already "
                    "measured. Arrow keys walk the tree.")),
        full=True,
    )  # fmt: skip


def roofline_section(run: Run) -> Markup:
    """How far from the device's limit."""
    view = roofline_view(run)
    title = "How close to the limit"
    if not isinstance(view, RooflineView):
        return section("roofline", title, None, element("p", view, class_="quiet"))
    best = next((p for p in view.points if p.kind == "best"), None)
    note = (
        f"The work this problem cannot avoid is {view.bound}-bound here: at least "
        f"{duration(view.floor_us)} by the {view.source} ceilings."
    )
    if best is not None:
        note += f" The best kernel runs at {best.share:.0%} of that limit."
        if best.share > 1.0:
            note += (" Above 100 % means that data stayed in cache between calls, which the "
                     "memory ceiling does not count.")  # fmt: skip
    return section(
        "roofline", title, note,
        element("figure", responsive(lambda w: roofline_chart(view, w)),
                element("figcaption", ROOFLINE_CAPTION)),
    )  # fmt: skip


def energy_section(run: Run) -> Markup:
    """What speed costs in energy, where it was measured."""
    view, title = energy_view(run), "Speed and energy"
    if not isinstance(view, EnergyView):
        return section("energy", title, None, element("p", view, class_="quiet"))
    return section(
        "energy", title,
        "Energy of one call against speed. The line joins the attempts that no other beats in "
        "both.",
        element("figure", responsive(lambda w: energy_chart(view, w))),
    )  # fmt: skip


def code_section(run: Run, summary: RunSummary) -> Child:
    """The winning file, and its differences to its parent, its first version, the reference."""
    best = summary.best_id
    if best is None:
        return None
    view, first = candidate_view(run, best), run.path(best)[0]
    reference = run.started.problem.source if run.started else ""
    parts: list[Child] = []
    if first not in {best, view.parent_id}:
        whole = diff_view(run.source(first), run.source(best))
        parts.append(disclosure(
            join((f"From the first version ({first}) to the best ({best}) ", diff_size(whole))),
            diff_block(whole, "Difference", MAX_BEST_DIFF_LINES), open_=True))  # fmt: skip
    origin = f"its parent ({view.parent_id})" if view.parent_id else "the reference"
    parts.append(disclosure(join((f"From {origin} to the best ({best}) ", diff_size(view.diff))),
                            diff_block(view.diff, "Difference", MAX_BEST_DIFF_LINES),
                            open_=not parts))  # fmt: skip
    parts.append(disclosure("The best file, whole", source_block(run.source(best), "Best file")))
    parts.append(disclosure("The reference", source_block(reference, "Reference")))
    return section(
        "code", "The code",
        "Lines that start with + were added, with − removed.",
        parts,
    )  # fmt: skip


def advice_section(run: Run, summary: RunSummary) -> Child:
    """What the tools still see in the best kernel, and what their advice was worth."""
    best = run.nodes[summary.best_id] if summary.best_id else None
    rows = tools_view(run)
    return section(
        "advice",
        "What the tools say now",
        "The diagnosis of the best kernel, then how well each tool's predictions held in this run.",
        diagnosis_block(best.diagnosis if best else None),
        tools_table(rows) if rows else None,
    )


def attempts_section(run: Run) -> Markup:
    """All attempts as a table."""
    rows = []
    for node_id in run.nodes:
        view = candidate_view(run, node_id)
        latency = view.outcome.latency if view.outcome else None
        rows.append((
            node_link(node_id), node_link(view.parent_id) if view.parent_id else "scratch",
            view.title, (times(view.speedup), again_words(view)) if view.speedup else element(
                "span", "✕ ", status_word(view.status), class_="failed"),
            duration(latency.median_us) if latency else "–",
            times(view.gain) if view.gain else "–", seconds(view.seconds),
        ))  # fmt: skip
    heads = ("Attempt", "From", "What", "Result", "Latency", "Gain", "Wall time")
    whole = table("All attempts in order of evaluation", heads, rows,
                  numeric=frozenset({3, 4, 5, 6}), class_="attempts")  # fmt: skip
    return section("attempts", "Every attempt", None, whole, full=True)
