"""Weights on both sides: random around their initial values, and equal in both processes.

Neutral initial values (gamma 1, beta 0) hide skipped steps, so parameters are jittered
(EVAL_PITFALLS 24). State reaches a candidate by key, else by registration order, else by equal
seeds without jitter (EVAL_PITFALLS 25, 87).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from kernelpro.isolation.base import StateTensor

MULTIPLY = 0.5
"""Each parameter is multiplied by 1 + U(-0.5, 0.5) (EVAL_PITFALLS H.8) ..."""
SHIFT = 0.1
"""... and shifted by N(0, 0.1 x its RMS), or N(0, 0.1) where it is all zeros."""

Policy = Literal["by_key", "by_order", "seed", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMap:
    """How the reference's state reaches a candidate."""

    policy: Policy
    names: dict[str, str]
    """Candidate's name -> reference's name, for every tensor that is written."""
    note: str = ""
    missing: tuple[str, ...] = ()
    """The reference's tensors that the candidate declares no namesake of. Only under ``seed``."""
    own_elements: int = 0
    """Elements of what the candidate declares under names of its own: what is missing may be
    merged into them."""

    @property
    def writable(self) -> bool:
        """True if weights can be written into the candidate."""
        return bool(self.names)

    def translate(self, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The reference's ``state`` under the candidate's names."""
        return {own: state[theirs] for own, theirs in self.names.items()}


def jittered(
    initial: Mapping[str, torch.Tensor], buffers: frozenset[str]
) -> dict[str, torch.Tensor]:
    """New values for every floating parameter, and for running statistics among ``buffers``.

    Other buffers (masks, tables) mean what they hold and stay. Positive statistics stay positive.
    Draws from torch's current generator.
    """
    return {
        name: _jitter(value, positive=name.endswith("running_var"))
        if _may_change(name, value, buffers)
        else value.clone()
        for name, value in initial.items()
    }


def _may_change(name: str, value: torch.Tensor, buffers: frozenset[str]) -> bool:
    if not value.is_floating_point() or value.numel() == 0:
        return False
    return name not in buffers or name.endswith(("running_mean", "running_var"))


def _jitter(value: torch.Tensor, *, positive: bool) -> torch.Tensor:
    factor = 1.0 + MULTIPLY * (2.0 * torch.rand_like(value, dtype=torch.float32) - 1.0)
    changed = value.float() * factor
    if not positive:
        rms = float(value.float().square().mean().sqrt())
        changed += (SHIFT * rms if rms > 0 else SHIFT) * torch.randn_like(changed)
    return changed.to(value.dtype)


def match_state(reference: Mapping[str, torch.Tensor], declared: Sequence[StateTensor]) -> StateMap:
    """Map the reference's tensors to those a candidate declares.

    By key where every reference tensor has a namesake of equal shape and dtype (the candidate may
    hold more buffers, its scratch); else by registration order where parameters and buffers match
    one to one; else no map: both sides keep what equal construction seeds gave them.
    """
    if not reference:
        return StateMap(policy="none", names={}, note="the reference has no weights")
    own = {tensor.name: tensor for tensor in declared}
    spare = [t.name for t in declared if t.name not in reference and not t.buffer]
    if not spare and all(_fits(own.get(name), value) for name, value in reference.items()):
        return StateMap(policy="by_key", names={name: name for name in reference})
    in_order = list(reference.items())
    if len(in_order) == len(declared) and all(
        _fits(tensor, value) for tensor, (_, value) in zip(declared, in_order, strict=True)
    ):
        names = {t.name: name for t, (name, _) in zip(declared, in_order, strict=True)}
        return StateMap(policy="by_order", names=names, note="names differ; mapped by order")
    namesakes = {name for name, value in reference.items() if _fits(own.get(name), value)}
    return StateMap(
        policy="seed",
        names={},
        missing=tuple(name for name in reference if name not in namesakes),
        own_elements=sum(math.prod(t.shape) for t in declared if t.name not in namesakes),
        note=(
            f"the candidate declares {len(declared)} tensors that do not match the reference's "
            f"{len(in_order)} by name or order: weights come from equal seeds and could not be "
            "jittered or reloaded"
        ),
    )


def _fits(tensor: StateTensor | None, value: torch.Tensor) -> bool:
    return (
        tensor is not None
        and tuple(tensor.shape) == tuple(value.shape)
        and tensor.dtype == str(value.dtype).removeprefix("torch.")
    )
