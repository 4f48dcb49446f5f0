"""A run as rich renderables: status line, tree, and the closing summary.

All candidate text goes through :func:`safe`: a candidate cannot move the cursor or change colours.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelpro.text import format_us, printable
from kernelpro.views.focus_view import FocusRow, focus_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, compile_over_eager, run_summary
from kernelpro.views.words import label_words, status_word, stop_word

ACCENT, FAIL, QUIET = "green", "red", "dim"
MAX_GUIDE = 24
"""Columns given to the tree's lines; deeper levels share the last ones."""


def safe(text: str) -> str:
    """Candidate text on one line, without anything a terminal would act on."""
    return " ".join(printable(text).split())


def times(ratio: float | None) -> str:
    """``3.42x``; an ASCII sign, so that every terminal shows it."""
    return f"{ratio:.2f}x" if ratio is not None else "-"


def grid(*heads: str, right: Iterable[int] = ()) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, header_style=QUIET, show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number in set(right) else "left",
                         no_wrap=number == 0, overflow="fold")  # fmt: skip
    return table


def clock(seconds: float) -> str:
    """``1:05`` or ``1:02:03``."""
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole % 3600 // 60
    rest = f"{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
    return f"{hours}:{rest}" if hours else rest


def headline(run: Run) -> Text:
    """What is being optimised, where, by whom."""
    if run.started is None:
        return Text("starting", style=QUIET)
    config = run.started.config
    text = Text(safe(run.started.problem.name), style="bold", overflow="ellipsis", no_wrap=True)
    text.append(f" on {safe(run.started.device.name)}", style="not bold")
    return text.append(f"  {config.writer}, {config.search}", style=f"not bold {QUIET}")


def best_line(run: Run) -> Text:
    """The best so far, in one line."""
    summary = run_summary(run)
    if summary.best_id is None:
        return Text("no accepted candidate yet", style=QUIET)
    if summary.keep_eager:
        nearest = f"{times(summary.speedup)}, {summary.best_id}"
        return Text(f"nothing beats eager beyond the noise (nearest: {nearest})")
    text = Text("best ").append(times(summary.speedup), style=f"bold {ACCENT}")
    text.append(f" over eager ({summary.best_id})")
    if summary.speedup_over_compile is not None:
        text.append(f", {times(summary.speedup_over_compile)} over torch.compile", style=QUIET)
    return text


def tree_lines(run: Run, *, limit: int, width: int) -> list[Text]:
    """The tree in at most ``limit`` nodes, each line within ``width`` columns."""
    view = focus_view(run, limit)
    lines = [_tree_line(row, width) for row in view.rows]
    if view.hidden:
        lines.append(Text(f"... {view.hidden} more", style=QUIET))
    return lines


def _tree_line(row: FocusRow, width: int) -> Text:
    node = row.node
    guide = row.guide if len(row.guide) <= MAX_GUIDE else "..." + row.guide[-(MAX_GUIDE - 3) :]
    line = Text(guide, style=QUIET, no_wrap=True, overflow="ellipsis")
    line.append(f"{node.id} ", style="not dim")
    if node.speedup is not None:
        style = f"not dim bold {ACCENT}" if node.is_best else f"not dim {ACCENT}"
        line.append(times(node.speedup), style if node.on_best_path else "not dim")
    else:
        line.append(status_word(node.status), style=f"not dim {FAIL}")
    if node.is_best:
        line.append(" best", style=f"not dim bold {ACCENT}")
    same = f" (same as {node.duplicate_of})" if node.duplicate_of else ""
    more = f" +{row.hidden}" if row.hidden else ""
    line.append(f"  {safe(node.title)}{same}", style=QUIET)
    line.truncate(width - len(more), overflow="ellipsis")
    return line.append(more, style=QUIET)


def attempt_line(run: Run, node_id: str, total: int | None) -> str:
    """One finished attempt as a plain line."""
    finished = run.nodes[node_id]
    candidate, outcome = finished.candidate, finished.outcome
    count = f"{run.charged}/{total}" if total else str(run.charged)
    verdict = (
        times(outcome.speedup)
        if outcome and outcome.ok
        else status_word(outcome.status if outcome else None)
    )
    origin = candidate.parent_id if candidate and candidate.parent_id else "scratch"
    title = safe(candidate.proposal.title) if candidate else ""
    best = times(run.speedup(run.best_id)) if run.best_id else "-"
    return f"[{count}] {node_id} from {origin}: {verdict}, best {best}; {title}"


def closing(run: Run, folder: Path) -> RenderableType:
    """The end of a run: baselines and winner, why it stopped, which files were written."""
    summary = run_summary(run)
    parts: list[RenderableType] = [_verdict(summary)]
    if summary.latency_us is not None:
        parts += [Text(""), _sides(run, summary)]
    parts += [Text(""), _files(summary, folder)]
    return Group(*parts)


def _verdict(summary: RunSummary) -> Text:
    reason = stop_word(summary.stop_reason)
    tail = f"\n{summary.evaluations} attempts in {clock(summary.elapsed_s)}; ended: {reason}"
    if summary.speedup is None:
        text = Text(f"No attempt on {safe(summary.problem)} was accepted.", style="bold")
    elif summary.keep_eager:
        text = Text(f"Keep eager PyTorch for {safe(summary.problem)}: no attempt is faster beyond "
                    f"the noise (nearest: {times(summary.speedup)}).", style="bold")  # fmt: skip
    else:
        about = "roughly " if summary.loose else ""
        text = Text(f"{safe(summary.problem)}: {about}")
        text.append(times(summary.speedup), style=f"bold {ACCENT}")
        text.append(" as fast as eager PyTorch")
        if summary.speedup_over_compile is not None:
            text.append(f", {times(summary.speedup_over_compile)} as fast as torch.compile")
        text.append(f" ({summary.checks_passed} integrity checks passed)")
    if summary.loose and summary.speedup_ci95 is not None:
        low, high = summary.speedup_ci95
        text.append(f"\nThe 95 % interval is wide ({low:.2f} to {high:.2f}): measure again on a "
                    "quiet machine before you quote it.", style="not bold yellow")  # fmt: skip
    text.append(tail, style=f"not bold {QUIET}")
    if summary.labels:
        said = label_words(summary.labels)
        text.append(f"\nThe task itself is flagged ({said}): leave it out of aggregates.",
                    style=f"not bold {FAIL}")  # fmt: skip
    return text


def _sides(run: Run, summary: RunSummary) -> Table:
    outcome = run.outcome(summary.best_id) if summary.best_id else None
    table = Table(box=None, pad_edge=False, header_style=QUIET)
    table.add_column("version")
    for name in ("median", "95 % interval", "speed-up"):
        table.add_column(name, justify="right")
    if outcome is None or outcome.latency is None:
        return table
    sides = [*outcome.baselines.items(), (summary.best_id or "best", outcome.latency)]
    for name, latency in sides:
        low, high = latency.ci95_us
        ratio = {"eager": 1.0, "compile": compile_over_eager(outcome)}.get(name)
        own = name == summary.best_id
        style = f"bold {ACCENT}" if own and not summary.keep_eager else None
        table.add_row(
            {"compile": "torch.compile"}.get(name, name), format_us(latency.median_us),
            f"{format_us(low)} .. {format_us(high)}",
            times(outcome.speedup if own else ratio), style=style,
        )  # fmt: skip
    return table


def _files(summary: RunSummary, folder: Path) -> Text:
    lines = []
    if (folder / "best.py").is_file():
        lines.append(f"best file  {folder / 'best.py'}")
    if (folder / "report.html").is_file():
        lines.append(f"report     {folder / 'report.html'}")
    lines.append(f"browser    kernelpro serve --runs {folder.parent}")
    resume = f"kernelpro optimize --resume {summary.run_id}"
    if summary.writer == "external":
        return Text("\n".join(lines), overflow="fold")
    if summary.stop_reason in {"interrupted", "error", None}:
        lines.append(f"go on      {resume}")
    else:
        lines.append(f"go on      {resume} --evaluations N")
    return Text("\n".join(lines), overflow="fold")
