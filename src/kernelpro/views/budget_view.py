"""How much of each limit a run has used up, for meters."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.views.run import Run


class Meter(NamedTuple):
    """One quantity that is spent. ``limit`` None = no limit of this kind."""

    name: str
    used: float | None
    """None = not known: the price of some call is not."""
    limit: float | None
    unit: str

    @property
    def share(self) -> float | None:
        """Used over limit, at most 1; None without a limit."""
        if self.used is None or not self.limit:
            return None
        return min(1.0, self.used / self.limit)


def budget_view(run: Run, elapsed_s: float) -> tuple[Meter, ...]:
    """Evaluations and time always; money and tokens where a model was paid or limited."""
    budget = run.budget
    calls = run.usage()
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    prices = [call.cost_usd for call in calls]
    cost = None if None in prices else sum(price or 0.0 for price in prices)
    meters = [
        Meter("evaluations", run.charged, budget.evaluations, ""),
        Meter("time", elapsed_s, budget.minutes * 60 if budget.minutes else None, "s"),
    ]
    if budget.cost_usd is not None or cost is None or cost > 0:
        meters.append(Meter("cost", cost, budget.cost_usd, "USD"))
    if budget.tokens is not None or tokens > 0:
        meters.append(Meter("tokens", tokens, budget.tokens, ""))
    return tuple(meters)
