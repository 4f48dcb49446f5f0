"""One try at growing a draft kernel by one operator; nothing changes until it is committed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.axes import Dims, Mismatch
from kernelpro.proposers.playbook.plan.draft import (
    BufferView,
    Draft,
    DraftNode,
    Internal,
    Number,
    Value,
)  # fmt: skip

if TYPE_CHECKING:
    from kernelpro.proposers.playbook.plan.planner import Planner

HEAVY_GROWTH = 12.0
"""Weight above which a small value is stored rather than recomputed for every row (chosen)."""


class Attempt:
    """One try at adding an operator to a draft; nothing changes until :meth:`commit`."""

    def __init__(self, planner: Planner, base: int | None) -> None:
        self.planner = planner
        self.base = base
        if base is None:
            self.draft = Draft(0, planner.counter)
        else:
            self.draft = planner.drafts[base].copy()
        self.before = {} if base is None else {base: self.draft.domain()}
        self.absorbed: dict[int, int] = {}
        self.spills: list[Internal] = []
        self.reads: set[int] = set()

    def operand(self, value: Value, dtype: str) -> tuple[int, Dims]:
        """The node (of type ``dtype``) and dims that stand for ``value`` in this draft."""
        if isinstance(value, Number):
            return self.draft.constant(_as_type(value.value, dtype), dtype), ()
        if isinstance(value, Internal):
            node, dims = self._inside(value)
        else:
            node, dims = self._from_memory(value)
        have = self.draft.nodes[node].dtype
        if have != dtype:
            cast = DraftNode("compute", "cast", (node,), self.draft.nodes[node].dims, dtype)
            node = self.draft.add(cast)
        return node, dims

    def _inside(self, value: Internal) -> tuple[int, Dims]:
        if value.draft == self.base:
            return value.node, self.draft.axes.resolve(value.dims)
        if value.draft not in self.absorbed:
            if not self._can_absorb(value.draft):
                self.spills.append(value)
                self.reads.add(value.draft)
                if not self.planner.drafts[value.draft].spans(value.dims):
                    raise Mismatch("operand cannot be stored")
                return self._from_memory(self.planner.spill_view(value))
            other = self.planner.drafts[value.draft]
            self.absorbed[value.draft] = self.draft.absorb(other)
            self.before[value.draft] = other.domain()
        return value.node + self.absorbed[value.draft], self.draft.axes.resolve(value.dims)

    def _can_absorb(self, other: int) -> bool:
        if self.base is None or self.planner.grouping == "single":
            return False
        deps = self.planner.deps
        if other in deps[self.base] or self.base in deps[other]:
            return False
        return self.draft.reduced is None or self.planner.drafts[other].reduced is None

    def _from_memory(self, view: BufferView) -> tuple[int, Dims]:
        if view.buffer in self.planner.producer:
            self.reads.add(self.planner.producer[view.buffer])
        return self.draft.load(view, operators.compute_type(view.dtype))

    def add_reduce(
        self, op: str, node: int, own: Dims, dims: Sequence[int], result_type: str
    ) -> tuple[int, Dims]:
        """Add a reduce node over tensor dimensions ``dims``; raises ``Mismatch``."""
        draft = self.draft
        over = tuple(own[i] for i in dims)
        axes = draft.flat(over)
        points = math.prod(draft.axes.size(d) for d in over)
        if not axes or math.prod(draft.axes.sizes[a] for a in axes) != points:
            raise Mismatch("reduction over a constant dimension")
        if draft.reduced is not None and draft.reduced_axes() != axes:
            raise Mismatch("another set of axes is reduced here")
        if draft.flat(own) != draft.domain():
            raise Mismatch("operand does not cover the loop nest")
        left = tuple(() if i in dims else d for i, d in enumerate(own))
        draft.reduced = tuple(sorted(axes))
        index = draft.add(DraftNode("reduce", op, (node,), left, result_type, reduced_dims=over))
        return index, left

    def check(self) -> None:
        """Raise ``Mismatch`` if the grown draft would be wrong, cyclic or wasteful."""
        self.draft.check()
        deps = self.planner.deps
        members = {*self.absorbed} | ({self.base} if self.base is not None else set())
        if self.reads & members or any(m in deps[r] for m in members for r in self.reads):
            raise Mismatch("the kernel would wait for itself")
        domain = self.draft.domain()
        for number, before in self.before.items():
            if domain != {*self.draft.axes.atoms(before)}:
                self._check_growth(number)

    def _check_growth(self, number: int) -> None:
        """A nest may gain axes only if nothing in it must be stored at its old extent."""
        draft = self.planner.drafts[number]
        kinds = [n.op for n in draft.nodes if n.kind == "compute"]
        weight = sum(operators.COMPUTE[op].weight for op in kinds)
        if weight > HEAVY_GROWTH or draft.stored or any(self.planner.pending(number)):
            raise Mismatch("values of smaller extent are dear or needed elsewhere")

    def commit(self) -> int:
        """Make the attempt real; returns the draft's number."""
        planner = self.planner
        if self.base is None:
            self.base = planner.new_step()
            self.draft.number = self.base
        step = self.base
        for value in self.spills:
            planner.spill(value)
        planner.drafts[step] = self.draft
        for other, offset in self.absorbed.items():
            planner.moved[other] = (step, offset)
            del planner.drafts[other]
            _replace_step(planner, other, step)
        planner.depend(step, self.reads)
        if planner.current not in self.draft.covers:
            self.draft.covers.append(planner.current)
        return step


def _replace_step(planner: Planner, old: int, new: int) -> None:
    planner.deps[new] |= planner.deps.pop(old)
    for known in planner.deps.values():
        if old in known:
            known.discard(old)
            known |= {new, *planner.deps[new]}
        elif new in known:
            known |= planner.deps[new]
    for name, step in planner.producer.items():
        if step == old:
            planner.producer[name] = new


def _as_type(value: float | int | bool, dtype: str) -> float | int | bool:
    if dtype == "bool":
        return bool(value)
    return float(value) if dtype.startswith("float") else int(value)
