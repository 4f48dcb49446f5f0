"""Ask and tell: a person or an agent writes the candidates, kernelpro judges and advises.

Everything is in the run folder, so each call may come from another process, or after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernelpro import environ
from kernelpro.api.evaluation import load, read_candidate
from kernelpro.api.executing import run_parts
from kernelpro.api.limits import budget_of
from kernelpro.api.optimize import write_results
from kernelpro.api.runs import find_run, runs_folder, show_run
from kernelpro.api.writers import EXTERNAL
from kernelpro.errors import UserError
from kernelpro.executors.base import Executor
from kernelpro.schema.candidate import Mode
from kernelpro.schema.config import EvaluationConfig, RunConfig
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Precision
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import StopReason

if TYPE_CHECKING:
    from kernelpro.loop import turns


BEST = "best"
"""What ``ask`` calls the best attempt so far."""


class Started(NamedTuple):
    """A run that waits for its first candidate."""

    run_id: str
    folder: str


class Request(NamedTuple):
    """One open request of a run."""

    run_id: str
    request: int
    """What ``tell`` is given with the answer."""
    parent: str | None
    mode: Mode
    prompt: str
    """Everything a writer needs, as Markdown."""


class Told(NamedTuple):
    """What came of an answer."""

    run_id: str
    folder: str
    request: int
    node: str
    outcome: Outcome
    guidance: Guidance | None
    best: str | None
    """Best node so far."""
    duplicate_of: str | None
    """An earlier node with the same source, whose outcome this is."""
    already: bool = False
    """True if the request had been answered before: this is that answer's outcome."""
    stopped: StopReason | None = None
    """Set if this answer ended the run."""


def start(
    problem: Any,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    evaluations: int | None = None,
    search: str = "mcts",
    seed: int = 0,
    evaluation: EvaluationConfig | None = None,
    executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
) -> Started:
    """Begin a run whose candidates come through :func:`tell`.

    ``executor``: where the problem is surveyed, which decides the run's device model; None = here,
    on ``device``. A run that was surveyed elsewhere is told on an executor, too.
    """
    from kernelpro.hardware import resolve_device
    from kernelpro.loop.run import create_run

    config = RunConfig(
        device=resolve_device(device) if executor is None else device, writer=EXTERNAL,
        search=search, seed=seed, budget=budget_of({"evaluations": evaluations}),
        evaluation=evaluation or EvaluationConfig(checks="fast"),
    )  # fmt: skip
    with run_parts(executor) as parts:
        folder = create_run(
            load(problem, inputs, precision), config, runs_root=runs_folder(runs_root),
            cache_root=environ.cache_root(), prepare=parts.prepare,
        )  # fmt: skip
    return Started(folder.name, str(folder))


def ask(
    run: Path | str, *, count: int = 1, parent: str | None = None,
    runs_root: Path | str | None = None,
) -> list[Request]:  # fmt: skip
    """The open requests of a run, and as many new ones as make ``count``.

    ``parent``: an attempt to go on from (``n0003``; ``best`` for the best so far), where you know
    better than the search; only requests of that kind are given then.
    Asking again gives the same requests until they are answered. Empty if the run is over: its
    budget is used up, or the search has nothing left to expand.
    """
    from kernelpro.loop import turns
    from kernelpro.proposers.external import request_text

    if count < 1:
        raise UserError(f"count says how many requests to have open, at least 1, not {count}")
    folder = _external(run, runs_root)
    chosen = parent
    if parent == BEST and (chosen := show_run(folder).best_id) is None:
        raise UserError("No attempt was accepted yet: ask without naming one")
    return [
        Request(
            run_id=folder.name, request=request.ask.id, parent=request.ask.parent_id,
            mode=request.ask.mode, prompt=request_text(request),
        )
        for request in turns.ask(folder, count, parent_id=chosen)
    ]  # fmt: skip


def tell(
    run: Path | str,
    candidate: Path | str,
    *,
    request: int | None = None,
    title: str = "",
    rationale: str = "",
    executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
) -> Told:
    """Evaluate ``candidate`` (a path or its text) as the answer to an open ``request``.

    The text is a Python file, which may say ``Title:``, ``Answers:`` (tools whose findings it acts
    on) and ``Move:`` in the comments at its top, or a whole reply as the request describes it, for
    instance with SEARCH/REPLACE blocks.

    ``request`` None takes the only open one. Telling the same request twice gives the first
    answer's outcome again and evaluates nothing. An answer that uses up the budget ends the run:
    the finalists are measured again, and ``best.py`` and the report are written. ``executor``:
    where it is evaluated; None = here.
    """
    folder = _external(run, runs_root)
    if (answered := _answered(folder, request)) is not None:
        return answered
    given = _given(request, candidate, title, rationale)
    return _tell(folder, [given], executor)[0]


def tell_all(
    run: Path | str,
    answers: Mapping[int, Path | str],
    *,
    executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
) -> list[Told]:
    """As :func:`tell` for several requests at once, side by side if the executor has room."""
    folder = _external(run, runs_root)
    given = [_given(number, candidate) for number, candidate in answers.items()]
    return _tell(folder, given, executor)


def _tell(folder: Path, given: list[turns.Given], executor: str | Executor | None) -> list[Told]:
    from kernelpro.loop import turns
    from kernelpro.loop.run import opened
    from kernelpro.loop.stopping import reason_to_stop

    with (
        run_parts(executor) as parts,
        opened(folder, cache_root=environ.cache_root(), assemble=parts.assemble) as controller,
    ):
        # Another process may have answered some before this one got in.
        earlier = {one.ask_id: _answered(folder, one.ask_id) for one in given}
        new = [one for one in given if earlier[one.ask_id] is None]
        state = controller.state
        requests = [] if state.stopped or not new else controller.session.requests(1)
        open_asks = [request.ask.id for request in requests]
        new = [one._replace(ask_id=_chosen(one.ask_id, open_asks)) for one in new]
        nodes = iter(turns.tell_all(controller, new))
        best = state.strategy.best()
        told = [earlier[one.ask_id] or _told(folder, next(nodes), best) for one in given]
        over = reason_to_stop(state, controller.session.elapsed_s())
        if over is None or not new:
            return told
        result = controller.conclude(lambda: over)
        parts.release(result)
    write_results(result)
    return [*told[:-1], told[-1]._replace(stopped=result.stop_reason)]


def _given(
    request: int | None, candidate: Path | str, title: str = "", rationale: str = ""
) -> turns.Given:
    from kernelpro.loop.turns import Given

    named = title or (candidate.name if isinstance(candidate, Path) else "")
    return Given(request, read_candidate(candidate), named, rationale)


def finish(
    run: Path | str, *, executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
) -> RunResult:  # fmt: skip
    """End a run of :func:`start` now: measure the finalists again, write best file and report.

    ``executor``: where they are measured; None = here.
    """
    from kernelpro.loop import turns

    folder = _external(run, runs_root)
    with run_parts(executor) as parts:
        result = turns.conclude(folder, cache_root=environ.cache_root(), assemble=parts.assemble)
        parts.release(result)
    write_results(result)
    return result


def _external(run: Path | str, runs_root: Path | str | None) -> Path:
    from kernelpro.loop.run import started_of

    folder = find_run(run, runs_root=runs_root)
    writer = started_of(folder).config.writer
    if writer != EXTERNAL:
        raise UserError(
            f"The run {folder.name} is written by {writer}. Start one for your own candidates: "
            "kernelpro start PROBLEM"
        )
    return folder


def _chosen(number: int | None, open_asks: list[int]) -> int:
    if not open_asks:
        raise UserError(
            "The run is over: its budget is used up, or nothing is left to expand. Its result: "
            "kernelpro report RUN"
        )
    if number is None and len(open_asks) > 1:
        raise UserError(f"Several requests are open, {open_asks}: say which one you answer")
    if number is not None and number not in open_asks:
        raise UserError(f"Request {number} is not open; open: {open_asks}. See kernelpro ask")
    return open_asks[0] if number is None else number


def _answered(folder: Path, request: int | None) -> Told | None:
    if request is None:
        return None
    run = show_run(folder)
    for finished in run.nodes.values():
        if finished.tell.ask_id == request:
            return _told(folder, finished, run.best_id)._replace(already=True)
    return None


def _told(folder: Path, finished: NodeFinished, best: str | None) -> Told:
    assert finished.candidate is not None and finished.outcome is not None
    return Told(
        run_id=folder.name, folder=str(folder), request=finished.tell.ask_id,
        node=finished.candidate.id, outcome=finished.outcome, guidance=finished.guidance,
        best=best, duplicate_of=finished.duplicate_of,
    )  # fmt: skip
