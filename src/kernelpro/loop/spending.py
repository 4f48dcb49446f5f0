"""What a run has spent so far, counted from its events."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from kernelpro.schema.event import NodeFinished
from kernelpro.schema.usage import Usage


class Spending:
    """Counters that budgets are held against."""

    def __init__(self) -> None:
        self.evaluations = 0
        """Candidates charged to the budget: repeats of an earlier source are not."""
        self.duplicates = 0
        self.paid_repeats = 0
        """Those that a model was asked for. Not evaluations, but they use up the budget of them:
        the words of a model that repeats itself cost what new ones do."""
        self.since_improvement = 0
        """Evaluations since the best candidate last changed."""
        self.unproductive = 0
        """Answers in a row that were a repeat, or nothing at all."""
        self.paid_in_vain = 0
        """The same, of answers that a model was asked for."""
        self._usage: dict[tuple[str, str], Usage] = {}
        self._pending: dict[int, list[Usage]] = {}

    def add_exchange(self, ask_id: int, usage: Usage) -> None:
        """Count a call for a request that is still open."""
        self._pending.setdefault(ask_id, []).append(usage)

    def pending(self, ask_id: int) -> tuple[Usage, ...]:
        """What the open request ``ask_id`` has cost so far, by role and model."""
        return tuple(_summed(self._pending.get(ask_id, ())).values())

    def add(self, event: NodeFinished, *, improved: bool) -> None:
        """Count one finished node."""
        charged = event.candidate is not None and event.duplicate_of is None
        self.evaluations += charged
        repeated = event.duplicate_of is not None
        calls = self._pending.pop(event.tell.ask_id, ())  # the event's usage holds them
        paid = any(call.requests for call in calls)
        self.duplicates += repeated
        self.paid_repeats += repeated and paid
        self.unproductive = 0 if charged else self.unproductive + 1
        self.paid_in_vain = 0 if charged else self.paid_in_vain + paid
        self.since_improvement = 0 if improved else self.since_improvement + charged
        self._usage = _summed((*self._usage.values(), *event.usage))

    @property
    def usage(self) -> tuple[Usage, ...]:
        """Summed by role and model, requests still open included."""
        open_calls = [usage for calls in self._pending.values() for usage in calls]
        return tuple(_summed((*self._usage.values(), *open_calls)).values())

    @property
    def tokens(self) -> int:
        """Input and output tokens of all calls."""
        return sum(u.input_tokens + u.output_tokens for u in self.usage)

    @property
    def cost_usd(self) -> float:
        """Sum of the known prices; a call of unknown price adds nothing."""
        return sum(u.cost_usd or 0.0 for u in self.usage)


def _summed(calls: Iterable[Usage]) -> dict[tuple[str, str], Usage]:
    found: dict[tuple[str, str], Usage] = {}
    for usage in calls:
        key = (usage.role, usage.model)
        found[key] = _sum(found[key], usage) if key in found else usage
    return found


def _sum(one: Usage, other: Usage) -> Usage:
    unknown = one.cost_usd is None or other.cost_usd is None
    return dataclasses.replace(
        one,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost_usd=None if unknown else (one.cost_usd or 0.0) + (other.cost_usd or 0.0),
        seconds=one.seconds + other.seconds,
        requests=one.requests + other.requests,
    )
