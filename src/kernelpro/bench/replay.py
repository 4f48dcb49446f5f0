"""Runs of the real loop whose referee answers from a bank of evaluations.

What is real: problems, writer, search, memory, diagnosis, and every outcome and profile, each
measured by the real referee in the sandbox. What is replayed: an evaluation that the bank holds
is not repeated; the run hears one of its sessions, with rounds resampled by the run's seed, so
that it meets the noise that was measured. The same candidate under the same seed sounds the same
to every arm (common random numbers), which pairs the arms.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from kernelpro.bench.ablation import RunTrial, Trial
from kernelpro.bench.bank import Measured
from kernelpro.bench.laboratory import Laboratory
from kernelpro.bench.trials import evaluated, failures_of
from kernelpro.loop.assemble import strategy_of, writer_of
from kernelpro.loop.base import Collaborators
from kernelpro.loop.examining import InProcess
from kernelpro.loop.run import start_run
from kernelpro.proposers.base import Proposer
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import NodeFinished, RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.schema.usage import Usage
from kernelpro.search.incumbent import Incumbent
from kernelpro.text import content_hash


class BankReferee:
    """Answers for one run from the bank; implements ``loop.base.Referee``."""

    def __init__(self, laboratory: Laboratory, started: RunStarted) -> None:
        self._laboratory = laboratory
        self._started = started

    def evaluate(
        self, source: str, *, checks: Literal["fast", "full"] = "full", seed: int | None = None
    ) -> Outcome:
        """One of the measured sessions, with its rounds resampled."""
        return self._heard(source, "search")

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """Another draw for each of the finalists."""
        return [self._heard(source, "finalists") for source in sources]

    def build_root(self, source_hash: str) -> Path:
        """There is none: nothing was built for this run."""
        raise FileNotFoundError(source_hash)

    def close(self) -> None:
        """Nothing to end: the laboratory outlives the run."""

    def profile(self, candidate: Candidate, outcome: Outcome) -> Profile:
        """The profile taken when the candidate was first accepted."""
        found = self._laboratory.evaluate(self._started, candidate.proposal.source).profile
        assert found is not None, "an accepted candidate was profiled"
        return found

    def known(self, source: str) -> Measured:
        """All that the bank holds of a source."""
        return self._laboratory.evaluate(self._started, source)

    def speedup(self, source: str) -> float:
        """What the bank holds for true; 1.0 for a candidate that was never accepted."""
        return self.known(source).speedup or 1.0

    def _heard(self, source: str, occasion: str) -> Outcome:
        measured = self._laboratory.evaluate(self._started, source)
        seed = f"{self._started.config.seed}:{occasion}:{content_hash(source)}"
        return resampled(measured, random.Random(seed))


def resampled(measured: Measured, draw: random.Random) -> Outcome:
    """One session drawn from those measured, its rounds drawn again with replacement.

    Baseline and candidate use the same rounds, as they were timed in turns. The interval keeps
    its relative width.
    """
    outcome = draw.choice(measured.outcomes)
    latency, eager = outcome.latency, outcome.baselines.get("eager")
    if outcome.speedup is None or latency is None or eager is None:
        return outcome
    rounds = min(len(latency.rounds), len(eager.rounds))
    if rounds < 2:
        return outcome
    picks = [draw.randrange(rounds) for _ in range(rounds)]
    slower = _shift(latency.rounds[:rounds], picks)
    factor = _shift(eager.rounds[:rounds], picks) / slower
    interval = outcome.speedup_ci95
    return dataclasses.replace(
        outcome,
        speedup=outcome.speedup * factor,
        speedup_ci95=None if interval is None else (interval[0] * factor, interval[1] * factor),
        latency=dataclasses.replace(
            latency,
            median_us=latency.median_us * slower,
            ci95_us=(latency.ci95_us[0] * slower, latency.ci95_us[1] * slower),
        ),
        evidence={**outcome.evidence, "resampled": True},
    )


def _shift(rounds: tuple[float, ...], picks: list[int]) -> float:
    """Median of the picked rounds over the median of all."""
    return statistics.median(rounds[i] for i in picks) / statistics.median(rounds)


class ClosedWriter:
    """Lets a writer propose only sources of a given set: a closed world of known outcomes."""

    def __init__(self, writer: Proposer, known: frozenset[str]) -> None:
        self._writer = writer
        self._known = known
        self._passed_over: set[str] = set()

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The writer's first proposal that is in the set; None when it has no other."""
        while True:
            seen = request.seen_hashes | self._passed_over
            proposal = self._writer.propose(dataclasses.replace(request, seen_hashes=seen))
            if proposal is None:
                return None
            source_hash = content_hash(proposal.source)
            if source_hash in self._known or source_hash in seen:
                return proposal
            self._passed_over.add(source_hash)

    def usage(self) -> tuple[Usage, ...]:
        """Of the writer."""
        return self._writer.usage()


Watch = Callable[[str, list[NodeFinished], BankReferee], None]


def bank_trial(
    load: Callable[[str], Problem], laboratory: Laboratory, *,
    write: Callable[[RunConfig], Proposer] = writer_of, watch: Watch | None = None,
    closed: bool = False,
) -> RunTrial:  # fmt: skip
    """Trials by the real loop on banked evaluations. Finals are the bank's best estimates.

    ``watch`` is told the problem, the nodes of each run and its referee. ``closed``: nothing is
    measured; the writer may propose only what the bank holds.
    """

    def run(arm: str, config: RunConfig, problem: str, seed: int) -> Trial:
        facts = laboratory.started(load(problem))
        config = dataclasses.replace(
            config, device=facts.device.id, evaluation=facts.config.evaluation
        )
        referee = BankReferee(laboratory, dataclasses.replace(facts, config=config))
        with tempfile.TemporaryDirectory(prefix="kernelpro-bank-") as folder:
            writer = write(config)
            if closed:
                known = map(content_hash, laboratory.bank.sources(facts.problem.name))
                writer = ClosedWriter(writer, frozenset(known))
            result, nodes = _replayed(facts, config, referee, writer, Path(folder))
        if result.stop_reason == "interrupted":  # half a run is no trial
            raise KeyboardInterrupt
        if watch is not None:
            watch(problem, nodes, referee)
        best = result.best
        failures, repeated = failures_of(nodes)
        return Trial(
            arm=arm, problem=problem, seed=seed,
            best_so_far=tuple(_incumbents(nodes, config, referee)),
            final=1.0 if best is None else referee.speedup(best.proposal.source),
            failures=failures, repeated_failures=repeated,
            budget=config.budget.evaluations or 0, stopped=result.stop_reason,
        )  # fmt: skip

    return run


def _replayed(
    facts: RunStarted, config: RunConfig, referee: BankReferee, writer: Proposer, folder: Path
) -> tuple[RunResult, list[NodeFinished]]:
    """A whole run of the real loop in ``folder``: its result and the nodes it paid for."""

    def begin(_: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
        return dataclasses.replace(facts, config=config, run_id=run_id)

    def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
        return Collaborators(
            strategy=strategy_of(started.config), writer=writer,
            examiner=InProcess(referee, referee.profile, started.config),
        )  # fmt: skip

    result = start_run(
        facts.problem, config, runs_root=folder, cache_root=folder, prepare=begin,
        assemble=assemble,
    )  # fmt: skip
    return result, evaluated(Path(result.folder))


def _incumbents(
    nodes: list[NodeFinished], config: RunConfig, referee: BankReferee
) -> Iterator[float]:
    """Best estimate of the candidate that the run held for best after each evaluation."""
    incumbent = Incumbent(config.objective)
    sources: dict[str, str] = {}
    for node in nodes:
        assert node.candidate is not None
        sources[node.candidate.id] = node.candidate.proposal.source
        incumbent.add(node.tell)
        best = incumbent.best()
        yield 1.0 if best is None else referee.speedup(sources[best])
