"""Element-wise kernels with permuted reads: through tiles in shared memory, coalesced both ways.

A read is *crossed* if its neighbouring elements lie along another axis than the innermost, along
which results are written. A block first copies a square tile of each such operand, in the
operand's own order, then computes the same square in the order of the results. Lines of a tile
are one element longer than needed, so that columns are spread over the banks too.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import (
    PACK_BYTES,
    WORD_BYTES,
    Body,
    choose_lanes,
    coordinates,
    itemsize,
    pointer,
)  # fmt: skip
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.expressions import MEMORY_TYPES
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.plan.ir import Access, Buffer, Kernel

THREADS = 256
TILE = 64
"""Elements along both sides: 256 bytes of float32 (chosen); 32 where operands are many or wide."""
LEAST = 8
"""Axes shorter than this are not worth a tile (chosen): a 32-byte sector holds so many floats."""
SHARED_BYTES = 48 * 1024
"""A block's shared memory without opting in (CUDA C++ guide, table of limits)."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """What goes through shared memory."""

    axis: int
    """The axis that the operands are contiguous along."""
    loads: tuple[int, ...]
    """Load nodes, one per distinct access."""
    tile: int


def find_crossing(kernel: Kernel, buffers: dict[str, Buffer]) -> Crossing | None:
    """The crossed reads of an element-wise kernel; None if there are none worth a tile."""
    inner = len(kernel.axes) - 1
    if inner < 1 or any(axis.reduced for axis in kernel.axes):
        return None
    if not all(s.access.strides[inner] == 1 for s in kernel.stores):
        return None
    crossed = {i: axis for i, node in enumerate(kernel.nodes) if node.kind == "load"
               and (axis := _crossed(kernel, node.access, inner)) is not None
               and not node.guards and not node.window}  # fmt: skip
    if not crossed:
        return None
    axis = Counter(crossed.values()).most_common(1)[0][0]
    loads = tuple(i for i, found in crossed.items() if found == axis)
    pitch = sum(itemsize(buffers[_access(kernel, i).buffer]) for i in loads)
    tile = TILE if TILE * (TILE + 1) * pitch <= SHARED_BYTES else TILE // 2
    fits = tile * (tile + 1) * pitch <= SHARED_BYTES
    return Crossing(axis, loads, tile) if fits else None


def _access(kernel: Kernel, load: int) -> Access:
    access = kernel.nodes[load].access
    assert access is not None
    return access


def _crossed(kernel: Kernel, access: Access | None, inner: int) -> int | None:
    """The axis along which a read is contiguous, if it is not the innermost."""
    if access is None or access.strides[inner] in (0, 1) or kernel.axes[inner].size < LEAST:
        return None
    along = [i for i, s in enumerate(access.strides) if s == 1 and kernel.axes[i].size >= LEAST]
    return along[-1] if along else None


class _Tiled(Body):
    """A body whose crossed reads come from tiles."""

    crossing: Crossing

    def load(self, node: int, target: str | None = None) -> list[str]:
        """Elements of the tile, at line ``inside_inner`` and column ``inside_cross``."""
        if node not in self.crossing.loads:
            return super().load(node, target)
        kind = MEMORY_TYPES[self.buffers[_access(self.kernel, node).buffer].dtype]
        if self.lanes == 1:
            return [f"const {kind} raw{node} = tile{node}[inside_inner][inside_cross];"]
        return [
            f"{kind} raw{node}[{self.lanes}];",
            "#pragma unroll",
            f"for (int v = 0; v < {self.lanes}; ++v) "
            f"raw{node}[v] = tile{node}[inside_inner + v][inside_cross];",
        ]


def emit_transposed(
    kernel: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs, crossing: Crossing
) -> Emitted:
    """One block a tile of ``crossing.axis`` and the innermost axis."""
    lanes = min(choose_lanes(kernel, buffers, knobs.lanes), 4)
    body = _Tiled(kernel, buffers, lanes=lanes, fast=knobs.fast_math, stream=knobs.stream)
    body.crossing = crossing
    constant = [i for i, level in enumerate(body.levels) if level == "constant"]
    lines = [*_place(body), *body.evaluate(constant)]
    for load in crossing.loads:
        lines += _fill(body, load)
    lines += ["__syncthreads();", *_compute(body)]
    parameters = body.parameters()
    source = function(kernel.name, [p for p, _ in parameters], THREADS, lines)
    inner, cross = kernel.axes[-1].size, kernel.axes[crossing.axis].size
    tiles = math.ceil(inner / crossing.tile) * math.ceil(cross / crossing.tile)
    blocks = tiles * (kernel.points // (inner * cross))
    launch = Launch(kernel.name, (blocks, 1, 1), (THREADS, 1, 1), tuple(n for _, n in parameters))
    return Emitted(source, (launch,))


def _place(body: _Tiled) -> list[str]:
    """First element of the tile along both axes, and the coordinates of the others."""
    kernel, tile, cross = body.kernel, body.crossing.tile, body.crossing.axis
    kind, inner = body.index_type(), body.inner
    along = {i: math.ceil(kernel.axes[i].size / tile) for i in (inner, cross)}
    others = [i for i in range(len(kernel.axes)) if i not in along]
    rest = f"block / {along[inner]} / {along[cross]}"
    lines = [
        f"const {kind} block = blockIdx.x;",
        f"const int first_inner = block % {along[inner]} * {tile};",
        f"const int first_cross = block / {along[inner]} % {along[cross]} * {tile};",
    ]
    if others:
        lines.append(f"const {kind} other = {rest};")
        lines += coordinates(kernel, others, "other", lanes=1, kind=kind)
    return lines


def _fill(body: _Tiled, load: int) -> list[str]:
    """Copy one operand's tile, packed along its own contiguous axis."""
    kernel, crossing = body.kernel, body.crossing
    access, tile = _access(kernel, load), crossing.tile
    kind = MEMORY_TYPES[body.buffers[access.buffer].dtype]
    size, inner_size = kernel.axes[crossing.axis].size, kernel.axes[body.inner].size
    width = _width(kernel, access, crossing.axis, itemsize(body.buffers[access.buffer]))
    stream = "true" if body.stream else "false"
    per_line, count = tile // width, tile * tile // width
    index = body.index_type()
    place = f"const int line = unit / {per_line}, part = unit % {per_line} * {width};"
    fetch = [
        place,
        f"const {index} c{body.inner} = first_inner + line, c{crossing.axis} = first_cross + part;",
        f"if (c{body.inner} < {inner_size} && c{crossing.axis} < {size})",
        f"  load_pack<{kind}, {width}, {stream}>"
        f"({pointer(access.buffer)} + ({body.address(access)}), pack{load}[step]);",
    ]
    deposit = [
        place,
        "#pragma unroll",
        f"for (int i = 0; i < {width}; ++i) tile{load}[line][part + i] = pack{load}[step][i];",
    ]
    return [  # two loops, so that all reads of a thread are in flight together
        f"__shared__ {kind} tile{load}[{tile}][{tile + 1}];",
        f"{kind} pack{load}[{math.ceil(count / THREADS)}][{width}] = {{}};",
        *_units(count, fetch),
        *_units(count, deposit),
    ]


def _width(kernel: Kernel, access: Access, axis: int, size: int) -> int:
    """Elements of one access along ``axis``: 16 bytes, or what alignment allows."""
    width = PACK_BYTES // max(size, WORD_BYTES)
    steps = [s for i, s in enumerate(access.strides) if i != axis and kernel.axes[i].size > 1]
    while width > 1 and any(n % width for n in (kernel.axes[axis].size, access.offset, *steps)):
        width //= 2
    return width


def _compute(body: _Tiled) -> list[str]:
    """Everything for the packs of the tile, in the order of the results."""
    kernel, tile, cross, lanes = body.kernel, body.crossing.tile, body.crossing.axis, body.lanes
    per_line = tile // lanes
    before, inside, after = body.stores(kernel.stores)
    nodes = body.needed([s.node for s in kernel.stores], "row")
    index = body.index_type()
    point = [
        f"const int inside_cross = unit / {per_line}, inside_inner = unit % {per_line} * {lanes};",
        f"const {index} c{body.inner} = first_inner + inside_inner, "
        f"c{cross} = first_cross + inside_cross;",
        f"if (c{body.inner} < {kernel.axes[body.inner].size} && "
        f"c{cross} < {kernel.axes[cross].size}) {{",
        *indent([*before, *body.evaluate(nodes, inside), *after]),
        "}",
    ]
    return _units(tile * tile // lanes, point)


def _units(count: int, inside: list[str]) -> list[str]:
    """Deal ``count`` units out to the threads, neighbours to neighbours."""
    return [
        "#pragma unroll",
        f"for (int step = 0; step < {math.ceil(count / THREADS)}; ++step) {{",
        f"  const int unit = step * {THREADS} + threadIdx.x;",
        *([f"  if (unit >= {count}) break;"] if count % THREADS else []),
        *indent(inside),
        "}",
    ]
