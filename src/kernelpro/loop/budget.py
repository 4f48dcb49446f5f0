"""Holds what was spent against the budget."""

from __future__ import annotations

from kernelpro.errors import UserError
from kernelpro.loop.spending import Spending
from kernelpro.schema.config import Budget
from kernelpro.schema.search import StopReason


def check_budget(budget: Budget) -> None:
    """``UserError`` for a budget that would never end, or that is over before it starts."""
    limits = {
        "evaluations": budget.evaluations, "minutes": budget.minutes,
        "target_speedup": budget.target_speedup, "cost_usd": budget.cost_usd,
        "tokens": budget.tokens, "stagnation": budget.stagnation,
    }  # fmt: skip
    if all(limit is None for limit in limits.values()):
        raise UserError("The budget has no limit: set evaluations, minutes or another one")
    for name, limit in limits.items():
        if limit is not None and not isinstance(limit, int | float):
            raise UserError(f"The budget's {name} must be a number, got {limit!r}")
        if limit is not None and not limit > 0:
            raise UserError(f"The budget's {name} must be greater than 0, got {limit}")


def check_parallel(parallel: int) -> None:
    """``UserError`` for a number of requests with which nothing would ever be asked."""
    if parallel < 1:
        raise UserError(f"parallel must be at least 1, got {parallel}")


def exceeded(budget: Budget, spending: Spending, elapsed_s: float) -> tuple[StopReason, str] | None:
    """The first limit that is reached, with the sentence the report prints; None = go on."""
    if evaluations_left(budget, spending) == 0:
        done, repeats = f"{spending.evaluations} evaluations done", spending.paid_repeats
        also = f"; {repeats} replies of a model repeated earlier ones and count too"
        return "budget_evaluations", done + (also if repeats else "")
    if budget.minutes is not None and elapsed_s >= budget.minutes * 60:
        return "budget_time", f"{elapsed_s / 60:.1f} of {budget.minutes:g} minutes used"
    if budget.cost_usd is not None and spending.cost_usd >= budget.cost_usd:
        return "budget_cost", f"${spending.cost_usd:.2f} of ${budget.cost_usd:.2f} spent"
    if budget.tokens is not None and spending.tokens >= budget.tokens:
        return "budget_cost", f"{spending.tokens} of {budget.tokens} tokens used"
    if budget.stagnation is not None and spending.since_improvement >= budget.stagnation:
        return "stagnation", f"no better candidate in {spending.since_improvement} evaluations"
    return None


def evaluations_left(budget: Budget, spending: Spending) -> int | None:
    """How many more evaluations may start; None = no limit. A repeat that a model was asked for
    counts as one."""
    if budget.evaluations is None:
        return None
    return max(0, budget.evaluations - spending.evaluations - spending.paid_repeats)
