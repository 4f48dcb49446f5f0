"""A stored run as terminal pages: its tree and winning path, one attempt, or two runs compared."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kernelpro.dashboard.drawing import (
    ACCENT,
    FAIL,
    QUIET,
    best_line,
    headline,
    safe,
    times,
    tree_lines,
)
from kernelpro.dashboard.energy_page import front_page
from kernelpro.dashboard.pages import diagnosis_page, grid, outcome_page
from kernelpro.text import printable
from kernelpro.views.candidate_view import CandidateView, candidate_view
from kernelpro.views.compare_view import CompareView
from kernelpro.views.diff_view import DiffView
from kernelpro.views.energy_view import EnergyView, energy_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import run_summary
from kernelpro.views.words import status_word, stop_word

TREE_WIDTH = 100


def run_page(run: Run, limit: int) -> RenderableType:
    """Result, tree and the path of the best with the advice it followed."""
    summary = run_summary(run)
    state = stop_word(summary.stop_reason) if summary.state == "stopped" else "it has not ended"
    parts: list[RenderableType] = [
        headline(run), best_line(run),
        Text(f"{summary.evaluations} attempts; {state}", style=QUIET), Text(""),
        *tree_lines(run, limit=limit, width=TREE_WIDTH),
    ]  # fmt: skip
    path = run.path(summary.best_id)
    if path:
        parts += [Text(""), Text("how it got there", style="bold")]
        parts += [_step(candidate_view(run, node_id)) for node_id in path]
    energy = energy_view(run)
    if isinstance(energy, EnergyView):
        parts += [Text(""), Text("speed and energy", style="bold"), front_page(energy)]
    return Group(*parts)


def _step(view: CandidateView) -> RenderableType:
    line = Text(f"{view.id} ").append(_verdict(view)).append(f"  {safe(view.title)}")
    items = view.received.items if view.received else ()
    advice = next((i for i in items if i.tool in view.acted_on), items[0] if items else None)
    if advice is None:
        return line
    return Group(line, Padding(Text(f"told: {safe(advice.title)}", style=QUIET), (0, 0, 0, 6)))


def _verdict(view: CandidateView) -> Text:
    if view.speedup is None:
        return Text(status_word(view.status), style=FAIL)
    gain = f" ({times(view.gain)} over {view.parent_id})" if view.gain else ""
    return Text(times(view.speedup), style=ACCENT).append(gain, style=QUIET)


def node_page(view: CandidateView) -> RenderableType:
    """One attempt: why, what it was told, what it changed, what came of it."""
    parts: list[RenderableType] = [
        Text(f"{view.id}  {safe(view.title)}", style="bold"),
        Text(f"{view.mode}, from {view.parent_id or 'scratch'}, by {safe(view.writer)}",
             style=QUIET),
    ]  # fmt: skip
    if view.decision and view.decision.text:
        parts += _titled("why here", Text(safe(view.decision.text)))
    if view.received is not None:
        parts += _titled("guidance it received", Text(printable(view.received.text)))
    parts += _titled("what it changed", diff_text(view.diff))
    if view.outcome is not None:
        parts += _titled("verdict", outcome_page(view.outcome))
    if view.diagnosis is not None:
        parts += _titled("what the tools then said", diagnosis_page(view.diagnosis))
    return Group(*parts)


def _titled(title: str, content: RenderableType) -> list[RenderableType]:
    return [Text(""), Text(title, style=QUIET), content]


def diff_text(view: DiffView) -> Text:
    """A unified difference."""
    text = Text()
    style = {"add": "green", "remove": "red", "skip": QUIET, "same": ""}
    sign = {"add": "+ ", "remove": "- ", "skip": "... ", "same": "  "}
    for line in view.lines:
        text.append(f"{sign[line.kind]}{printable(line.text)}\n", style=style[line.kind])
    return text if view.lines else Text("nothing", style=QUIET)


def compare_page(view: CompareView) -> RenderableType:
    """Two runs side by side."""
    table = grid("", "first", "second")
    for row in view.rows:
        table.add_row(
            row.name, safe(row.first), safe(row.second), style=QUIET if row.same else None
        )
    parts: list[RenderableType] = [table]
    parts += [Text(f"caution: {warning}", style=FAIL) for warning in view.warnings]
    if view.ratio is not None:
        first = view.ratio >= 1
        ratio = view.ratio if first else 1 / view.ratio
        parts.append(Text(f"The {'first' if first else 'second'} run's kernel is {times(ratio)} "
                          "as fast as the other's.", style="bold"))  # fmt: skip
    parts += _titled("from the first best file to the second", diff_text(view.diff))
    return Group(*parts)
