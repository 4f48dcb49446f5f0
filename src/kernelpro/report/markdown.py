"""The report as Markdown text: for pull requests, issues and terminals.

Candidate text goes through :func:`cell` or a code fence, so that it cannot become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernelpro.report.environment import commands_for
from kernelpro.report.words import duration, seconds, times
from kernelpro.schema.outcome import Outcome
from kernelpro.text import printable
from kernelpro.views.candidate_view import CandidateView, candidate_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, run_summary
from kernelpro.views.tools_view import tools_view
from kernelpro.views.words import plain, status_word, stop_word


def markdown_report(run: Run) -> str:
    """The report of ``run``."""
    summary = run_summary(run)
    outcome = run.outcome(summary.best_id) if summary.best_id else None
    parts = [f"# {cell(summary.problem)}", _headline(summary)]
    if outcome is not None:
        parts += [_timing(summary), "## Checks", _checks(outcome)]
    path = run.path(summary.best_id)
    if path:
        parts += ["## How it got there", *(_step(candidate_view(run, n)) for n in path)]
    parts += ["## Advice", _advice(run), "## Attempts", _attempts(run)]
    if summary.best_id:
        parts += ["## The best file", fenced(run.source(summary.best_id), "python")]
    if run.started is not None:
        commands = "\n".join(commands_for(run.started, summary))
        parts += ["## Repeat it", fenced(commands, "sh")]
    return "\n\n".join(parts) + "\n"


def cell(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    flat = " ".join(printable(text).split())
    return re.sub(r"([\\`*_{}\[\]<>()#|!~&])", r"\\\1", flat)


def fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{printable(text).rstrip()}\n{fence}"


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _headline(summary: RunSummary) -> str:
    ending = (
        f"It ended because {stop_word(summary.stop_reason)}."
        if summary.state == "stopped"
        else "It has not ended."
    )
    attempts = f"{summary.evaluations} attempts on {cell(summary.device_name)}. {ending}"
    if summary.speedup is None:
        return f"**No attempt was accepted.** {attempts}"
    interval = ""
    if summary.speedup_ci95:
        low, high = summary.speedup_ci95
        interval = f" (95 % interval {low:.2f} to {high:.2f})"
    compiled = (
        f", {times(summary.speedup_over_compile)} as fast as torch.compile"
        if summary.speedup_over_compile
        else ""
    )
    keep = " **Keep eager: nothing is faster beyond the noise.**" if summary.keep_eager else ""
    rough = " The interval is wide: measure again before you quote it." if summary.loose else ""
    about = "roughly " if summary.loose else ""
    return (
        f"**{about}{times(summary.speedup)} as fast as eager PyTorch**{interval}{compiled}.{rough}"
        f"{keep} "
        f"Best: {summary.best_id}, {cell(summary.best_title)}. {attempts}"
    )


def _timing(summary: RunSummary) -> str:
    sides = (
        ("eager PyTorch", summary.eager_us),
        ("torch.compile", summary.compile_us),
        ("this kernel", summary.latency_us),
    )
    return markdown_table(
        ("Version", "Median", "Speed-up"),
        [
            (name, duration(value), times(summary.eager_us / value) if summary.eager_us else "–")
            for name, value in sides
            if value is not None
        ],
    )


def _checks(outcome: Outcome) -> str:
    word = {True: "passed", False: "**failed**", None: "not run"}
    return markdown_table(
        ("Check", "Result", "Detail"),
        [(cell(plain(c.check)), word[c.passed], cell(c.detail)) for c in outcome.integrity],
    )


def _step(view: CandidateView) -> str:
    verdict = times(view.speedup) if view.speedup else status_word(view.status)
    gain = f", {times(view.gain)} over its parent" if view.gain else ""
    acted = f"; acted on {', '.join(map(plain, view.acted_on))}" if view.acted_on else ""
    return f"1. `{view.id}` **{verdict}**{gain}: {cell(view.title)}{acted}"


def _advice(run: Run) -> str:
    rows = tools_view(run)
    if not rows:
        return "No tool had anything to say."
    return markdown_table(
        ("Tool", "Given", "Followed", "Accepted", "Mean gain"),
        [
            (
                cell(plain(r.tool)), str(r.given), str(r.followed), str(r.accepted),
                f"{r.mean_gain:.2f}×" if r.mean_gain else "–",
            )
            for r in rows
        ],
    )  # fmt: skip


def _attempts(run: Run) -> str:
    views = [candidate_view(run, node_id) for node_id in run.nodes]
    return markdown_table(
        ("Attempt", "From", "What", "Result", "Wall time"),
        [
            (
                v.id, v.parent_id or "scratch", cell(v.title),
                times(v.speedup) if v.speedup else status_word(v.status), seconds(v.seconds),
            )
            for v in views
        ],
    )  # fmt: skip
