"""Budgets are held against what the events say was spent."""

from __future__ import annotations

import pytest

from kernelpro.errors import UserError
from kernelpro.loop.budget import check_budget, check_parallel, evaluations_left, exceeded
from kernelpro.loop.spending import Spending
from kernelpro.schema.config import Budget
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.search import Tell
from kernelpro.schema.usage import Usage
from kernelpro.store.sittings import elapsed_s

NOTHING = NodeFinished(
    tell=Tell(ask_id=1, node_id=None), candidate=None,
    usage=(Usage(role="writer", model="m", input_tokens=2, output_tokens=3, cost_usd=None),),
)  # fmt: skip


def test_time_between_sessions_is_not_counted() -> None:
    times = [
        ("2026-01-01T00:00:00+00:00", "run_started"),
        ("2026-01-01T00:00:10+00:00", "asked"),
        ("2026-01-02T00:00:00+00:00", "resumed"),
        ("2026-01-02T00:00:05+00:00", "node_finished"),
        ("2026-01-03T00:00:00+00:00", "resumed"),
    ]
    assert elapsed_s(times) == 15.0
    assert elapsed_s(times[:1]) == 0.0
    assert elapsed_s([]) == 0.0


def test_unknown_prices_stay_unknown_and_tokens_add_up() -> None:
    spending = Spending()
    for _ in range(3):
        spending.add(NOTHING, improved=False)
    assert spending.tokens == 15
    assert spending.usage[0].cost_usd is None
    assert spending.cost_usd == 0.0
    assert (spending.evaluations, spending.unproductive) == (0, 3)


def test_limits() -> None:
    spending = Spending()
    assert exceeded(Budget(evaluations=1), spending, 0.0) is None
    assert exceeded(Budget(evaluations=None, minutes=1.0), spending, 59.0) is None
    assert exceeded(Budget(evaluations=None, minutes=1.0), spending, 60.0) is not None
    assert evaluations_left(Budget(evaluations=3), spending) == 3
    assert evaluations_left(Budget(evaluations=None, minutes=1), spending) is None


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (Budget(evaluations=None), "no limit"),
        (Budget(evaluations=0), "evaluations must be greater than 0, got 0"),
        (Budget(minutes=-1.0), "minutes must be greater than 0, got -1"),
        (Budget(target_speedup=float("nan")), "target_speedup must be greater"),
    ],
)
def test_impossible_budgets_are_named(budget: Budget, named: str) -> None:
    with pytest.raises(UserError, match=named):
        check_budget(budget)


@pytest.mark.parametrize("parallel", [0, -1])
def test_a_run_that_would_ask_for_nothing_is_refused(parallel: int) -> None:
    with pytest.raises(UserError, match=f"at least 1, got {parallel}"):
        check_parallel(parallel)
