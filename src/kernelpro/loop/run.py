"""Starts a run in a new folder, goes on with an old one, or reads the result of any."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelpro.errors import ProviderError, StoreError, UserError
from kernelpro.loop.assemble import (
    Assemble,
    Prepare,
    assemble,
    check_same_device,
    prepare,
    strategy_of,
)
from kernelpro.loop.base import Listener
from kernelpro.loop.budget import check_budget
from kernelpro.loop.controller import Controller
from kernelpro.loop.library import Library, family_of
from kernelpro.loop.outcome_of_run import result_of
from kernelpro.loop.session import Session
from kernelpro.loop.state import RunState, by_the_page
from kernelpro.proposers.external import EXTERNAL
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Event, NodeFinished, Resumed, RunStarted, Stopped
from kernelpro.schema.problem import Problem
from kernelpro.schema.result import RunResult
from kernelpro.store.sqlite import RunStore

_UNFINISHED = ("interrupted", "error")
"""Stop reasons after which a run goes on without being given more budget."""


def start_run(
    problem: Problem, config: RunConfig, *, runs_root: Path, cache_root: Path,
    listeners: Iterable[Listener] = (), prepare: Prepare = prepare, assemble: Assemble = assemble,
    run_id: str | None = None,
) -> RunResult:  # fmt: skip
    """Optimise ``problem`` in a new run folder under ``runs_root``, named by ``run_id``.

    ``UserError``, ``MachineError`` or ``ProviderError`` end the run; what was recorded stays and
    can be resumed.
    """
    if config.writer == EXTERNAL:
        raise UserError(
            "An external writer cannot be run to the end from here: start the run, then hand in "
            "candidates with: kernelpro ask RUN, kernelpro tell RUN FILE"
        )
    listeners = tuple(listeners)
    folder = create_run(
        problem, config, runs_root=runs_root, cache_root=cache_root, listeners=listeners,
        prepare=prepare, run_id=run_id,
    )  # fmt: skip
    with (
        _said_how_to_go_on(folder),
        opened(folder, cache_root=cache_root, listeners=listeners, assemble=assemble) as loop,
    ):
        return loop.run()


def create_run(
    problem: Problem, config: RunConfig, *, runs_root: Path, cache_root: Path,
    listeners: Iterable[Listener] = (), prepare: Prepare = prepare, run_id: str | None = None,
) -> Path:  # fmt: skip
    """A new run folder that holds the start of the run and nothing else; returns the folder.

    ``run_id``: its name; None = a new one.
    """
    run_id = run_id or new_run_id(problem.name)
    started = _with_lessons(prepare(problem, config, run_id, cache_root))
    folder = Path(runs_root) / run_id
    with RunStore.create(folder) as store:
        store.append(started)
    for listener in listeners:
        listener(started)
    return folder


def resume_run(
    folder: Path | str, *, cache_root: Path, listeners: Iterable[Listener] = (),
    budget: Budget | None = None, assemble: Assemble = assemble, same_device: bool = True,
) -> RunResult:  # fmt: skip
    """Go on with a run that was killed, interrupted, or is given a new ``budget``.

    A run that ended by itself and gets no new budget is left as it is; its result is returned.
    """
    folder = Path(folder)
    if budget is None and (done := finished_result(folder)) is not None:
        return done
    if budget is not None:
        check_budget(budget)
    if same_device:
        check_same_device(started_of(folder))
    with (
        _said_how_to_go_on(folder),
        opened(folder, cache_root=cache_root, listeners=listeners, assemble=assemble) as loop,
    ):
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        loop.session.record(Resumed(at=now, budget=budget))
        return loop.run()


@contextlib.contextmanager
def _said_how_to_go_on(folder: Path) -> Iterator[None]:
    """Adds to a model service's error that nothing is lost, and how to go on."""
    try:
        yield
    except ProviderError as error:
        raise ProviderError(
            f"{error}\nEverything until here is kept. Go on with: kernelpro optimize --resume "
            f"{folder.name}"
        ) from error


@contextlib.contextmanager
def opened(
    folder: Path, *, cache_root: Path, listeners: Iterable[Listener] = (),
    assemble: Assemble = assemble,
) -> Iterator[Controller]:  # fmt: skip
    """A controller on an existing run, rebuilt from its events; locked until closed."""
    with RunStore.open(folder, writable=True) as store:
        started = _first(store)
        collaborators = assemble(started, cache_root)
        with contextlib.closing(collaborators.examiner):
            state = RunState(started, collaborators.strategy, store.event)
            session = Session(store, state, listeners=listeners)
            session.replay()
            yield Controller(session, collaborators)
            if state.stopped is not None and started.config.library is not None:
                Library(started.config.library).add(state, _nodes(store))


def _with_lessons(started: RunStarted) -> RunStarted:
    """The start of a run with what its library holds for its device and operators."""
    if started.config.library is None:
        return started
    library = Library(started.config.library)
    lessons = library.lessons(started.device.name, family_of(started.graphs))
    return dataclasses.replace(started, lessons=lessons)


def _nodes(store: RunStore) -> Iterator[NodeFinished]:
    recorded = (r.event for r in store.recorded(profiles=False))
    return (event for event in recorded if isinstance(event, NodeFinished))


def finished_result(folder: Path | str) -> RunResult | None:
    """The result of a run that ended by itself; None if it can be resumed as it is."""
    with RunStore.open(folder) as store:
        last = store.event(store.last_seq) if store.last_seq else None
    if not isinstance(last, Stopped) or last.reason in _UNFINISHED:
        return None
    return result_of(read_state(folder), Path(folder), last)


def read_result(folder: Path | str) -> RunResult:
    """The result so far of any run, read from its events."""
    state = read_state(folder)
    unfinished = Stopped(
        reason="interrupted", best_id=state.strategy.best(), detail="not finished; can be resumed"
    )
    return result_of(state, Path(folder), state.stopped or unfinished)


def read_state(folder: Path | str) -> RunState:
    """Everything a run knows, replayed from its folder without writing to it.

    The state holds recent attempts; an older one is read from the folder when it is asked for.
    """

    def read_event(seq: int) -> Event:
        with RunStore.open(folder) as store:
            return store.event(seq)

    with RunStore.open(folder) as store:
        started = _first(store)
        state = RunState(started, strategy_of(started.config), read_event)
        for seq, _, event in by_the_page(store.recorded(profiles=False)):
            state.apply(seq, event, replayed=True)
        return state


def started_of(folder: Path | str) -> RunStarted:
    """The first event of a run: its problem, configuration and device."""
    with RunStore.open(folder) as store:
        return _first(store)


def new_run_id(problem_name: str) -> str:
    """Sortable and readable: ``20260131-142530-softmax-3fa9``."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    slug = re.sub(r"[^a-z0-9]+", "-", problem_name.lower()).strip("-")[:40] or "problem"
    return f"{now}-{slug}-{secrets.token_hex(2)}"


def _first(store: RunStore) -> RunStarted:
    started = next(store.events(), None)
    if not isinstance(started, RunStarted):
        raise StoreError(f"The run in {store.folder} has no start: it was killed while created")
    return started
