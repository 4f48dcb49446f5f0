"""Forward's arguments inside the subject: slots that keep their addresses, and guarded copies.

Rewriting a slot puts new values at the same addresses; a fresh copy has the same values at a new
address, between guard bands that show writes past either end (EVAL_PITFALLS 5, 37).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelpro.isolation.capture import shadowed
from kernelpro.isolation.payload import TensorMeta, unflatten
from kernelpro.isolation.timing import POISON_BYTE

GUARD_BYTES = 1024
"""On each side of a fresh copy. Chosen: a multiple of every alignment a kernel may rely on, and
wider than one vector or cache line past the end."""


@dataclass(slots=True)
class GuardedCopy:
    """Arguments of one call; where freshly copied, with the memory around them."""

    arguments: Sequence[Any]
    guards: list[torch.Tensor] = field(default_factory=list)

    def guards_intact(self) -> bool:
        """False if a byte before or after a fresh copy was overwritten."""
        return all(bool((guard == POISON_BYTE).all()) for guard in self.guards)


class Slots:
    """Written arguments by slot number."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._slots: dict[int, tuple[Any, list[TensorMeta], list[torch.Tensor]]] = {}
        self._places: dict[int, list[int]] = {}
        """Where the tensors of a slot were when they were made."""

    def write(
        self, slot: int, structure: Any, metas: list[TensorMeta], values: Sequence[torch.Tensor]
    ) -> None:
        """Store arguments, in the slot's present tensors where their layout has not changed."""
        known = self._slots.get(slot)
        reuse = known is not None and known[1] == metas and not self.altered(slot)
        if known is None or not reuse:
            tensors = [self._place(meta, value) for meta, value in zip(metas, values, strict=True)]
            self._slots[slot] = (structure, metas, tensors)
            self._places[slot] = [tensor.data_ptr() for tensor in tensors]
            return
        for tensor, value in zip(known[2], values, strict=True):
            tensor.detach().copy_(value)
        self._slots[slot] = (structure, metas, known[2])

    def altered(self, slot: int) -> list[str]:
        """What a candidate made of the slot's tensors themselves, other than their values: whoever
        writes the next values through such a tensor might run its code, or write elsewhere."""
        _, metas, tensors = self._slots[slot]
        found = []
        for index, (meta, tensor, place) in enumerate(
            zip(metas, tensors, self._places[slot], strict=True)
        ):
            if type(tensor) is not torch.Tensor or shadowed(tensor):
                found.append(f"input {index} has another class or methods of its own")
            elif tuple(tensor.shape) != meta.shape or tuple(tensor.stride()) != meta.stride:
                found.append(f"input {index} has another shape or stride")
            elif tensor.data_ptr() != place:
                found.append(f"input {index} lies in other memory")
        return found

    def slots(self) -> list[int]:
        """Numbers of the slots that were written."""
        return list(self._slots)

    def sizes(self, slot: int) -> list[int]:
        """Bytes that fresh copies of the slot's present tensors take; none if it is empty."""
        _, metas, tensors = self._slots.get(slot, (None, [], []))
        pairs = zip(metas, tensors, strict=True)
        return [_extent(meta) * tensor.element_size() + 2 * GUARD_BYTES for meta, tensor in pairs]

    def give(self, slot: int, *, fresh: bool) -> GuardedCopy:
        """The arguments of one call, at the slot's own addresses or at new ones."""
        structure, metas, tensors = self._slots[slot]
        if not fresh:
            return GuardedCopy(unflatten(structure, tensors))
        copies, guards = [], []
        for meta, tensor in zip(metas, tensors, strict=True):
            copy, bands = _guarded(meta, tensor)
            copies.append(copy)
            guards += bands
        return GuardedCopy(unflatten(structure, copies), guards)

    def _place(self, meta: TensorMeta, value: torch.Tensor) -> torch.Tensor:
        base = torch.empty(meta.offset + _extent(meta), dtype=value.dtype, device=self._device)
        return base.as_strided(meta.shape, meta.stride, meta.offset).copy_(value)


def _extent(meta: TensorMeta) -> int:
    """Elements from the first to the last one of a strided tensor."""
    if 0 in meta.shape:
        return 0
    reach = ((size - 1) * step for size, step in zip(meta.shape, meta.stride, strict=True))
    return 1 + sum(reach)


def _guarded(meta: TensorMeta, tensor: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A copy of ``tensor`` with ``meta``'s layout, between two bands of sentinel bytes."""
    itemsize = tensor.element_size()
    start = GUARD_BYTES + meta.offset * itemsize
    end = start + _extent(meta) * itemsize
    memory = torch.empty(end + GUARD_BYTES, dtype=torch.uint8, device=tensor.device)
    memory[:start].fill_(POISON_BYTE)
    memory[end:].fill_(POISON_BYTE)
    body = memory[start:end].view(tensor.dtype)
    copy = body.as_strided(meta.shape, meta.stride, body.storage_offset()).copy_(tensor)
    return copy, [memory[:start], memory[end:]]
