"""Statements for the nodes of a kernel: addresses, packed loads and stores, and the arithmetic.

Every mapping of a kernel to threads handles ``lanes`` consecutive elements of the innermost axis
at a time (a *pack*). Values that vary along the innermost axis are computed per lane, inside a
loop over ``v``; the others once. Coordinates are the variables ``c0``, ``c1`` ... per axis;
``c<innermost>`` is that of lane 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernelpro.proposers.playbook.cuda.expressions import (
    COMPUTE_TYPES,
    MEMORY_TYPES,
    expression,
    from_memory,
    literal,
    to_memory,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.ir import Access, Buffer, Kernel, Store

INDEX_LIMIT = 2**31 - 1
"""Beyond this many elements addresses are computed in 64 bits."""
PACK_BYTES = 16
"""Widest access of one thread: one 128-bit transaction."""

WORD_BYTES = 4
"""What packs are sized for: float32 (and a bank of shared memory)."""


class Body:
    """Emits statements of one kernel for packs of ``lanes`` elements."""

    def __init__(
        self, kernel: Kernel, buffers: dict[str, Buffer], *, lanes: int, fast: bool, stream: bool
    ) -> None:
        self.kernel = kernel
        self.buffers = buffers
        self.lanes = lanes
        self.fast = fast
        self.stream = stream
        self.inner = len(kernel.axes) - 1
        self.varies = kernel.varies()
        self.levels = kernel.levels()
        self.stages = kernel.stages()
        self.fetched: frozenset[int] = frozenset()
        """Loads already made for all chunks, into ``raw<i>[chunk][v]``."""
        self.holding: frozenset[int] = frozenset()
        """Element values kept in registers across passes, as ``h<i>[chunk][v]``."""
        self.held: set[int] = set()
        """Those of ``holding`` that are computed by now."""
        self.kept: set[int] = set()
        """Per-lane values that outlive their loop, in arrays ``k<i>[v]``."""

    # ---- names and types --------------------------------------------------------------------

    def per_lane(self, node: int) -> bool:
        """True if the value differs between the lanes of a pack."""
        return self.inner in self.varies[node] and self.lanes > 1

    def type(self, node: int) -> str:
        """C++ type of the node's value."""
        return COMPUTE_TYPES[self.kernel.nodes[node].dtype]

    def index_type(self) -> str:
        """``int`` where every address fits."""
        names = {*self.kernel.reads(), *self.kernel.writes()}
        spans = [_span(self.buffers[name]) for name in names if name in self.buffers]
        counted = max(self.kernel.rows, self.kernel.reduction)
        return "long long" if max([*spans, counted]) > INDEX_LIMIT else "int"

    def parameters(self) -> list[tuple[str, str]]:
        """(declaration, buffer name) of each pointer the kernel takes."""
        written = self.kernel.writes()
        found = []
        for name in self.kernel.reads():
            if name not in written:
                kind = MEMORY_TYPES[self.buffers[name].dtype]
                found.append((f"const {kind}* __restrict__ {pointer(name)}", name))
        for name in written:
            restrict = "" if name in self.kernel.reads() else " __restrict__"
            kind = MEMORY_TYPES[self.buffers[name].dtype]
            found.append((f"{kind}*{restrict} {pointer(name)}", name))
        return found

    def address(self, access: Access, lane: str = "") -> str:
        """Element offset of ``access`` at the current coordinates."""
        terms = [str(access.offset)] if access.offset else []
        for axis, stride in enumerate(access.strides):
            if stride and self.kernel.axes[axis].size > 1:
                terms.append(f"c{axis}" if stride == 1 else f"c{axis} * {_number(stride)}")
        inner = access.strides[self.inner] if access.strides else 0
        if lane and inner:
            terms.append(lane if inner == 1 else f"{lane} * {_number(inner)}")
        return " + ".join(terms) or "0"

    def needed(self, roots: Iterable[int], level: str) -> list[int]:
        """Nodes of ``level`` that ``roots`` depend on (themselves included), in order."""
        wanted: set[int] = set()
        pending = [r for r in roots if self.levels[r] == level]
        while pending:
            node = pending.pop()
            known = node in wanted or node in self.held
            if known or self.kernel.nodes[node].kind == "reduce":
                continue
            wanted.add(node)
            pending += [a for a in self.kernel.nodes[node].args if self.levels[a] == level]
        return sorted(wanted)

    # ---- statements -------------------------------------------------------------------------

    def evaluate(
        self, nodes: Sequence[int], finish: Sequence[str] = (), *, keep: bool = False
    ) -> list[str]:
        """Loads, then the arithmetic of ``nodes``; ``finish`` runs per lane, after them.

        ``keep``: later statements need the per-lane values, so they go to arrays.
        """
        lines: list[str] = []
        inside: list[str] = []
        for node in nodes:
            if self.kernel.nodes[node].kind == "load" and node not in self.fetched:
                lines += self.load(node)
        for node in nodes:
            statement = f"const {self.type(node)} n{node} = {self.value(node)};"
            if self.per_lane(node):
                inside.append(statement)
                if keep:
                    lines.append(f"{self.type(node)} k{node}[{self.lanes}];")
                    inside.append(f"k{node}[v] = n{node};")
            else:
                lines.append(statement)
            if node in self.holding:
                (inside if self.per_lane(node) else lines).append(f"{self._place(node)} = n{node};")
        inside += finish
        if inside and self.lanes > 1:
            lines += ["#pragma unroll", f"for (int v = 0; v < {self.lanes}; ++v) {{"]
            lines += [f"  {line}" for line in inside] + ["}"]
        else:
            lines += inside
        if keep:
            self.kept |= {node for node in nodes if self.per_lane(node)}
        return lines

    def load(self, node: int, target: str | None = None) -> list[str]:
        """Read the raw elements of a load into ``raw<i>`` (declared here unless ``target``)."""
        access = self.kernel.nodes[node].access
        assert access is not None
        kind = MEMORY_TYPES[self.buffers[access.buffer].dtype]
        name = target or f"raw{node}"
        if not self.per_lane(node):
            declare = "" if target else f"const {kind} "
            read = f"{pointer(access.buffer)}[{self.address(access)}]"
            inside = self.inside(node)
            read = f"{inside} ? {read} : static_cast<{kind}>(0)" if inside else read
            return [f"{declare}{name} = {read};"]
        lines = [] if target else [f"{kind} {name}[{self.lanes}];"]
        stream = "true" if self.stream and read_once(self.kernel, access) else "false"
        if access.strides[self.inner] == 1:
            lines.append(
                f"load_pack<{kind}, {self.lanes}, {stream}>"
                f"({pointer(access.buffer)} + ({self.address(access)}), {name});"
            )
        else:
            lines += [
                "#pragma unroll",
                f"for (int v = 0; v < {self.lanes}; ++v) "
                f"{name}[v] = {pointer(access.buffer)}[{self.address(access, 'v')}];",
            ]
        return lines

    def inside(self, node: int) -> str:
        """Condition under which a guarded load is made; empty for others.

        Guarded loads are never packed (see ``choose_lanes``). One unsigned comparison covers
        both ends.
        """
        kind = "unsigned long long" if self.index_type() == "long long" else "unsigned"
        tests = [
            f"static_cast<{kind}>({self.address(Access('', g.strides, g.offset))}) < {g.size}u"
            for g in self.kernel.nodes[node].guards
        ]
        return f"({' && '.join(tests)})" if tests else ""

    def raw(self, node: int) -> str:
        """Where the raw element of a load is, at the current lane and chunk."""
        chunk = "[chunk]" if node in self.fetched else ""
        return f"raw{node}{chunk}{'[v]' if self.per_lane(node) else ''}"

    def value(self, node: int) -> str:
        """Expression of one node from the variables of its arguments."""
        it = self.kernel.nodes[node]
        if it.kind == "constant":
            return literal(it.value, it.dtype)
        if it.kind == "index":
            assert it.access is not None
            lane = "v" if self.per_lane(node) else ""
            return f"static_cast<{self.type(node)}>({self.address(it.access, lane)})"
        if it.kind == "load":
            assert it.access is not None
            read = from_memory(self.raw(node), self.buffers[it.access.buffer].dtype, it.dtype)
            inside = self.inside(node)
            return f"({inside} ? {read} : {literal(it.value, it.dtype)})" if inside else read
        types = [self.kernel.nodes[a].dtype for a in it.args]
        return expression(it, [self.name(a) for a in it.args], types, fast=self.fast)

    def name(self, node: int) -> str:
        """The variable that holds a node's value."""
        if node in self.held:
            return self._place(node)
        return f"k{node}[v]" if node in self.kept else f"n{node}"

    def _place(self, node: int) -> str:
        """Where a held value is, at the current lane and chunk."""
        return f"h{node}[chunk]{'[v]' if self.per_lane(node) else ''}"

    def stores(self, stores: Sequence[Store]) -> tuple[list[str], list[str], list[str]]:
        """(before, per lane, after) statements that write ``stores`` packed where possible."""
        before: list[str] = []
        inside: list[str] = []
        after: list[str] = []
        for number, store in enumerate(stores):
            buffer = self.buffers[store.access.buffer]
            kind = MEMORY_TYPES[buffer.dtype]
            value = to_memory(
                self.name(store.node), buffer.dtype, self.kernel.nodes[store.node].dtype
            )
            moving = bool(store.access.strides) and store.access.strides[self.inner] != 0
            if self.lanes > 1 and moving and store.access.strides[self.inner] == 1:
                before.append(f"{kind} out{number}[{self.lanes}];")
                inside.append(f"out{number}[v] = {value};")
                stream = "true" if self.stream else "false"
                after.append(
                    f"store_pack<{kind}, {self.lanes}, {stream}>"
                    f"({pointer(buffer.name)} + ({self.address(store.access)}), out{number});"
                )
            else:
                lane = "v" if self.lanes > 1 and moving else ""
                place = f"{pointer(buffer.name)}[{self.address(store.access, lane)}]"
                inside.append(f"{place} = {value};")
        return before, inside, after


def pointer(buffer: str) -> str:
    """Name of a buffer inside a kernel: apart from every local variable."""
    return f"g_{buffer}"


def coordinates(
    kernel: Kernel, axes: Sequence[int], index: str, *, lanes: int, kind: str
) -> list[str]:
    """Statements that split ``index`` into the coordinates of ``axes``, innermost last.

    The innermost axis of the kernel, if among ``axes``, is counted in packs of ``lanes``.
    """
    lines: list[str] = []
    inner = len(kernel.axes) - 1
    rest = index
    for position, axis in enumerate(reversed(axes)):
        packs = lanes if axis == inner else 1
        size = kernel.axes[axis].size // packs
        last = position == len(axes) - 1
        part = rest if last else f"{rest} % {size}"
        scaled = f"({part}) * {packs}" if packs > 1 else part
        lines.append(f"const {kind} c{axis} = {scaled};")
        if not last:
            following = f"q{axis}"
            lines.append(f"const {kind} {following} = {rest} / {size};")
            rest = following
    return lines


def read_once(kernel: Kernel, access: Access) -> bool:
    """True if no element is accessed at two points: what is shared should stay in the cache."""
    axes = zip(kernel.axes, access.strides, strict=True)
    return all(stride or axis.size == 1 for axis, stride in axes)


def choose_lanes(kernel: Kernel, buffers: dict[str, Buffer], limit: int) -> int:
    """Elements per pack, all packed accesses aligned.

    At most 16 bytes of the widest type up to float32 among what is not shared between rows: were a
    thread's share of such a buffer more than one access, neighbouring threads would no longer
    touch neighbouring words. One where windows slide: neighbouring threads then read neighbouring
    elements.
    """
    if not kernel.axes or any(n.window for n in kernel.nodes):
        return 1
    inner = len(kernel.axes) - 1
    accesses = [n.access for n in kernel.nodes if n.kind == "load" and n.access]
    accesses += [s.access for s in kernel.stores]
    packed = [a for a in accesses if a.strides and a.strides[inner] == 1]
    if not packed:
        return 1
    alone = [a for a in packed if read_once(kernel, a)] or packed
    sizes = {itemsize(buffers[a.buffer]) for a in alone}
    widest = max((s for s in sizes if s <= WORD_BYTES), default=min(sizes))
    lanes = min(limit, PACK_BYTES // widest, 8)
    while lanes > 1 and not _fits(kernel, packed, lanes, inner):
        lanes //= 2
    return lanes


def _fits(kernel: Kernel, packed: Sequence[Access], lanes: int, inner: int) -> bool:
    if kernel.axes[inner].size % lanes:
        return False
    return all(
        access.offset % lanes == 0
        and all(s % lanes == 0 for i, s in enumerate(access.strides)
                if i != inner and kernel.axes[i].size > 1)
        for access in packed
    )  # fmt: skip


_ITEMSIZE = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


def itemsize(buffer: Buffer) -> int:
    """Bytes of one element."""
    return _ITEMSIZE[buffer.dtype]


def _span(buffer: Buffer) -> int:
    """Largest element offset the buffer reaches, plus one."""
    reach = sum((n - 1) * abs(s) for n, s in zip(buffer.shape, buffer.stride, strict=True) if n)
    return reach + 1


def _number(stride: int) -> str:
    return f"{stride}LL" if abs(stride) > INDEX_LIMIT else str(stride)
