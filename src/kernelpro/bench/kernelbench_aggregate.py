"""What a suite comes to: distributions by level, task set, precision column and baseline.

Every figure says how many tasks stand behind it. A mean alone hides outliers and losses, so it is
never given without median, quartiles, and the share below 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelpro.bench.kernelbench_record import TaskResult
from kernelpro.bench.kernelbench_tasks import TaskKey
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.problem import Precision
from kernelpro.views.suite_view import Spread, spread

CAP = 10.0
"""Speed-ups above count as this much in capped means: one task must not carry a headline. Chosen:
the referee's own border between fast and suspicious."""
FAST = (0.0, 1.0, 1.5, 2.0, 5.0)
"""fast_p: share of the tasks whose answer is right and more than p times as fast (KernelBench)."""
NOT_A_FAULT = frozenset({"not_exportable"})
"""Labels that concern our writer, not the task."""

Column = Literal["strict", "paper_like", "matched"]
COLUMNS: dict[Column, str] = {
    "strict": "answers within float32 rounding, against eager with TF32 off",
    "paper_like": "TF32 or half allowed and the paper's tolerance (atol 1e-2, rtol 1e-3), against "
    "eager with TF32 off",
    "matched": "TF32 or half allowed, against eager with TF32 on",
}
TaskSet = Literal["all", "lint_clean", "every_family"]
SETS: dict[TaskSet, str] = {
    "all": "all tasks",
    "lint_clean": "tasks that pass the lint",
    "every_family": "tasks on which, moreover, no wrong answer passes under any input family",
}
Baseline = Literal["eager", "compile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """What the lint says about a task, on the device it was asked on."""

    labels: tuple[str, ...]
    controls_passing: dict[str, list[str]]
    """Input family -> wrong answers that pass; empty = not examined."""

    __pydantic_config__ = CONFIG

    def belongs(self, tasks: TaskSet) -> bool:
        """True if the task counts in this set; unknown families do not."""
        if tasks == "all":
            return True
        clean = not set(self.labels) - NOT_A_FAULT
        if tasks == "lint_clean":
            return clean
        return clean and bool(self.controls_passing) and not any(self.controls_passing.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One level (or all) in one column, over one set of tasks, against one baseline."""

    level: int | None
    """None = all levels together."""
    column: Column
    tasks: TaskSet
    baseline: Baseline
    attempted: int
    """Tasks with a result, failed ones included: what shares are of."""
    solved: int
    """... of which something right, never slower than eager, is handed back."""
    eager_kept: int
    """... of which the reference itself (1.0)."""
    failed: int
    unmeasured: int
    """Solved, but without a number against this baseline: not in the figures below."""
    uncapped: Spread | None
    """None without a number."""
    capped_geomean: float | None
    fast: dict[str, float]
    """p -> share of the attempted tasks with a number above p."""

    __pydantic_config__ = CONFIG


def columns_of(precision: Precision) -> tuple[Column, ...]:
    """The columns a suite of this precision fills."""
    return ("strict",) if precision == "strict" else ("paper_like", "matched")


def value(result: TaskResult, column: Column, baseline: Baseline) -> float | None:
    """The task's speed-up in ``column``; None if it is not solved or was not measured."""
    if column != "paper_like":
        return result.speedup if baseline == "eager" else result.over_compile
    versus = result.versus
    if baseline == "compile" or versus is None or versus.paper_like is None:
        return None
    if result.outcome is not None:
        return versus.paper_like if versus.paper_tolerance_passed else None
    low = versus.paper_like_ci95[0] if versus.paper_like_ci95 else versus.paper_like
    return versus.paper_like if low > 1.0 else 1.0


def aggregates(
    results: Sequence[TaskResult], precision: Precision,
    verdicts: Mapping[TaskKey, TaskVerdict] | None = None,
) -> list[Aggregate]:  # fmt: skip
    """Every combination that has a task, levels first.

    ``verdicts``: of a lint at shipped size; they replace what the runs themselves found.
    """
    finished = [r for r in results if r.state != "started"]
    levels: list[int | None] = [*sorted({r.key.level for r in finished}), None]
    found = []
    for column in columns_of(precision):
        for level in levels:
            for tasks in SETS:
                chosen = [
                    r for r in finished
                    if level in (None, r.key.level) and verdict(r, verdicts).belongs(tasks)
                ]  # fmt: skip
                baselines: tuple[Baseline, ...] = ("eager", "compile")
                found += [_aggregate(chosen, level, column, tasks, b) for b in baselines if chosen]
    return found


def verdict(result: TaskResult, verdicts: Mapping[TaskKey, TaskVerdict] | None) -> TaskVerdict:
    """The lint's word on the task, else what the run saw itself."""
    if verdicts and result.key in verdicts:
        return verdicts[result.key]
    return TaskVerdict(labels=result.labels, controls_passing=result.controls_passing)


def _aggregate(
    results: Sequence[TaskResult], level: int | None, column: Column, tasks: TaskSet,
    baseline: Baseline,
) -> Aggregate:  # fmt: skip
    numbers = [v for r in results if (v := value(r, column, baseline)) is not None]
    capped = spread([min(v, CAP) for v in numbers])
    solved = sum(r.solved for r in results)
    return Aggregate(
        level=level, column=column, tasks=tasks, baseline=baseline, attempted=len(results),
        solved=solved, eager_kept=_count(results, lambda r: r.state == "eager_kept"),
        failed=_count(results, lambda r: r.state == "failed"),
        unmeasured=solved - len(numbers), uncapped=spread(numbers),
        capped_geomean=capped.geomean if capped else None,
        fast={f"{p:g}": sum(v > p for v in numbers) / len(results) for p in FAST},
    )  # fmt: skip


def _count(results: Sequence[TaskResult], chosen: Callable[[TaskResult], bool]) -> int:
    return sum(chosen(result) for result in results)


def headline(found: Sequence[Aggregate], level: int | None, column: Column) -> Aggregate | None:
    """Against eager, over the tasks that pass the lint: what a reader should quote."""
    wanted = (level, column, "lint_clean", "eager")
    return next((a for a in found if (a.level, a.column, a.tasks, a.baseline) == wanted), None)
