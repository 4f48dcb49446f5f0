"""Compares arms of the loop at equal evaluation budget, paired over problems and seeds.

An arm is a change to a run's configuration. Trials are appended to a JSON-lines file as they
finish, so a stopped ablation goes on where it was; the summary is computed from that file alone.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.bench.statistics import (
    bootstrap_interval,
    evaluations_to_share,
    geometric_mean,
    head_to_head,
    signed_rank,
)
from kernelpro.errors import UserError
from kernelpro.schema.codec import CONFIG, dumps, loads
from kernelpro.schema.config import Budget, RunConfig

ARMS: dict[str, dict[str, Any]] = {
    "mcts": {"search": "mcts"},
    "mcts-paper": {"search": "mcts", "search_options": {"preset": "paper"}},
    "greedy": {"search": "greedy"},
    "beam": {"search": "beam"},
    "best-of-n": {"search": "best-of-n", "arm": "none"},
    "random": {"search": "random"},
    "none": {"arm": "none"},
    "raw": {"arm": "raw"},
    "full": {"arm": "full"},
    "proactive": {"proactive": True},
    "reactive": {"proactive": False},
    "memory": {"memory": True},
    "no-memory": {"memory": False},
    "greedy-no-memory": {"search": "greedy", "memory": False},
}
"""Arm name -> fields of ``RunConfig`` it changes. Independent attempts read no feedback."""

NEAR_BEST = 0.95
"""Share of the best known result that counts as found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of one arm."""

    arm: str
    problem: str
    seed: int
    best_so_far: tuple[float, ...]
    """Speed-up of the best candidate after each evaluation; 1.0 = none better than eager yet."""
    final: float
    """Speed-up of the winner after the second measurement; 1.0 = eager is kept."""
    failures: int = 0
    repeated_failures: int = 0
    """Moves that failed again under conditions they had already failed under."""
    simulated: bool = False
    run: str = ""
    """Folder of the recorded run; empty where none was kept."""
    budget: int = 0
    """Evaluations the run was allowed; 0 = as many as it made."""
    stopped: str = ""
    """Why the run ended; empty for a simulation."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """One line of the result table; comparisons are against the baseline arm, pair by pair."""

    arm: str
    trials: int
    geometric_mean: float
    median: float
    share_above_2x: float
    ratio: float
    """Geometric mean of this arm's over the baseline's final speed-up."""
    ratio_ci95: tuple[float, float]
    """Bootstrap over pairs."""
    wins: int
    losses: int
    ties: int
    p: float
    """One-sided Wilcoxon signed-rank on the logarithms: this arm is better than the baseline."""
    evaluations_to_best: float | None
    """Median evaluations to 95 % of the pair group's best final; misses count as the budget + 1."""
    reached_best: float
    """Share of the trials that got there."""
    failures: int
    repeated_failures: int

    __pydantic_config__ = CONFIG


RunTrial = Callable[[str, RunConfig, str, int], Trial]
"""(arm name, configuration, problem name, seed) -> trial."""


def arm_config(base: RunConfig, arm: str, seed: int, evaluations: int) -> RunConfig:
    """``base`` as ``arm`` changes it, with its seed and nothing but an evaluation budget."""
    if arm not in ARMS:
        raise UserError(f"Unknown arm {arm!r}. Known: {', '.join(ARMS)}")
    budget = Budget(evaluations=evaluations)
    return dataclasses.replace(base, seed=seed, budget=budget, **ARMS[arm])


def ablate(
    arms: Sequence[str], problems: Sequence[str], seeds: Iterable[int], *, evaluations: int,
    base: RunConfig, run_trial: RunTrial, trials_file: Path,
) -> list[Trial]:  # fmt: skip
    """Run what ``trials_file`` does not hold yet, seed by seed; returns all trials asked for."""
    _drop_torn_line(trials_file)
    done = {(t.arm, t.problem, t.seed): t for t in read_trials(trials_file)}
    wanted = [(arm, problem, seed) for seed in seeds for problem in problems for arm in arms]
    trials_file.parent.mkdir(parents=True, exist_ok=True)
    with trials_file.open("a", encoding="utf-8") as file:
        for arm, problem, seed in wanted:
            if (arm, problem, seed) in done:
                continue
            trial = run_trial(arm, arm_config(base, arm, seed, evaluations), problem, seed)
            done[arm, problem, seed] = trial
            file.write(dumps(trial) + "\n")
            file.flush()
    return [done[key] for key in wanted]


def read_trials(trials_file: Path) -> Iterator[Trial]:
    """Trials recorded so far; ``UserError`` names a line that is not one."""
    if not trials_file.exists():
        return
    with trials_file.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield loads(Trial, line)
            except ValueError as error:
                raise UserError(f"{trials_file}, line {number}: not a trial: {error}") from error


def _drop_torn_line(trials_file: Path) -> None:
    """Remove the last line of an ablation that was killed while writing it."""
    if trials_file.exists():
        whole, _, torn = trials_file.read_bytes().rpartition(b"\n")
        if torn:
            trials_file.write_bytes(whole + b"\n" if whole else b"")


def summarise(trials: Sequence[Trial], baseline: str) -> list[ArmSummary]:
    """One line per arm; only (problem, seed) pairs that every arm has are compared."""
    by_arm: dict[str, dict[tuple[str, int], Trial]] = {}
    for trial in trials:
        by_arm.setdefault(trial.arm, {})[trial.problem, trial.seed] = trial
    if baseline not in by_arm:
        raise UserError(f"There are no trials of the baseline arm {baseline!r}")
    pairs = sorted(set.intersection(*(set(found) for found in by_arm.values())))
    if not pairs:
        raise UserError("No problem and seed was run by every arm")
    best = {
        problem: max(
            t.final for found in by_arm.values() for (name, _), t in found.items()
            if name == problem
        )
        for problem in {name for name, _ in pairs}
    }  # fmt: skip
    reference = [by_arm[baseline][pair] for pair in pairs]
    return [
        _summary(arm, [found[pair] for pair in pairs], reference, best)
        for arm, found in by_arm.items()
    ]


def _summary(
    arm: str, trials: Sequence[Trial], reference: Sequence[Trial], best: dict[str, float]
) -> ArmSummary:
    finals, others = [t.final for t in trials], [t.final for t in reference]
    wins = head_to_head(finals, others)
    reached = [evaluations_to_share(t.best_so_far, best[t.problem], NEAR_BEST) for t in trials]
    counted = [
        max(t.budget, len(t.best_so_far)) + 1 if r is None else r
        for t, r in zip(trials, reached, strict=True)
    ]
    ratios = [a / b for a, b in zip(finals, others, strict=True)]
    return ArmSummary(
        arm=arm,
        trials=len(trials),
        geometric_mean=geometric_mean(finals),
        median=statistics.median(finals),
        share_above_2x=sum(f > 2.0 for f in finals) / len(finals),
        ratio=geometric_mean(ratios),
        ratio_ci95=bootstrap_interval(finals, others),
        wins=wins.first,
        losses=wins.second,
        ties=wins.ties,
        p=signed_rank([math.log(f) for f in finals], [math.log(o) for o in others]).p,
        evaluations_to_best=statistics.median(counted),
        reached_best=sum(r is not None for r in reached) / len(reached),
        failures=sum(t.failures for t in trials),
        repeated_failures=sum(t.repeated_failures for t in trials),
    )
