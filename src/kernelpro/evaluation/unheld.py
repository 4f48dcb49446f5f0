"""Weights of the reference that a candidate holds nowhere.

Equal seeds stand in for weights that cannot be written into a candidate. They say nothing about
weights that start neutral (gain 1, shift 0): whoever leaves those out gives the right answers
until somebody loads a checkpoint (EVAL_PITFALLS 24).
"""

from __future__ import annotations

import torch

from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.parameters import StateMap, jittered
from kernelpro.evaluation.reference import seeded
from kernelpro.isolation.base import SubjectFailure
from kernelpro.schema.outcome import Stage, Status

SEED = 1
SHOWN = 4
"""Names in a message."""


def settle(state_map: StateMap, drawer: Drawer) -> StateMap:
    """``state_map``, or a better one where what the candidate leaves out does not matter.

    ``SubjectFailure`` if it leaves out weights that start neutral but count, or buffers that
    forward updates, and declares nothing as large that could hold them.
    """
    missing = state_map.missing
    if not missing:
        return state_map
    initial = drawer.reference.initial_state
    updated = set(drawer.traits.changed_buffers)
    matters = [name for name in missing if name in updated or _matters(name, drawer)]
    unheld = [name for name in matters if name in updated or _neutral(initial[name])]
    if sum(initial[name].numel() for name in unheld) > state_map.own_elements:
        names = ", ".join(repr(name) for name in unheld[:SHOWN])
        raise SubjectFailure(
            Status.WRONG_RESULT, Stage.VERIFY,
            f"ModelNew holds nothing for {names} of the reference, which start neutral but count "
            "once other weights are loaded. Declare them as parameters or buffers, with the same "
            "names or in the same order, and use them in forward.",
        )  # fmt: skip
    if matters or state_map.own_elements or len(missing) == len(initial):
        return state_map
    held = {name: name for name in initial if name not in missing}
    return StateMap(policy="by_key", names=held, note="weights without effect are left out")


def _neutral(value: torch.Tensor) -> bool:
    """All elements alike: no seed tells whether it is used."""
    return value.numel() == 0 or bool((value == value.reshape(-1)[0]).all())


def _matters(name: str, drawer: Drawer) -> bool:
    """Does the answer change with this tensor alone?"""
    reference = drawer.reference
    initial, loaded = reference.initial_state, reference.loaded
    with seeded(SEED, reference.device):
        changed = jittered({name: initial[name]}, frozenset(dict(reference.model.named_buffers())))
    inputs = drawer.plain()
    reference.load_state(initial)
    before = reference.eager(inputs).tensors
    reference.load_state({**initial, **changed})
    after = reference.eager(inputs).tensors
    reference.load_state(loaded)
    return not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
