"""Beyond one machine: campaigns, workers, and how well the machines were used."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelpro import environ
from kernelpro.api.aim import resolve_aim
from kernelpro.api.executing import opened_executor
from kernelpro.api.optimize import Listener, write_results
from kernelpro.api.runs import LATEST, find_run
from kernelpro.campaign.campaign import Campaign, Hear, Unreadable
from kernelpro.campaign.index import INDEX, CampaignIndex, Entry, SetAside, read_live
from kernelpro.errors import KernelproError, UserError
from kernelpro.executors.base import Executor
from kernelpro.executors.spool_worker import Served, WorkOptions, serve
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig
from kernelpro.schema.problem import Problem
from kernelpro.schema.search import Objective
from kernelpro.store.listing import summarise
from kernelpro.store.sqlite import RunStore, is_begun
from kernelpro.views.utilisation_view import UtilisationView, usage_of, utilisation_view

CAMPAIGN_EVALUATIONS = 60
"""Per problem, where a campaign is given no limit (the paper's budget)."""
PARALLEL = 4
"""Requests open at once in each run of a campaign: some are written while others are timed."""


class CampaignPage(NamedTuple):
    """A campaign as it stands."""

    folder: Path
    id: str
    entries: tuple[Entry, ...]
    utilisation: UtilisationView
    set_aside: tuple[SetAside, ...]
    """Results that did not count, and why."""
    live: dict[str, Any] | None
    """Capacity and health of the executor when its controller last looked; None if never."""


def start_campaign(
    problems: Sequence[Any],
    folder: Path | str,
    *,
    executor: str | Executor = "local",
    model: str = "playbook",
    evaluations: int | None = None,
    minutes: float | None = None,
    search: str = "mcts",
    objective: Objective = "latency",
    seed: int = 0,
    parallel: int = PARALLEL,
    active: int | None = None,
    evaluation: EvaluationConfig | None = None,
    hear: Hear = lambda entry: None,
    listeners: Sequence[Listener] = (),
) -> CampaignPage:
    """Optimise every one of ``problems`` (files, folders of files, or ``package.module:Class``).

    Each is a run of its own under ``folder/runs``; a problem that cannot be read or fails is noted
    and the others go on. ``evaluations`` and ``minutes`` are each run's budget (60 evaluations if
    neither is given), ``parallel`` its requests open at once, ``active`` how many runs are at work
    at a time. ``UserError`` if there is no problem or the executor cannot be opened. Ctrl-C ends
    it cleanly: go on with :func:`resume_campaign`.
    """
    loaded = _load_all(problems)
    if evaluations is None and minutes is None:
        evaluations = CAMPAIGN_EVALUATIONS
    aim = resolve_aim(objective, None, evaluation or EvaluationConfig(checks="fast"), None)
    config = RunConfig(
        device="auto", writer=model, search=search, objective=aim.objective, seed=seed,
        parallel=parallel, budget=Budget(evaluations=evaluations, minutes=minutes),
        evaluation=aim.evaluation,
    )  # fmt: skip
    # The executor first: one that cannot be opened shall not leave a campaign behind.
    with (
        opened_executor(executor) as opened,
        contextlib.closing(Campaign.create(Path(folder), loaded, config)) as campaign,
    ):
        _work(campaign, opened, active, again=False, hear=hear, listeners=listeners)
    return show_campaign(folder)


def resume_campaign(
    folder: Path | str,
    *,
    executor: str | Executor = "local",
    active: int | None = None,
    again: bool = False,
    hear: Hear = lambda entry: None,
    listeners: Sequence[Listener] = (),
) -> CampaignPage:
    """Go on with a campaign that was interrupted or whose controller died, on any executor.

    ``again``: runs that failed after they had begun are tried once more.
    """
    with contextlib.closing(Campaign(Path(folder))) as campaign:
        _work(campaign, executor, active, again=again, hear=hear, listeners=listeners)
    return show_campaign(folder)


def show_campaign(folder: Path | str) -> CampaignPage:
    """How a campaign stands; also while it is at work."""
    with contextlib.closing(CampaignIndex(Path(folder))) as index:
        entries = tuple(_so_far(index, entry) for entry in index.entries())
        return CampaignPage(
            folder=index.folder,
            id=index.id,
            entries=entries,
            utilisation=_utilisation_of(
                [index.runs / entry.run_id for entry in entries], worked=index.worked_s()
            ),
            set_aside=tuple(index.all_set_aside()),
            live=read_live(index.folder),
        )


def utilisation(
    run: Path | str = LATEST, *, runs_root: Path | str | None = None
) -> UtilisationView:
    """How well the machines of a run, or of a campaign's folder, were used."""
    with contextlib.suppress(OSError, ValueError):  # text that no path can be: no campaign either
        if (Path(run) / INDEX).is_file():
            return show_campaign(run).utilisation
    return _utilisation_of([find_run(run, runs_root=runs_root)], worked=None)


def work(
    spool: Path | str,
    *,
    device: str = "auto",
    results: Path | str | None = None,
    name: str | None = None,
    options: WorkOptions | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Served:
    """Be a worker of a spool until ``options`` or Ctrl-C end it.

    Jobs run whatever source they carry, in the sandbox: take them only from people you trust.
    """
    return serve(
        spool, device=device, results=results, name=name, options=options, say=say,
        cache_root=environ.cache_root(),
    )  # fmt: skip


def _work(
    campaign: Campaign, executor: str | Executor, active: int | None, *, again: bool, hear: Hear,
    listeners: Sequence[Listener],
) -> None:  # fmt: skip
    with opened_executor(executor) as opened:
        campaign.run(
            opened, cache_root=environ.cache_root(), active=active, again=again, hear=hear,
            on_result=write_results, listeners=listeners,
        )  # fmt: skip


def _load_all(problems: Sequence[Any]) -> list[Problem | Unreadable]:
    """Problems in the order given; a folder stands for the Python files in it."""
    from kernelpro.problems.loader import load_problem

    found: list[Problem | Unreadable] = []
    for reference in problems:
        path = Path(reference) if isinstance(reference, str | Path) else None
        inside = sorted(path.glob("*.py")) if path is not None and path.is_dir() else [reference]
        for one in inside:
            try:
                found.append(load_problem(one))
            except KernelproError as error:
                name = getattr(one, "stem", str(one))
                found.append(Unreadable(name, str(error).removeprefix(f"{name}: ")))
    if not any(isinstance(problem, Problem) for problem in found):
        reasons = "; ".join(f"{p.name}: {p.reason}" for p in found if isinstance(p, Unreadable))
        raise UserError(f"There is no problem to work on{f' ({reasons})' if reasons else ''}")
    return found


def _so_far(index: CampaignIndex, entry: Entry) -> Entry:
    """A run at work as its own store has it; the index hears of a run only at its end."""
    folder = index.runs / entry.run_id
    if entry.state != "running" or not is_begun(folder):
        return entry
    summary = summarise(folder)
    return dataclasses.replace(entry, speedup=summary.best_speedup, evaluations=summary.nodes)


def _utilisation_of(folders: Sequence[Path], *, worked: float | None) -> UtilisationView:
    usages = []
    for folder in folders:
        if is_begun(folder):
            with RunStore.open(folder) as store:
                usages.append(usage_of(store))
    return utilisation_view(usages, worked=worked)
