"""What a run cost: evaluations, wall time by stage, tokens and money by role."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from kernelpro.schema.usage import Usage
from kernelpro.views.run import Run


class RoleCost(NamedTuple):
    """Sums over the calls of one role with one model."""

    role: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None if the price of any call is not known."""


class CostView(NamedTuple):
    """Sums over the run."""

    evaluations: int
    duplicates: int
    """Not measured again, because the same source had been."""
    seconds: float
    """Wall time of all nodes."""
    seconds_by_stage: tuple[tuple[str, float], ...]
    """Evaluation stages, longest first."""
    roles: tuple[RoleCost, ...]


def cost_view(run: Run) -> CostView:
    """The cost of ``run`` so far."""
    stages: dict[str, float] = defaultdict(float)
    usage: dict[tuple[str, str], list[Usage]] = defaultdict(list)
    for facts in run.facts.values():
        if facts.duplicate_of is None:
            for stage, seconds in whole_stages(facts.stage_seconds).items():
                stages[stage] += seconds
    for call in run.usage():
        usage[call.role, call.model].append(call)
    return CostView(
        evaluations=len(run.facts),
        duplicates=len(run.facts) - run.charged,
        seconds=sum(f.seconds for f in run.facts.values()),
        seconds_by_stage=tuple(sorted(stages.items(), key=lambda item: -item[1])),
        roles=tuple(_role(role, model, calls) for (role, model), calls in usage.items()),
    )


def whole_stages(seconds: dict[str, float]) -> dict[str, float]:
    """Without the total and without parts of other stages (``load_import`` of ``load``)."""
    return {
        name: spent
        for name, spent in seconds.items()
        if name != "total" and name.partition("_")[0] not in seconds.keys() - {name}
    }


def _role(role: str, model: str, calls: list[Usage]) -> RoleCost:
    prices = [call.cost_usd for call in calls if call.cost_usd is not None]
    return RoleCost(
        role=role, model=model, requests=sum(c.requests for c in calls),
        input_tokens=sum(c.input_tokens for c in calls),
        output_tokens=sum(c.output_tokens for c in calls),
        cost_usd=sum(prices) if len(prices) == len(calls) else None,
    )  # fmt: skip
