"""The limits of a run as callers give them."""

from __future__ import annotations

import dataclasses
from typing import TypedDict

from kernelpro.errors import UserError
from kernelpro.schema.config import Budget

DEFAULT_EVALUATIONS = 30


class Limits(TypedDict, total=False):
    """See ``schema.config.Budget``; None = not given. Money and tokens are never exceeded."""

    evaluations: int | None
    minutes: float | None
    target_speedup: float | None
    cost_usd: float | None
    tokens: int | None
    stagnation: int | None


def budget_of(limits: Limits, base: Budget | None = None) -> Budget:
    """The limits given, over those of ``base``; ``DEFAULT_EVALUATIONS`` if nothing else ends it.

    ``UserError`` for a limit that there is not.
    """
    if unknown := sorted(limits.keys() - Limits.__annotations__.keys()):
        known = ", ".join(Limits.__annotations__)
        raise UserError(f"There is no setting {unknown[0]!r}; the limits of a run are: {known}")
    given = {name: value for name, value in limits.items() if value is not None}
    if base is None:
        ends = given.keys() - {"target_speedup", "stagnation"}
        base = Budget(evaluations=None if ends else DEFAULT_EVALUATIONS)
    return dataclasses.replace(base, **given)  # type: ignore[arg-type]
