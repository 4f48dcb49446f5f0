"""The live view of ``kernelpro optimize``: a tree that redraws, or plain lines without a terminal.

Both are listeners of the loop: called with every event, told every stage, and closed at the end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from kernelpro import stages
from kernelpro.dashboard.drawing import (
    QUIET,
    attempt_line,
    best_line,
    clock,
    headline,
    safe,
    tree_lines,
)
from kernelpro.schema.event import Event, NodeFinished, Remeasured, RunStarted
from kernelpro.views.run import Run
from kernelpro.views.words import STAGE_DOING, plain

REFRESH_PER_SECOND = 4.0
MIN_TREE_ROWS = 4


class RunView(Protocol):
    """What the command line needs of a view."""

    run: Run

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        ...

    def stage(self, stage: str, detail: str = "") -> None:
        """What is being done now: building, verifying, timing, profiling ..."""
        ...

    def __enter__(self) -> RunView: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...  # fmt: skip


def terminal_view(console: Console, *, plain: bool = False, quiet: bool = False) -> RunView:
    """The richest view ``console`` can show."""
    if quiet:
        return QuietView()
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return PlainView(console)
    return LiveView(console)


class QuietView:
    """Keeps the run and shows nothing."""

    def __init__(self) -> None:
        self.run = Run()

    def __call__(self, event: Event) -> None:
        self.run.add(event)

    def stage(self, stage: str, detail: str = "") -> None:
        """Not shown."""

    def __enter__(self) -> QuietView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Nothing to close."""


class PlainView(QuietView):
    """One line per finished attempt."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        line = self._line(event)
        if line is not None:
            self._console.print(Text(line), soft_wrap=True)

    def _line(self, event: Event) -> str | None:
        match event:
            case RunStarted():
                return f"run {event.run_id}: {headline(self.run).plain}"
            case NodeFinished() if event.candidate is not None:
                return attempt_line(self.run, event.candidate.id, evaluations_budget(self.run))
            case Remeasured():
                return f"measured again: {event.node_id} {event.outcome.status.value}"
        return None


class LiveView(QuietView):
    """A tree that redraws in place, within the terminal's size as it is now."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._began = now()
        self._stage = ""
        self._guard = threading.Lock()
        self._steps = StepReader(self.stage)
        # The alternate screen: elsewhere a terminal that gets narrower wraps the lines drawn
        # before, and what is drawn next no longer covers them.
        self._live = Live(self, console=console, refresh_per_second=REFRESH_PER_SECOND,
                          screen=True, redirect_stdout=False, redirect_stderr=False)  # fmt: skip

    def __call__(self, event: Event) -> None:
        with self._guard:
            self.run.add(event)

    def stage(self, stage: str, detail: str = "") -> None:
        """Shown until the next one, behind the request it belongs to."""
        self._stage = safe(f"{STAGE_DOING.get(stage, plain(stage))} {detail}").strip()

    def __enter__(self) -> LiveView:
        self._steps.attach()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._live.stop()
        self._steps.detach()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._guard:
            yield self._drawn(options.max_width, options.size.height)

    def _elapsed(self) -> float:
        return self._now() - self._began

    def _drawn(self, width: int, height: int) -> Group:
        if self.run.started is None:
            return Group(Text(f"preparing: device, problem, baselines ({clock(self._elapsed())})"))
        status = Text(progress_line(self.run, self._elapsed()), no_wrap=True,
                      overflow="ellipsis")  # fmt: skip
        now = ": ".join(part for part in (waiting_for(self.run), self._stage) if part)
        stage = Text(now, style=QUIET, no_wrap=True, overflow="ellipsis")
        limit = max(MIN_TREE_ROWS, height - 7)
        tree = tree_lines(self.run, limit=limit, width=width)
        best = best_line(self.run)
        best.no_wrap, best.overflow = True, "ellipsis"
        return Group(headline(self.run), best, status, stage, Text(""), *tree)


class StepReader(logging.Handler):
    """Hands the steps that :mod:`kernelpro.stages` reports to a view."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(level=logging.INFO)
        self._show = show
        self._before = logging.NOTSET

    def attach(self) -> None:
        """Listen from now on."""
        self._before = stages.LOG.level
        stages.LOG.setLevel(logging.INFO)
        stages.LOG.addHandler(self)

    def detach(self) -> None:
        """Listen no more."""
        stages.LOG.removeHandler(self)
        stages.LOG.setLevel(self._before)

    def emit(self, record: logging.LogRecord) -> None:
        """One step."""
        self._show(record.getMessage())


def waiting_for(run: Run) -> str:
    """The requests that are being written, built and judged now."""
    asks = [run.asks[number] for number in sorted(run.open_asks)]
    said = [f"{ask.mode} {ask.parent_id or 'from scratch'}" for ask in asks]
    return "now: " + ", ".join(said) if said else ""


def evaluations_budget(run: Run) -> int | None:
    """How many evaluations the run may make; None = as many as fit into its time."""
    return run.budget.evaluations if run.started else None


def progress_line(run: Run, elapsed_s: float) -> str:
    """Evaluations, time and what is left of the budget."""
    budget, done = run.budget, run.charged
    count = f"{done}/{budget.evaluations}" if budget.evaluations else str(done)
    parts = [f"{count} evaluations", f"{clock(elapsed_s)} elapsed"]
    left = seconds_left(run, elapsed_s)
    if left is not None:
        parts.append(f"about {clock(left)} left")
    if budget.target_speedup is not None:
        parts.append(f"target {budget.target_speedup:.2f}x")
    return ", ".join(parts)


def seconds_left(run: Run, elapsed_s: float) -> float | None:
    """The smaller of the time budget's rest and the evaluations' rest at the pace so far."""
    if run.started is None:
        return None
    budget, rest = run.budget, []
    if budget.minutes is not None:
        rest.append(budget.minutes * 60 - elapsed_s)
    measured = [f.seconds for f in run.facts.values() if f.duplicate_of is None]
    if budget.evaluations is not None and measured:
        remaining = budget.evaluations - run.charged
        rest.append(remaining * sum(measured) / len(measured))
    return max(0.0, min(rest)) if rest else None
