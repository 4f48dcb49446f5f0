"""Compares arms of the loop at equal evaluation budget, paired over problems and seeds.

An arm is a change to a run's configuration. Trials are appended to a JSON-lines file as they
finish, so a stopped ablation goes on where it was; ``comparison`` sums that file up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.errors import UserError
from kernelpro.schema.codec import CONFIG, dumps, loads
from kernelpro.schema.config import Budget, RunConfig

ARMS: dict[str, dict[str, Any]] = {
    "mcts": {"search": "mcts"},
    "mcts-paper": {"search": "mcts", "search_options": {"preset": "paper"}},
    "mcts-mean": {
        "search": "mcts",
        "search_options": {
            "backup": "mean",
            "bonus_counts": "visits",
            "exploration": 0.2,
            "root_first": 5,
        },
    },
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
"""Arm name -> fields of ``RunConfig`` it changes. Independent attempts read no feedback.
``mcts-mean`` is the tree search with the paper's backup and bonus, its other constants tuned."""


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


RunTrial = Callable[[str, RunConfig, str, int], Trial]
"""(arm name, configuration, problem name, seed) -> trial."""
Progress = Callable[[int, int, str], None]
"""Told which trial of how many begins, and its name."""


def check_arms(arms: Sequence[str], baseline: str) -> None:
    """``UserError`` for an arm that is not known, or a baseline that is not among ``arms``."""
    for arm in arms:
        if arm not in ARMS:
            raise UserError(f"Unknown arm {arm!r}. Known: {', '.join(ARMS)}")
    if baseline not in arms:
        raise UserError(f"The baseline {baseline!r} is not among the arms: {', '.join(arms)}")


def arm_config(base: RunConfig, arm: str, seed: int, evaluations: int) -> RunConfig:
    """``base`` as ``arm`` changes it, with its seed and nothing but an evaluation budget."""
    check_arms([arm], arm)
    budget = Budget(evaluations=evaluations, stop_at_roofline=False)
    return dataclasses.replace(base, seed=seed, budget=budget, **ARMS[arm])


def ablate(
    arms: Sequence[str], problems: Sequence[str], seeds: Iterable[int], *, evaluations: int,
    base: RunConfig, run_trial: RunTrial, trials_file: Path, progress: Progress | None = None,
) -> list[Trial]:  # fmt: skip
    """Run what ``trials_file`` does not hold yet, seed by seed; returns all trials asked for."""
    _drop_torn_line(trials_file)
    done = {(t.arm, t.problem, t.seed): t for t in read_trials(trials_file)}
    wanted = [(arm, problem, seed) for seed in seeds for problem in problems for arm in arms]
    trials_file.parent.mkdir(parents=True, exist_ok=True)
    with trials_file.open("a", encoding="utf-8") as file:
        for place, (arm, problem, seed) in enumerate(wanted, start=1):
            if (arm, problem, seed) in done:
                continue
            if progress is not None:
                progress(place, len(wanted), f"{problem}, {arm}, seed {seed}")
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
