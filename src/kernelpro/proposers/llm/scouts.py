"""Keeps attempts from the same place apart: each gets its own direction, warmth and memories."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import ProposalRequest

INITIAL = (
    "Take the most direct design: everything in one pass, nothing clever.",
    "Aim at the least memory traffic: fuse all that can be fused, keep rows on chip.",
    "Aim at the most parallelism: split the work so that every unit is busy, even for odd sizes.",
    "Leave the heavy operator to the library and write what surrounds it as one kernel.",
    "Take another algorithm than the reference's, if one does less work.",
)
OPTIMIZE = (
    "",
    "Prefer a finding that the attempts listed below did not act on.",
    "Prefer the change with the largest expected gain, even if it means restructuring.",
)
"""Directions, taken in turn (chosen: the paper spreads its seeds over five temperatures)."""
TEMPERATURES = (None, 0.4, 1.0, 0.7, 0.2)
"""In turn; None = the model's own. A model that takes none is asked without."""
SLICES = 3
"""With parallel scouts, each misses another third of the conclusions (facts go to all)."""


class Scout(NamedTuple):
    """How one attempt differs from its neighbours."""

    instruction: str
    temperature: float | None
    memory: tuple[MemoryEntry, ...]


def scout_of(request: ProposalRequest, *, temperature: float | None, alone: bool) -> Scout:
    """The scout for a request. ``alone``: only one attempt is made at a time.

    Follows from the request alone, so a resumed run sends the same. The first attempt of all and
    repairs go without a twist.
    """
    turn = request.ask.id - 1
    directions = {"initial": INITIAL, "optimize": OPTIMIZE, "repair": ("",)}[request.ask.mode]
    place = len(request.siblings) if alone else turn
    warmth = TEMPERATURES[place % len(TEMPERATURES)] if request.ask.mode != "repair" else None
    memory = request.memory
    if not alone:
        memory = tuple(e for e in memory if e.category == "fact" or e.id % SLICES != turn % SLICES)
    return Scout(
        directions[place % len(directions)],
        temperature if temperature is not None else warmth,
        memory,
    )
