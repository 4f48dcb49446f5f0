"""A kernel in the making: nodes with symbolic axes, grown one operator at a time.

Every growth is tried on a copy; ``axes.Mismatch`` means the operator does not fit this loop nest
and the copy is dropped. Finished drafts become ``ir.Kernel`` in ``layout``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kernelpro.proposers.playbook.plan.axes import AxisTable, Dim, Dims, Free, Mismatch
from kernelpro.proposers.playbook.plan.ir import NodeKind


@dataclass(frozen=True, slots=True)
class Border:
    """A dimension of the buffer that a view may look beyond: padding that is not in memory."""

    stride: tuple[int, ...]
    """Per dimension of the view: steps along the buffer's dimension."""
    offset: int
    size: int
    """Of the buffer's dimension: coordinates outside 0 .. size-1 read as ``fill``."""


@dataclass(frozen=True, slots=True)
class BufferView:
    """A strided window on a buffer: how a tensor in memory is seen after views."""

    buffer: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: str
    window: bool = False
    """Sliding windows: made and used within one lowering (see ``lower_window``)."""
    borders: tuple[Border, ...] = ()
    """Only with ``window``."""
    fill: float = 0.0


@dataclass(frozen=True, slots=True)
class Internal:
    """A value that so far exists only inside draft ``draft``."""

    draft: int
    node: int
    dims: Dims
    shape: tuple[int, ...]
    dtype: str
    """Torch dtype of the tensor it stands for."""


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar known at planning time, broadcast to ``shape``."""

    value: float | int | bool
    shape: tuple[int, ...]
    dtype: str


Value = BufferView | Internal | Number


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One value of a draft; ``dims`` are those of the tensor it stands for."""

    kind: NodeKind
    op: str
    args: tuple[int, ...]
    dims: Dims
    dtype: str
    view: BufferView | None = None
    value: float | int | bool | None = None
    reduced_dims: Dims = ()


@dataclass(slots=True)
class Draft:
    """Nodes, axes and the reduced set of one future kernel."""

    number: int
    counter: itertools.count[int]
    axes: AxisTable = field(default_factory=AxisTable)
    nodes: list[DraftNode] = field(default_factory=list)
    reduced: tuple[int, ...] | None = None
    covers: list[str] = field(default_factory=list)
    stored: dict[int, list[tuple[BufferView, Dims]]] = field(default_factory=dict)
    """Node -> buffers it is written to, with the dims it is written with."""

    def copy(self) -> Draft:
        """An independent copy to try something on."""
        stored = {node: list(where) for node, where in self.stored.items()}
        return replace(
            self, axes=self.axes.copy(), nodes=list(self.nodes), covers=list(self.covers),
            stored=stored,
        )  # fmt: skip

    def fresh_number(self) -> int:
        """An unused axis number; a block of 64 follows it for splits."""
        return next(self.counter) * 64

    def absorb(self, other: Draft) -> int:
        """Append the nodes of ``other``; returns the offset of their indices."""
        if self.reduced is not None and other.reduced is not None:
            raise Mismatch("both kernels already reduce")
        offset = len(self.nodes)
        self.axes.absorb(other.axes)
        self.nodes += [replace(n, args=tuple(a + offset for a in n.args)) for n in other.nodes]
        self.stored |= {n + offset: list(where) for n, where in other.stored.items()}
        self.reduced = self.reduced if self.reduced is not None else other.reduced
        self.covers += other.covers
        return offset

    def add(self, node: DraftNode) -> int:
        """Append a node, or return an identical earlier one."""
        for index, known in enumerate(self.nodes):
            if known == node:
                return index
        self.nodes.append(node)
        return len(self.nodes) - 1

    def load(self, view: BufferView, dtype: str) -> tuple[int, Dims]:
        """A node reading ``view`` as ``dtype`` (the type to compute in)."""
        for index, known in enumerate(self.nodes):
            if known.view == view and known.dtype == dtype:
                return index, known.dims
        dims: list[Dim] = []
        for size, stride in zip(view.shape, view.stride, strict=True):
            if size == 1:
                dims.append(())
            elif stride == 0:
                dims.append(Free(size))
            else:
                dims.append((self.axes.fresh(self.fresh_number(), size),))
        fill = view.fill if view.borders else None
        node = DraftNode("load", "", (), tuple(dims), dtype, view=view, value=fill)
        self.nodes.append(node)
        return len(self.nodes) - 1, node.dims

    def constant(self, value: float | int | bool, dtype: str) -> int:
        """A constant node."""
        for index, known in enumerate(self.nodes):
            same = known.kind == "constant" and known.dtype == dtype
            if same and repr(known.value) == repr(value):
                return index
        self.nodes.append(DraftNode("constant", "", (), (), dtype, value=value))
        return len(self.nodes) - 1

    def broadcast(self, operands: Sequence[Dims], shape: Sequence[int]) -> Dims:
        """Unify the operands' dims into those of a result of ``shape``; raises ``Mismatch``."""
        number = self.fresh_number()
        result: list[Dim] = []
        for position, size in enumerate(shape):
            found: Dim = () if size == 1 else Free(size)
            for dims in operands:
                index = position - (len(shape) - len(dims))
                if index < 0 or size == 1 or self.axes.size(dims[index]) == 1:
                    continue
                found, number = self.axes.unify(found, dims[index], number)
            result.append(found)
        resolved = self.axes.resolve(tuple(result))
        for node in self.nodes:
            self.axes.check_distinct(node.dims)
        self.axes.check_distinct(resolved)
        return resolved

    def flat(self, dims: Dims) -> frozenset[int]:
        """Atomic axes a value with ``dims`` varies along."""
        return frozenset(_flatten(self.axes.resolve(dims)))

    def domain(self) -> frozenset[int]:
        """All atomic axes of the loop nest."""
        return frozenset(a for node in self.nodes for a in self.flat(node.dims))

    def reduced_axes(self) -> frozenset[int]:
        """Atomic axes that are reduced."""
        return frozenset(self.axes.atoms(self.reduced or ()))

    def row_axes(self) -> frozenset[int]:
        """Atomic axes that are not reduced."""
        return self.domain() - self.reduced_axes()

    def spans(self, dims: Dims) -> bool:
        """True if a value with ``dims`` can be stored: it covers whole rows or whole points."""
        own, reduced = self.flat(dims), self.reduced_axes()
        return own in (self.domain(), self.domain() - reduced)

    def check(self) -> None:
        """Reductions must cover every row axis, else rows would repeat work; or ``Mismatch``."""
        rows = self.row_axes()
        for node in self.nodes:
            if node.kind == "reduce" and self.flat(node.dims) != rows:
                raise Mismatch("a reduction does not cover every row")


def _flatten(dims: Iterable[Dim]) -> Iterable[int]:
    for dim in dims:
        if not isinstance(dim, Free):
            yield from dim
