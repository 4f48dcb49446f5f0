"""Sums trials up: one line per arm, against a baseline arm, pair by pair.

A pair is a problem and a seed that every arm ran. Seeds of one problem share its landscape, so
pairs are not quite independent: beside the test over pairs stands one with a single pair per
problem (its mean over the seeds), which is the stricter of the two.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.bench.ablation import Trial
from kernelpro.bench.statistics import (
    bootstrap_interval,
    evaluations_to_share,
    geometric_mean,
    head_to_head,
    signed_rank,
)
from kernelpro.errors import UserError
from kernelpro.schema.codec import CONFIG

NEAR_BEST = 0.95
"""Share of the best known result that counts as found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """One line of the result table; comparisons are against the baseline arm, pair by pair."""

    arm: str
    trials: int
    problems: int
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
    p_problems: float
    """The same with one pair per problem: the geometric means over its seeds."""
    evaluations_to_best: float
    """Median evaluations to 95 % of the best result any arm had on the problem; a run that never
    got there counts as the budget + 1."""
    evaluations_ratio: float
    """Mean of those evaluations over the baseline's mean; below 1 = sooner."""
    evaluations_p: float
    """One-sided Wilcoxon signed-rank: this arm needs fewer of them."""
    reached_best: float
    """Share of the trials that got there."""
    share_of_best: float
    """Geometric mean of the final speed-up over the problem's best: what was left is 1 - this."""
    failures: int
    repeated_failures: int

    __pydantic_config__ = CONFIG


def common_pairs(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Trials by arm, only those whose problem and seed every arm ran, in the same order."""
    by_arm: dict[str, dict[tuple[str, int], Trial]] = {}
    for trial in trials:
        by_arm.setdefault(trial.arm, {})[trial.problem, trial.seed] = trial
    if not by_arm:
        raise UserError("There is no trial to compare")
    pairs = sorted(set.intersection(*(set(found) for found in by_arm.values())))
    if not pairs:
        raise UserError("No problem and seed was run by every arm")
    return {arm: [found[pair] for pair in pairs] for arm, found in by_arm.items()}


def summarise(trials: Sequence[Trial], baseline: str) -> list[ArmSummary]:
    """One line per arm; only (problem, seed) pairs that every arm has are compared."""
    by_arm = common_pairs(trials)
    if baseline not in by_arm:
        raise UserError(f"There are no trials of the baseline arm {baseline!r}")
    best = best_known(trials)
    return [_summary(arm, found, by_arm[baseline], best) for arm, found in by_arm.items()]


def best_known(trials: Sequence[Trial]) -> dict[str, float]:
    """The best final speed-up of any arm and seed, by problem."""
    best: dict[str, float] = {}
    for trial in trials:
        best[trial.problem] = max(trial.final, best.get(trial.problem, 0.0))
    return best


def _summary(
    arm: str, trials: Sequence[Trial], reference: Sequence[Trial], best: dict[str, float]
) -> ArmSummary:
    finals, others = [t.final for t in trials], [t.final for t in reference]
    wins = head_to_head(finals, others)
    needed, theirs = _evaluations(trials, best), _evaluations(reference, best)
    reached = [n <= _allowed(t) for n, t in zip(needed, trials, strict=True)]
    means, their_means = _by_problem(trials), _by_problem(reference)
    return ArmSummary(
        arm=arm,
        trials=len(trials),
        problems=len(means),
        geometric_mean=geometric_mean(finals),
        median=statistics.median(finals),
        share_above_2x=sum(f > 2.0 for f in finals) / len(finals),
        ratio=geometric_mean([a / b for a, b in zip(finals, others, strict=True)]),
        ratio_ci95=bootstrap_interval(finals, others),
        wins=wins.first,
        losses=wins.second,
        ties=wins.ties,
        p=signed_rank(_logs(finals), _logs(others)).p,
        p_problems=signed_rank(_logs(means), _logs(their_means)).p,
        evaluations_to_best=statistics.median(needed),
        evaluations_ratio=statistics.fmean(needed) / statistics.fmean(theirs),
        evaluations_p=signed_rank(theirs, needed).p,
        reached_best=sum(reached) / len(reached),
        share_of_best=geometric_mean([t.final / best[t.problem] for t in trials]),
        failures=sum(t.failures for t in trials),
        repeated_failures=sum(t.repeated_failures for t in trials),
    )


def _evaluations(trials: Sequence[Trial], best: dict[str, float]) -> list[float]:
    """Evaluations each trial needed to come near the best; the budget + 1 if it never did."""
    found = [evaluations_to_share(t.best_so_far, best[t.problem], NEAR_BEST) for t in trials]
    return [float(n or _allowed(t) + 1) for n, t in zip(found, trials, strict=True)]


def _allowed(trial: Trial) -> int:
    return max(trial.budget, len(trial.best_so_far))


def _by_problem(trials: Sequence[Trial]) -> list[float]:
    """Geometric mean of the finals of each problem, in order of the problems' names."""
    finals: dict[str, list[float]] = {}
    for trial in trials:
        finals.setdefault(trial.problem, []).append(trial.final)
    return [geometric_mean(finals[name]) for name in sorted(finals)]


def _logs(values: Sequence[float]) -> list[float]:
    return [math.log(v) for v in values]
