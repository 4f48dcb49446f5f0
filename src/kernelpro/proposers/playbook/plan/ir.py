"""The planning IR: what a back end (C++ here, CUDA elsewhere) turns into one native function.

A :class:`Plan` is a list of steps in execution order. A step is a :class:`Kernel` (fused native
code), a :class:`MatmulKernel` (a matrix product with a fused epilogue), a :class:`ScanKernel`
(running sums), or an :class:`AtenCall` (left to torch). Steps read and write named
:class:`Buffer` objects; every shape is a constant.

A kernel is one loop nest over ``axes`` and a list of nodes in single-assignment form::

    for every point of the non-reduced axes (the "row"):
        for each pass s = 0 .. passes-1:              # over the reduced axes, if there are any
            evaluate the element nodes of stage s, feed the reduce nodes of stage s
        evaluate the row nodes of stage s + 1
        finally one more pass if a node that varies along reduced axes is stored

An axis carries its size and whether it is reduced. ``axes`` are ordered by memory, outermost
first; adjacent axes that every access walks as one are already merged. A node *varies* along the
axes its loads have a non-zero stride on; a reduce node no longer varies along reduced axes.
``Kernel.level`` and ``Kernel.stage`` derive where a node belongs. Node order is a valid
evaluation order. Nothing here knows about lanes, threads or blocks: those are knobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from kernelpro.schema.graph import GraphNode

NodeKind = Literal["load", "constant", "index", "compute", "reduce"]
BufferKind = Literal["input", "parameter", "buffer", "constant", "temporary"]
Level = Literal["constant", "row", "element"]

HALF_TYPES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense or strided tensor in memory. Python variable ``name`` holds it in ``forward``."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements."""
    dtype: str
    kind: BufferKind
    target: str | None = None
    """``state_dict`` name of a parameter or buffer."""
    value: object = None
    """Nested lists of a small constant."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Access:
    """Affine address into a buffer: ``offset + sum(index[i] * strides[i])``, in elements."""

    buffer: str
    strides: tuple[int, ...]
    """One per kernel axis, 0 where the address does not move."""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Guard:
    """A load is made only where ``0 <= offset + sum(index[i] * strides[i]) < size``."""

    strides: tuple[int, ...]
    """One per kernel axis: how the guarded coordinate moves, in elements of its dimension."""
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of a kernel."""

    size: int
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One value. ``args`` are indices of earlier nodes of the same kernel."""

    kind: NodeKind
    op: str
    """Compute: a name of ``operators.COMPUTE``; reduce: a name of ``operators.REDUCE``;
    otherwise empty."""
    args: tuple[int, ...]
    dtype: str
    """Type of the value as computed: half-precision loads are widened to float32."""
    access: Access | None = None
    """Load: where from. Index and arg-reductions: the linear index, with an empty buffer name."""
    value: float | int | bool | None = None
    """Constant: the number. Guarded load: what stands in for elements outside the buffer."""
    guards: tuple[Guard, ...] = ()
    """Load: dimensions whose border it may cross (windows with padding)."""
    window: bool = False
    """Load: neighbouring points read overlapping elements, so that packs would not be aligned."""


@dataclass(frozen=True, slots=True)
class Store:
    """Write ``node`` to memory, rounding to the buffer's dtype."""

    node: int
    access: Access


@dataclass(frozen=True, slots=True)
class Kernel:
    """One fused loop nest (module docstring)."""

    name: str
    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]
    covers: tuple[str, ...] = ()
    """Graph nodes computed here, for titles and coverage."""
    reuse: tuple[tuple[str, str], ...] = ()
    """(output buffer, input buffer): the output may be written over this dead temporary."""

    def varies(self) -> tuple[frozenset[int], ...]:
        """Per node, the indices of the axes it varies along."""
        reduced = {i for i, axis in enumerate(self.axes) if axis.reduced}
        result: list[frozenset[int]] = []
        for node in self.nodes:
            own = frozenset[int]()
            if node.kind in ("load", "index") and node.access is not None:
                own = frozenset(i for i, s in enumerate(node.access.strides) if s)
            for arg in node.args:
                own |= result[arg]
            result.append(own - reduced if node.kind == "reduce" else own)
        return tuple(result)

    def levels(self) -> tuple[Level, ...]:
        """Per node: ``element`` if it varies along a reduced axis, ``row`` if along others only.

        In a kernel without reduced axes every varying node is ``row``.
        """
        reduced = {i for i, axis in enumerate(self.axes) if axis.reduced}
        return tuple(
            "element" if axes & reduced else "row" if axes else "constant" for axes in self.varies()
        )

    def stages(self) -> tuple[int, ...]:
        """Per node, how many passes must be complete before it can be evaluated."""
        result: list[int] = []
        for node in self.nodes:
            ready = max((result[arg] for arg in node.args), default=0)
            result.append(ready + 1 if node.kind == "reduce" else ready)
        return tuple(result)

    @property
    def passes(self) -> int:
        """Number of reducing passes: 0 element-wise, 2 for softmax and layer norm."""
        return max(self.stages(), default=0)

    @property
    def points(self) -> int:
        """Product of all axis sizes."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def rows(self) -> int:
        """Product of the sizes of the axes that are not reduced."""
        return math.prod(axis.size for axis in self.axes if not axis.reduced)

    @property
    def reduction(self) -> int:
        """Product of the sizes of the reduced axes: the row length."""
        return math.prod(axis.size for axis in self.axes if axis.reduced)

    def reads(self) -> tuple[str, ...]:
        """Names of the buffers loaded, without repeats, in order of first use."""
        names = [n.access.buffer for n in self.nodes if n.kind == "load" and n.access]
        return tuple(dict.fromkeys(names))

    def writes(self) -> tuple[str, ...]:
        """Names of the buffers stored, without repeats."""
        return tuple(dict.fromkeys(s.access.buffer for s in self.stores))


@dataclass(frozen=True, slots=True)
class MatmulKernel:
    """``out[b, i, j] = epilogue(sum over k of lhs[b, i, k] * rhs[b, k, j])``.

    ``epilogue`` is an element-wise kernel over the axes (b, i, j) (b only if ``batch`` > 1) whose
    single load of ``product`` stands for the accumulated sum; None stores the sum itself in
    ``product`` (row-major). Kernels that reduce along rows of the product follow as steps of
    their own. Operands have one dtype: float32, float16 or bfloat16.
    """

    name: str
    batch: int
    m: int
    n: int
    k: int
    lhs: Access
    """Strides of (b, i, k)."""
    rhs: Access
    """Strides of (b, k, j)."""
    product: str
    epilogue: Kernel | None = None
    call: GraphNode | None = None
    """The library call that computes the plain product into ``product``."""
    covers: tuple[str, ...] = ()

    def reads(self) -> tuple[str, ...]:
        """Names of the buffers read."""
        extra = self.epilogue.reads() if self.epilogue else ()
        names = (self.lhs.buffer, self.rhs.buffer, *(n for n in extra if n != self.product))
        return tuple(dict.fromkeys(names))

    def writes(self) -> tuple[str, ...]:
        """Names of the buffers written."""
        return self.epilogue.writes() if self.epilogue else (self.product,)


ScanOp = Literal["sum", "prod"]


@dataclass(frozen=True, slots=True)
class ScanKernel:
    """``target[o, i, n] = op over j <= i of source[o, j, n]``, accumulated in the target's type.

    Half precision accumulates in float32.
    """

    name: str
    op: ScanOp
    outer: int
    length: int
    inner: int
    source: Access
    """Strides of (outer, length, inner); the middle one may be negative."""
    target: Access
    covers: tuple[str, ...] = ()

    def reads(self) -> tuple[str, ...]:
        """Names of the buffers read."""
        return (self.source.buffer,)

    def writes(self) -> tuple[str, ...]:
        """Names of the buffers written."""
        return (self.target.buffer,)


@dataclass(frozen=True, slots=True)
class AtenCall:
    """``name = torch.ops.<op>(...)`` exactly as exported."""

    node: GraphNode
    view: bool = False
    """True if the result only aliases its input."""

    @property
    def name(self) -> str:
        """The graph node's name, which is also the Python variable."""
        return self.node.name


Step = Kernel | MatmulKernel | ScanKernel | AtenCall


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the plan computes natively and what it leaves to torch: reported, never rounded up."""

    native: tuple[str, ...]
    """Graph node names computed in kernels."""
    library: tuple[tuple[str, str], ...]
    """(graph node name, why it stays with torch)."""
    native_share: float
    """Share of the graph's FLOPs in native kernels, 0..1; element-wise work counts one each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One graph, ready for a back end."""

    steps: tuple[Step, ...]
    buffers: dict[str, Buffer]
    inputs: tuple[str, ...]
    """Graph input names in the order ``forward`` receives them (tensors and scalars)."""
    outputs: tuple[object, ...]
    """``{"ref": name}`` or a JSON constant each."""
    structure: str
    """``tensor``, ``tuple``, ``list`` or ``dict``."""
    coverage: Coverage
    """With all matrix products left to the library; ``coverage.plan_coverage`` for others."""
    output_keys: tuple[str, ...] = ()
    mutations: tuple[tuple[str, str], ...] = ()
    """(buffer or input name as in ``Graph.mutations``, variable with its new value)."""
    costs: dict[str, float] = field(default_factory=dict)
    """Graph node -> work, see ``coverage``."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Graph node left to torch -> why."""
    scalars: dict[str, object] = field(default_factory=dict)
    """Non-tensor inputs and the value the graph was exported with."""
