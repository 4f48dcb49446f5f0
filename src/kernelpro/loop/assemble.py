"""Builds what a run needs: the facts it starts from, and its collaborators.

Packages that import torch are imported on first use, so that looking at runs stays quick.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.metadata
import platform
from collections.abc import Callable
from pathlib import Path

from kernelpro import __version__
from kernelpro.errors import UserError
from kernelpro.executors.base import place_of
from kernelpro.hardware.base import peaks as peaks_of
from kernelpro.hardware.base import probe
from kernelpro.loop.base import Collaborators, Profiler, Referee
from kernelpro.loop.budget import check_budget, check_parallel
from kernelpro.loop.examining import InProcess
from kernelpro.proposers.base import PROPOSERS, Proposer
from kernelpro.proposers.llm.assemble import llm_writer
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.graph import Graph
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile
from kernelpro.search.base import STRATEGIES, Strategy

NOT_EXPORTABLE = "not_exportable"
"""Label of a problem without a graph: the playbook cannot read it, other writers can."""

Prepare = Callable[[Problem, RunConfig, str, Path], RunStarted]
Assemble = Callable[[RunStarted, Path], Collaborators]


def prepare(problem: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
    """Resolve the device, measure its peaks, export the problem and lint it.

    ``UserError`` for an impossible configuration, ``MachineError`` for a machine that cannot.
    """
    check_config(config)
    return survey(problem, config, run_id, cache_root)


def check_config(config: RunConfig) -> None:
    """``UserError`` for a budget, search or writer that cannot be."""
    check_budget(config.budget)
    check_parallel(config.parallel)
    strategy_of(config)
    writer_of(config)


def survey(problem: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
    """The part of :func:`prepare` that needs the device; workers do it for controllers."""
    from kernelpro.evaluation.lint import lint_problem
    from kernelpro.problems.loader import check_problem

    device = probe(config.device)
    check_problem(problem, device.id)
    graphs, labels = _graphs(problem, device.id)
    return RunStarted(
        run_id=run_id,
        problem=problem,
        graphs=graphs,
        config=dataclasses.replace(config, device=device.id),
        device=device,
        peaks=peaks_of(device, cache_root=cache_root),
        labels=tuple(dict.fromkeys((*lint_problem(problem, device).labels, *labels))),
        versions=_versions(),
    )


def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
    """Strategy, writer and examiner of a run, from the facts it started with."""
    from kernelpro.evaluation.referee import Referee as RealReferee

    writer = writer_of(started.config, cache_root)
    referee = RealReferee(
        started.problem, started.device, started.config.evaluation,
        cache_root=cache_root, peaks=started.peaks,
    )  # fmt: skip
    return Collaborators(
        strategy=strategy_of(started.config),
        writer=writer,
        examiner=InProcess(
            referee,
            profiler_of(started, referee),
            started.config,
            place_of(started.device, executor="in-process", worker="controller"),
        ),
    )


def strategy_of(config: RunConfig) -> Strategy:
    """The search strategy by name; ``UserError`` for an unknown name or option."""
    factory = STRATEGIES.load(config.search)
    try:
        strategy: Strategy = factory(
            seed=config.seed, objective=config.objective, **config.search_options
        )
    except TypeError as error:
        raise UserError(f"Search {config.search!r} cannot take its options: {error}") from error
    return strategy


def writer_of(config: RunConfig, cache_root: Path | None = None) -> Proposer:
    """The writer: ``external``, a registered name, ``name:argument``, or ``provider:model``."""
    name, _, argument = config.writer.partition(":")
    known = PROPOSERS.names()
    if name not in known and argument:
        return llm_writer(config, cache_root)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(
            f"Unknown writer {name!r}.{hint} Known: {', '.join(known)}, and any chat model as "
            "provider:model, for example anthropic:claude-sonnet-4-6 or ollama:qwen3-coder:30b"
        )
    try:
        writer: Proposer = PROPOSERS.load(name)(*([argument] if argument else []))
    except TypeError as error:
        raise UserError(f"The writer {name!r} cannot be made from {config.writer!r}") from error
    return writer


def profiler_of(started: RunStarted, referee: Referee) -> Profiler:
    """Profiles accepted candidates from what their evaluation left in the build folder."""
    from kernelpro.profiling.profiler import profile_candidate

    graph = started.graphs[0] if started.graphs else None

    def profile(candidate: Candidate, outcome: Outcome) -> Profile:
        return profile_candidate(
            started.problem,
            candidate.proposal.source,
            referee.build_root(candidate.source_hash),
            started.device,
            started.peaks,
            outcome,
            graph,
            more=True,
        )

    return profile


def check_same_device(started: RunStarted) -> None:
    """``UserError`` if this machine's device is not the one the run was measured on."""
    device = probe(started.config.device)
    if device.uuid != started.device.uuid:
        raise UserError(
            f"The run was measured on {started.device.name} ({started.device.uuid}); this machine "
            f"has {device.name} ({device.uuid}). Times would not compare: start a new run here"
        )


def _graphs(problem: Problem, device_id: str) -> tuple[tuple[Graph, ...], tuple[str, ...]]:
    from kernelpro.problems.export import export_graphs

    try:
        return export_graphs(problem, device_id), ()
    except UserError:
        return (), (NOT_EXPORTABLE,)


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    # Not from the metadata: a source tree on PYTHONPATH has none.
    own = {"kernelpro": __version__, "python": platform.python_version()}
    return {**own, **found, "platform": platform.platform()}
