"""Graph to plan: walks the exported operators and grows fused kernels greedily.

Each operator is lowered (``lower``) to primitives on *values*: windows on memory, numbers, or
values internal to a draft kernel. A primitive joins the draft of one of its operands if the axes
agree and no cycle through other steps arises; otherwise it starts a new draft and its operands are
written to memory. Operators that cannot be lowered become library calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from kernelpro.proposers.playbook.plan.attempt import Attempt
from kernelpro.proposers.playbook.plan.axes import Dims, Free, Mismatch, contiguous, reshape
from kernelpro.proposers.playbook.plan.draft import (
    BufferView,
    Draft,
    DraftNode,
    Internal,
    Number,
    Value,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.ir import AtenCall, Buffer, ScanKernel
from kernelpro.schema.graph import Graph, GraphNode

Grouping = Literal["full", "vertical", "single"]
"""``full``: also operators that merely read the same tensor share a kernel; ``vertical``: only
producer and consumer; ``single``: every graph operator its own kernel."""


class Unfusable(Exception):
    """The operator stays with torch; the message says why."""


class Planner:
    """State of one planning run. Use :func:`kernelpro.proposers.playbook.plan.make_plan`."""

    def __init__(self, graph: Graph, grouping: Grouping) -> None:
        self.graph = graph
        self.grouping = grouping
        self.counter = itertools.count(1)
        self.values: dict[str, Value | tuple[Value | None, ...]] = {}
        self.buffers: dict[str, Buffer] = {}
        self.producer: dict[str, int] = {}
        self.drafts: dict[int, Draft] = {}
        self.calls: dict[int, AtenCall] = {}
        self.scans: dict[int, ScanKernel] = {}
        self.deps: dict[int, set[int]] = {}
        self.moved: dict[int, tuple[int, int]] = {}
        self.variables: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.nodes = {node.name: node for node in graph.nodes}
        self.readers = _readers(graph)
        self.products: set[str] = set()
        """Operators whose product is a library call under a name of its own (``with_bias``)."""
        self.last_use = _last_uses(graph)
        self.position = 0
        self.current = ""

    # ---- values ---------------------------------------------------------------------------

    def internal(self, value: Internal) -> Internal:
        """``value`` with the draft it lives in now and its axes resolved."""
        draft, node = value.draft, value.node
        while draft in self.moved:
            draft, offset = self.moved[draft]
            node += offset
        dims = self.drafts[draft].axes.resolve(value.dims)
        return Internal(draft, node, dims, value.shape, value.dtype)

    def compute(
        self, op: str, args: Sequence[Value], shape: tuple[int, ...], dtype: str,
        operand_types: Sequence[str], result_type: str,
    ) -> Value:  # fmt: skip
        """Apply primitive ``op``; raises ``Unfusable`` if no loop nest can hold it."""
        given = [self.internal(a) if isinstance(a, Internal) else a for a in args]
        for base in [*self._candidates(given), None]:
            made = self._join(base, op, given, shape, operand_types, result_type)
            if made is not None:
                draft, node, dims = made
                return Internal(draft, node, dims, shape, dtype)
        raise Unfusable(f"{op}: no common loop nest for its operands")

    def _join(
        self, base: int | None, op: str, args: Sequence[Value], shape: tuple[int, ...],
        operand_types: Sequence[str], result_type: str,
    ) -> tuple[int, int, Dims] | None:  # fmt: skip
        attempt = Attempt(self, base)
        try:
            operands = [attempt.operand(a, t) for a, t in zip(args, operand_types, strict=True)]
            dims = attempt.draft.broadcast([d for _, d in operands], shape)
            node = DraftNode("compute", op, tuple(i for i, _ in operands), dims, result_type)
            index = attempt.draft.add(node)
            attempt.check()
        except Mismatch:
            return None
        return attempt.commit(), index, dims

    def reduce(
        self, op: str, arg: Value, dims: Sequence[int], *, keepdim: bool, dtype: str,
        operand_type: str, result_type: str,
    ) -> Value:  # fmt: skip
        """Reduce ``arg`` over ``dims`` (non-negative, non-empty); raises ``Unfusable``."""
        if isinstance(arg, Number):
            raise Unfusable("reduction of a constant")
        given = self.internal(arg) if isinstance(arg, Internal) else arg
        shape = tuple(
            1 if i in dims else s for i, s in enumerate(given.shape) if keepdim or i not in dims
        )
        for base in [*self._candidates([given]), None]:
            attempt = Attempt(self, base)
            try:
                node, own = attempt.operand(given, operand_type)
                index, left = attempt.add_reduce(op, node, own, dims, result_type)
                attempt.check()
            except Mismatch:
                continue
            kept = tuple(
                () if i in dims else d for i, d in enumerate(left) if keepdim or i not in dims
            )
            return Internal(attempt.commit(), index, kept, shape, dtype)
        raise Unfusable(f"{op}: no loop nest for this reduction")

    def _candidates(self, args: Sequence[Value]) -> list[int]:
        """Drafts that could take an operator on ``args``, most promising first."""
        own = [a.draft for a in args if isinstance(a, Internal)]
        found = sorted(set(own), key=lambda d: (-len(self.drafts[d].domain()), -d))
        if self.grouping == "full":
            views = {a for a in args if isinstance(a, BufferView)}
            for number, draft in sorted(self.drafts.items(), reverse=True):
                if number not in found and any(
                    n.view in views and draft.flat(n.dims) == draft.domain()
                    for n in draft.nodes
                    if n.view is not None
                ):
                    found.append(number)
        if self.grouping == "single":
            found = [d for d in found if self.drafts[d].covers == [self.current]]
        return found

    # ---- memory ---------------------------------------------------------------------------

    def stored(self, value: Internal) -> BufferView | None:
        """Where ``value`` has been stored, if it has."""
        value = self.internal(value)
        draft = self.drafts[value.draft]
        for view, dims in draft.stored.get(value.node, []):
            if view.shape == value.shape and draft.axes.resolve(dims) == value.dims:
                return view
        return None

    def spill_view(self, value: Internal) -> BufferView:
        """The window a stored copy of ``value`` has (or would have) in memory."""
        if any(isinstance(d, Free) for d in value.dims):
            return _expanded(self.spill_view(_compact(value)), value)
        known = self.stored(value)
        if known is not None:
            return known
        # Not the current operator's own name: left to torch, it will have a buffer of that name.
        name = self.fresh_name(self._graph_name(value) or f"{self.current}_part")
        return BufferView(name, value.shape, contiguous(value.shape), 0, value.dtype)

    def spill(self, value: Internal) -> BufferView:
        """Store ``value``; returns where. Raises ``Unfusable`` if the nest cannot store it."""
        value = self.internal(value)
        if any(isinstance(d, Free) for d in value.dims):
            return _expanded(self.spill(_compact(value)), value)
        view = self.stored(value)
        if view is None:
            draft = self.drafts[value.draft]
            if not draft.spans(value.dims):
                raise Unfusable("value covers only part of its kernel's axes")
            view = self.spill_view(value)
            draft.stored.setdefault(value.node, []).append((view, value.dims))
            self.add_buffer(view, value.draft)
        return view

    def add_buffer(self, view: BufferView, producer: int) -> None:
        """Register a temporary written by step ``producer``."""
        self.buffers[view.buffer] = Buffer(
            view.buffer, view.shape, view.stride, view.dtype, "temporary"
        )
        self.producer[view.buffer] = producer

    def fresh_name(self, stem: str) -> str:
        """``stem``, or what is free next to it, as the name of a new buffer."""
        names = itertools.chain([stem], (f"{stem}_t{i}" for i in itertools.count(1)))
        return next(n for n in names if n not in self.buffers)

    def _graph_name(self, value: Internal) -> str | None:
        for name, known in self.values.items():
            if isinstance(known, Internal) and known.shape == value.shape:
                now = self.internal(known)
                if (now.draft, now.node, now.dims) == (value.draft, value.node, value.dims):
                    return name
        return None

    def pending(self, draft: int) -> Iterable[Internal]:
        """Graph values inside ``draft`` that later operators or the outputs still need."""
        for name, known in self.values.items():
            members = known if isinstance(known, tuple) else (known,)
            if self.last_use.get(name, -1) > self.position:
                for member in members:
                    if isinstance(member, Internal):
                        now = self.internal(member)
                        if now.draft == draft:
                            yield now

    def reshaped(self, value: Internal, shape: tuple[int, ...]) -> Internal | None:
        """``value`` with its dimensions regrouped, if its loop nest allows."""
        value = self.internal(value)
        draft = self.drafts[value.draft].copy()
        made = reshape(draft.axes, value.dims, shape, draft.fresh_number())
        if made is None:
            return None
        self.drafts[value.draft] = draft
        return Internal(value.draft, value.node, made[0], shape, value.dtype)

    # ---- steps ----------------------------------------------------------------------------

    def new_step(self) -> int:
        """A number for a new step without dependencies."""
        step = next(self.counter)
        self.deps[step] = set()
        return step

    def depend(self, step: int, on: Iterable[int]) -> None:
        """Record that ``step`` runs after the steps ``on``, transitively."""
        added = {s for p in on if p != step for s in {p, *self.deps[p]}}
        for other, known in self.deps.items():
            if other == step or step in known:
                known |= added

    def call(self, node: GraphNode, *, view: bool, reads: Iterable[str]) -> int:
        """Append a library call that reads the Python variables ``reads``."""
        step = self.new_step()
        self.calls[step] = AtenCall(node, view)
        self.depend(step, [self.producer[r] for r in reads if r in self.producer])
        return step


def _compact(value: Internal) -> Internal:
    """``value`` with its expanded dimensions reduced to one element."""
    free = [isinstance(d, Free) for d in value.dims]
    dims = tuple(() if f else d for f, d in zip(free, value.dims, strict=True))
    shape = tuple(1 if f else s for f, s in zip(free, value.shape, strict=True))
    return replace(value, dims=dims, shape=shape)


def _expanded(view: BufferView, value: Internal) -> BufferView:
    pairs = zip(value.dims, view.stride, strict=True)
    stride = tuple(0 if isinstance(d, Free) else s for d, s in pairs)
    return replace(view, shape=value.shape, stride=stride)


def _readers(graph: Graph) -> dict[str, list[GraphNode]]:
    """Value name -> the nodes that read it."""
    found: dict[str, list[GraphNode]] = {}
    for node in graph.nodes:
        for name in set(references((node.args, node.kwargs))):
            found.setdefault(name, []).append(node)
    return found


def _last_uses(graph: Graph) -> dict[str, int]:
    """Value name -> index of the last node that reads it; outputs count as one past the end."""
    found: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        for name in references((node.args, node.kwargs)):
            found[name] = index
    for name in references((graph.outputs, graph.mutations)):
        found[name] = len(graph.nodes)
    return found


def references(value: object) -> Iterable[str]:
    """Names of the graph values mentioned in JSON ``value``."""
    if isinstance(value, dict):
        if set(value) == {"ref"}:
            yield value["ref"]
        else:
            for part in value.values():
                yield from references(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from references(part)
