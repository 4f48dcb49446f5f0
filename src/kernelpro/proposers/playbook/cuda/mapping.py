"""How the rows and the reduction of a kernel are dealt out to threads.

``RowMapping`` serves reductions along the innermost axis: a group of threads walks one row.
``ColumnMapping`` serves reductions along other axes: neighbouring threads own neighbouring
columns and walk down them together, so that accesses stay coalesced. Either can be *split*: a
row's reduction is then shared by ``splits`` blocks that meet through a workspace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body, coordinates
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.plan.ir import Kernel

MIN_SPLIT_ITEMS = 16
"""A split must leave each thread at least this many reduction steps (chosen)."""
MAX_SPLITS = 256
SHORT_COLUMN, ALONE = 128, 128
"""A reduction this short is one thread's work where there are columns enough to fill the GPU with
blocks of so many threads: meeting others would cost more than it brings (chosen)."""
LONG_ROW = 512
"""Shorter rows (elements) are dealt out in memory order: neighbours share DRAM pages (chosen)."""
WAVES = 4
"""Blocks per multiprocessor that hide memory latency when a reduction is split (chosen)."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Threads of one block: ``group`` along the reduction, the rest along rows."""

    rows: bool
    """True: RowMapping (the innermost axis is reduced)."""
    threads: int
    group: int
    """Threads that share one reduction."""
    units: int
    """Rows (or packs of columns) in all."""
    steps: int
    """Reduction steps of one unit: packs of the row, or elements of the column."""
    splits: int

    @property
    def units_per_block(self) -> int:
        """Rows or column packs one block handles."""
        return self.threads // self.group

    @property
    def segment(self) -> int:
        """Reduction steps of one split."""
        return math.ceil(self.steps / self.splits)

    @property
    def unroll(self) -> str:
        """The pragma before the loop over the reduction: all of it where one thread does it."""
        alone = not self.rows and self.group == 1 and self.segment <= SHORT_COLUMN
        return "#pragma unroll" if alone else "#pragma unroll 4"

    @property
    def chunks(self) -> int:
        """Reduction steps per thread within a segment."""
        return math.ceil(self.segment / self.group)

    @property
    def blocks(self) -> int:
        """Grid size."""
        return math.ceil(self.units / self.units_per_block) * self.splits

    def setup(self, body: Body, kind: str) -> list[str]:
        """Who am I: unit, place in the group, and the coordinates of the row axes."""
        kernel = body.kernel
        own = self.row_axes(kernel)
        block = "blockIdx.x" if self.splits == 1 else f"(blockIdx.x / {self.splits})"
        lines = []
        if self.splits > 1:
            lines.append(f"const {kind} split = blockIdx.x % {self.splits};")
        if self.rows:
            lines.append(f"const int place = threadIdx.x % {self.group};")
            offset = f" + threadIdx.x / {self.group}" if self.units_per_block > 1 else ""
        else:
            # A thread that is alone knows it: loops over constants can be unrolled.
            where = "0" if self.group == 1 else f"threadIdx.x / {self.units_per_block}"
            lines.append(f"const int place = {where};")
            offset = f" + threadIdx.x % {self.units_per_block}"
        lines.append(
            f"const {kind} unit = static_cast<{kind}>({block}) * {self.units_per_block}{offset};"
        )
        index = "unit"
        if self.partial:
            lines += [
                f"const bool live = unit < {self.units};",
                f"const {kind} safe_unit = live ? unit : 0;",
            ]
            index = "safe_unit"
        return lines + coordinates(kernel, own, index, lanes=self._row_lanes(body), kind=kind)

    def row_axes(self, kernel: Kernel) -> list[int]:
        """The axes of the rows in the order they are dealt out, the quickest last.

        Long rows that share an operand (a mask for all heads) follow one another, so that it comes
        from L2.
        """
        own = [i for i, axis in enumerate(kernel.axes) if not axis.reduced]
        if not self.rows or kernel.reduction < LONG_ROW:
            return own
        reduced = [i for i, axis in enumerate(kernel.axes) if axis.reduced]
        strides = [n.access.strides for n in kernel.nodes if n.kind == "load" and n.access
                   and any(n.access.strides[i] for i in reduced)]  # fmt: skip
        return sorted(own, key=lambda axis: sum(s[axis] == 0 for s in strides))

    @property
    def partial(self) -> bool:
        """True if the last block has units that do not exist."""
        return self.units % self.units_per_block != 0

    def _row_lanes(self, body: Body) -> int:
        return 1 if self.rows else body.lanes

    def reduction_coordinates(self, body: Body, kind: str) -> list[str]:
        """Coordinates of the reduced axes at step ``j``."""
        axes = [i for i, axis in enumerate(body.kernel.axes) if axis.reduced]
        return coordinates(body.kernel, axes, "j", lanes=body.lanes if self.rows else 1, kind=kind)


def choose_mapping(kernel: Kernel, lanes: int, knobs: CudaKnobs, units: int) -> Mapping:
    """The mapping for ``kernel`` on a GPU with ``units`` multiprocessors."""
    rows = kernel.axes[-1].reduced
    if rows:
        steps = kernel.reduction // lanes
        group, threads = _row_group(steps, knobs)
        owners = kernel.rows
    else:
        steps = kernel.reduction
        width = 32
        depth = _power_of_two(min(knobs.column_depth, max(1, steps // 2)))
        if steps <= SHORT_COLUMN and kernel.rows // lanes >= units * WAVES * ALONE:
            width, depth = ALONE, 1
        group, threads = depth, width * depth
        owners = kernel.rows // lanes
    blocks = math.ceil(owners / (threads // group))
    splits = 1
    if group == threads or not rows:
        splits = _splits(blocks, steps, group, knobs, units)
    return Mapping(rows, threads, group, owners, steps, splits)


def _row_group(steps: int, knobs: CudaKnobs) -> tuple[int, int]:
    """(threads per row, threads per block)."""
    if knobs.row_threads:
        group = knobs.row_threads
    elif steps <= 32 * max(4, knobs.row_chunks):
        group = min(32, _power_of_two(steps))
    else:
        group = min(1024, max(64, _power_of_two(math.ceil(steps / knobs.row_chunks))))
    return group, max(group, 128) if group <= 32 else group


def _splits(blocks: int, steps: int, group: int, knobs: CudaKnobs, units: int) -> int:
    if knobs.split == 1 or blocks >= units:
        return 1
    wanted = knobs.split or math.ceil(units * WAVES / blocks)
    return max(1, min(wanted, MAX_SPLITS, steps // (group * MIN_SPLIT_ITEMS)))


def _power_of_two(value: int) -> int:
    """The smallest power of two that is not below ``value``."""
    return 1 << max(0, (value - 1).bit_length())
