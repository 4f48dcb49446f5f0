"""The settings of a Hopper product, what they cost, and which of them can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

SHARED_LIMIT_BYTES = 227 * 1024
"""Shared memory a block may use on compute capability 9.0 (CUDA C++ guide, technical limits)."""
BARRIER_BYTES = 16
"""Two mbarriers a stage."""
LINE_BYTES = 128
"""One line of a tile is one 128-byte swizzle span: 64 halves."""
DEPTH = 64
"""Elements of the reduction in a stage."""
REGISTERS = {2: (40, 232), 3: (32, 160)}
"""Consumer warpgroups -> registers of a producer and of a consumer thread after ``setmaxnreg``:
the register file (65,536) over 128 x (consumers + 1) threads, the producer's share handed over."""
ENTRY_REGISTERS = {2: 168, 3: 128}
"""What each thread has at entry: 65,536 over the threads, in multiples of 8."""
SPARE_REGISTERS = 40
"""Chosen: addresses, loop state and one pack of an epilogue beside the accumulators."""
WGMMA_COLUMNS = frozenset({64, 96, 128, 160, 192, 224, 256})
"""Widths we emit: multiples of 32, so that four threads can exchange whole 8-column blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopperTile:
    """One point of the family. Defaults suit large products."""

    consumers: int = 2
    """Warpgroups that multiply; one more fetches."""
    blocks_m: int = 1
    """64-row blocks of each consumer."""
    tile_n: int = 256
    """Columns of a tile."""
    stages: int = 4
    """Tiles of both operands in flight."""
    cluster: int = 2
    """Neighbouring blocks, 1 or 2, that share one operand's tiles by multicast."""
    share: Literal["a", "b"] = "b"
    """What a cluster shares: B (its blocks are neighbours along the rows) or A (the columns)."""
    group: int = 8
    """Rows of tiles visited together, so that their columns of B stay in L2."""
    stage_columns: int = 128
    """Columns of the result staged in shared memory before they leave as bulk copies; 0 = the
    epilogue stores from registers."""

    @property
    def tile_m(self) -> int:
        """Rows of a tile."""
        return 64 * self.blocks_m * self.consumers

    @property
    def step_m(self) -> int:
        """Rows that a cluster covers."""
        return self.tile_m * (self.cluster if self.share == "b" else 1)

    @property
    def step_n(self) -> int:
        """Columns that a cluster covers."""
        return self.tile_n * (self.cluster if self.share == "a" else 1)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * (self.consumers + 1)

    @property
    def stage_bytes(self) -> int:
        """Bytes one stage receives."""
        return (self.tile_m + self.tile_n) * LINE_BYTES

    def shared_bytes(self, groups: int = 0) -> int:
        """Dynamic shared memory; ``groups``: length of the table of ragged rows, if any."""
        pitch = self.stage_columns * 2 + 16
        staging = self.consumers * 4 * 16 * pitch if self.stage_columns else 0
        table = 4 * (groups + 1) if groups else 0
        return self.stages * (self.stage_bytes + BARRIER_BYTES) + staging + table

    def problems(self, groups: int = 0) -> Iterator[str]:
        """Why this tile cannot run; empty if it can."""
        if self.consumers not in REGISTERS:
            yield f"{self.consumers} consumer warpgroups (2 or 3)"
            return
        if self.tile_n not in WGMMA_COLUMNS:
            yield f"{self.tile_n} columns (one of {sorted(WGMMA_COLUMNS)})"
        if self.tile_m > 256:
            yield f"{self.tile_m} rows: one TMA box has at most 256"
        if self.cluster not in (1, 2):
            yield f"clusters of {self.cluster} (1 or 2)"
        if self.stages < 2:
            yield "fewer than two stages"
        if self.stage_columns and (self.stage_columns % 16 or self.tile_n % self.stage_columns):
            yield f"staging {self.stage_columns} of {self.tile_n} columns"
        need = self.blocks_m * self.tile_n // 2 + SPARE_REGISTERS
        if need > REGISTERS[self.consumers][1]:
            yield f"{need} registers a consumer thread of {REGISTERS[self.consumers][1]}"
        if self.shared_bytes(groups) > SHARED_LIMIT_BYTES:
            yield f"{self.shared_bytes(groups)} bytes of shared memory of {SHARED_LIMIT_BYTES}"

    def fitted(self, groups: int = 0) -> HopperTile:
        """This tile with as much staging, then as many stages, as shared memory allows."""
        tile = self
        while tile.shared_bytes(groups) > SHARED_LIMIT_BYTES:
            half = tile.stage_columns // 2
            if tile.stage_columns and tile.stage_columns > 64 and half % 16 == 0:
                tile = replace(tile, stage_columns=half)
            elif tile.stages > 2:
                tile = replace(tile, stages=tile.stages - 1)
            else:
                break
        return tile


TILES: dict[str, HopperTile] = {
    "128x256": HopperTile(cluster=1),
    "128x256 pair": HopperTile(),
    "256x128": HopperTile(blocks_m=2, tile_n=128, cluster=1, stage_columns=64),
    "192x192": HopperTile(consumers=3, tile_n=192, stages=3, cluster=1, stage_columns=192),
    "128x128": HopperTile(tile_n=128, stages=6, cluster=1),
}
"""What a knob can choose from, largest first. Pairs share B by multicast."""
