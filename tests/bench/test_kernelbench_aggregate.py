"""Aggregates by hand, and what may not hide in them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.kernelbench_samples import kept, result, versus

from kernelpro.bench.kernelbench_aggregate import (
    CAP,
    Aggregate,
    Baseline,
    Column,
    TaskSet,
    TaskVerdict,
    aggregates,
    value,
)
from kernelpro.bench.kernelbench_record import TaskResult
from kernelpro.bench.kernelbench_tasks import TaskKey


def one(
    results: list[TaskResult], level: int | None = None, column: Column = "strict",
    tasks: TaskSet = "all", baseline: Baseline = "eager",
) -> Aggregate:  # fmt: skip
    precision = "strict" if column == "strict" else "half"
    found = [
        a for a in aggregates(results, precision)  # type: ignore[arg-type]
        if (a.level, a.column, a.tasks, a.baseline) == (level, column, tasks, baseline)
    ]  # fmt: skip
    assert len(found) == 1
    return found[0]


def test_by_hand() -> None:
    results = [result(1, 1, 4.0), result(1, 2, 1.0), kept(1, 3), result(1, 4), result(2, 1, 2.0)]
    a = one(results, level=1)
    assert (a.attempted, a.solved, a.eager_kept, a.failed) == (4, 3, 1, 1)
    assert a.uncapped is not None
    assert a.uncapped.geomean == pytest.approx(4 ** (1 / 3))
    assert a.uncapped.median == 1.0
    # Shares are of all tasks attempted: the failed one counts against each.
    assert a.fast == {"0": 0.75, "1": 0.25, "1.5": 0.25, "2": 0.25, "5": 0.0}
    assert one(results).attempted == 5


def test_a_handed_back_eager_is_exactly_one_and_not_faster_than_eager() -> None:
    a = one([kept(1, 1), kept(1, 2)])
    assert a.uncapped is not None
    assert (a.uncapped.geomean, a.fast["0"], a.fast["1"]) == (1.0, 1.0, 0.0)


def test_one_outlier_carries_the_mean_but_not_the_capped_one() -> None:
    a = one([result(1, 1, 1000.0), result(1, 2, 1.0)])
    assert a.uncapped is not None
    assert a.uncapped.geomean == pytest.approx(math.sqrt(1000))
    assert a.capped_geomean == pytest.approx(math.sqrt(CAP))


def test_a_missing_compiled_baseline_is_counted_not_guessed() -> None:
    a = one([result(1, 1, 4.0), kept(1, 2)], baseline="compile")
    assert (a.unmeasured, a.solved) == (1, 2)
    assert a.uncapped is not None
    assert (a.uncapped.runs, a.uncapped.geomean) == (1, 2.0)


def test_labelled_tasks_leave_the_clean_set_and_our_own_label_does_not_count() -> None:
    results = [
        result(1, 1, 2.0), result(1, 2, 8.0, labels=("zero",)),
        kept(1, 3, labels=("not_exportable",), controls_passing={"default": []}),
    ]  # fmt: skip
    assert one(results, tasks="all").attempted == 3
    assert one(results, tasks="lint_clean").attempted == 2
    assert one(results, tasks="every_family").attempted == 2


def test_a_family_that_cannot_tell_a_wrong_answer_takes_the_task_out() -> None:
    blind = result(1, 1, 2.0, controls_passing={"default": [], "offset": ["mean"]})
    unseen = kept(1, 2)
    sound = result(1, 3, 3.0)
    assert one([blind, unseen, sound], tasks="every_family").attempted == 1


def test_a_list_made_elsewhere_replaces_what_the_runs_saw() -> None:
    results = [result(1, 1, 2.0), result(1, 2, 3.0)]
    verdicts = {TaskKey(1, 1): TaskVerdict(labels=("constant",), controls_passing={})}
    clean = [a for a in aggregates(results, "strict", verdicts) if a.tasks == "lint_clean"]
    assert {a.attempted for a in clean} == {1}


def test_unfinished_tasks_are_not_attempted() -> None:
    assert one([result(1, 1, 2.0), result(1, 2, state="started", fault="")]).attempted == 1


def test_paper_like_column() -> None:
    faster = result(1, 1, 1.5, versus=versus(3.0))
    assert value(faster, "paper_like", "eager") == 3.0
    assert value(faster, "matched", "eager") == 1.5
    assert value(faster, "paper_like", "compile") is None
    wrong = result(1, 2, 1.5, versus=versus(3.0, passed=False))
    assert value(wrong, "paper_like", "eager") is None
    assert value(result(1, 3, 1.5), "paper_like", "eager") is None


def test_paper_like_value_of_a_kept_eager_is_the_tf32_switch_or_one() -> None:
    assert value(kept(1, 1, versus=versus(1.7, passed=None)), "paper_like", "eager") == 1.7
    assert value(kept(1, 2, versus=versus(1.005, passed=None)), "paper_like", "eager") == 1.0


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=12))
def test_fast_shares_fall_and_caps_only_lower(speedups: list[float]) -> None:
    a = one([result(1, i, s) for i, s in enumerate(speedups)])
    assert list(a.fast.values()) == sorted(a.fast.values(), reverse=True)
    assert a.uncapped is not None and a.capped_geomean is not None
    assert a.capped_geomean <= a.uncapped.geomean * (1 + 1e-12)
    assert a.fast["0"] == 1.0
