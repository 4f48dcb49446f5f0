"""The reference as a referee needs it: run once, made deterministic."""

from __future__ import annotations

import secrets

from kernelpro.errors import UserError
from kernelpro.evaluation.reference import Reference, Traits
from kernelpro.schema.problem import Problem


def prepare(
    problem: Problem, device: str, *, construction_seed: int | None, draw_on: str
) -> tuple[Reference, Traits, list[str]]:
    """The reference, what it does, and remarks. ``UserError`` if its answers stay random."""
    seed = secrets.randbits(31) if construction_seed is None else construction_seed
    reference = Reference(problem, device, construction_seed=seed, draw_on=draw_on)
    inputs = reference.draw(secrets.randbits(62))
    traits = reference.traits(inputs)
    if not traits.stochastic:
        return reference, traits, []
    reference.use_evaluation_mode()
    traits = reference.traits(inputs)
    if traits.stochastic:
        raise UserError(
            f"{problem.origin or problem.name}: the reference gives another answer on every call, "
            "in eval() mode too; no answer can be checked. Draw its randomness in get_inputs()."
        )
    return (
        reference,
        traits,
        ["the reference is random in training mode (dropout): both sides run in eval() mode"],
    )
