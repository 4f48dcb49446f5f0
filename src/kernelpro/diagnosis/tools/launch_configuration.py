"""Grid and block sizes that leave multiprocessors or lanes without work."""

from __future__ import annotations

import math

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    blocks,
    finding,
    limits,
    multiprocessors,
    seen,
    threads_per_block,
)
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

FEW_WAVES = 4.0
"""Waves beyond which a partly filled last one no longer matters (chosen: at most 25 %)."""
TAIL = 1.15
"""Least gain by removing a tail that is worth mentioning (chosen)."""
LANES = 0.9
"""Share of lanes with a thread, below which the block size itself wastes lanes (chosen)."""
SMALL_BLOCK = 64.0
"""Threads per block under which the number of blocks per SM limits occupancy (chosen)."""


@tool("launch_configuration", devices=("cuda",), needs=(f"{m.GRID_SIZE}|{m.WAVES}", m.BLOCK_SIZE))
def launch_configuration(given: ToolInput) -> Finding | None:
    """The worst of: fewer blocks than SMs, an uneven last wave, block size not whole warps."""
    candidates = [c for c in (_few_blocks(given), _lanes(given), _tail(given)) if c is not None]
    if not candidates:
        return None
    high, summary, cause, action, move = max(candidates, key=lambda c: c[0])
    threads, grid = threads_per_block(given), blocks(given)
    return finding(
        given,
        "launch_configuration",
        high,
        summary=summary,
        cause=cause,
        actions=(action, _launch_now(threads, grid)),
        evidence=seen(
            given, (m.GRID_SIZE, multiprocessors(given)), (m.BLOCK_SIZE, None),
            (m.WAVES, FEW_WAVES), (m.SM_ACTIVE_CYCLES, None), (m.ELAPSED_CYCLES, None),
        ),
        gain_source="idle multiprocessors or lanes put to work: available over used",
        moves=(move, "persistent_grid") if move == "bigger_grid" else (move,),
        confidence=0.9,
        useful=(m.SM_COUNT, m.SM_ACTIVE_CYCLES),
    )  # fmt: skip


_Candidate = tuple[float, str, str, str, str]


def _few_blocks(given: ToolInput) -> _Candidate | None:
    grid, units = blocks(given), multiprocessors(given)
    if not grid or not units or grid >= units:
        return None
    return (
        units / grid,
        f"launches {grid:.0f} blocks on {units:.0f} multiprocessors: {1 - grid / units:.0%} of "
        "the GPU stands idle.",
        "The grid is smaller than the GPU, whatever the kernel does inside.",
        f"Split the work over at least {2 * units:.0f} blocks: more blocks along the long "
        "dimension, or split the reduction and add the parts.",
        "bigger_grid",
    )


def _tail(given: ToolInput) -> _Candidate | None:
    grid, units, tight = blocks(given), multiprocessors(given), limits(given)
    waves = value(given, m.WAVES)
    if waves is None and grid and units and tight:
        waves = grid / (units * min(tight.values()))
    if waves is None or waves >= FEW_WAVES or waves <= 0:
        return None
    if grid and units and grid < units:
        return None
    ideal = math.ceil(waves) / waves if waves > 1.0 else 1.0
    active, elapsed = value(given, m.SM_ACTIVE_CYCLES), value(given, m.ELAPSED_CYCLES)
    idle = elapsed / active if active and elapsed else ideal
    high = min(ideal, max(idle, 1.0))
    if high < TAIL:
        return None
    return (
        high,
        f"runs {waves:.2f} waves: the last one fills {waves % 1:.0%} of the GPU.",
        "All blocks take about as long, and their number is just above a multiple of what fits "
        "at once.",
        "Choose the number of blocks as a multiple of the blocks that fit at once (a persistent "
        "grid with a loop), or make blocks smaller so that there are many waves.",
        "persistent_grid",
    )


def _lanes(given: ToolInput) -> _Candidate | None:
    threads = threads_per_block(given)
    if not threads:
        return None
    full = math.ceil(threads / 32.0) * 32.0
    if threads / full >= LANES:
        return None
    busy = min(max(number(given, m.ISSUE_ACTIVE, 0.7), 0.3), 1.0)
    return (
        gain.amdahl(busy, full / threads),
        f"uses {threads:.0f} threads a block: {1 - threads / full:.0%} of the lanes of its "
        f"{full / 32:.0f} warps never have a thread.",
        "Warps have 32 lanes; the last warp of every block is mostly empty but costs as much as a "
        "full one.",
        "Make the block size a multiple of 32 and map threads to elements across row borders.",
        "warp_multiple_block",
    )


def _launch_now(threads: float | None, grid: float | None) -> str:
    now = f"{grid:.0f} blocks of {threads:.0f} threads" if grid and threads else "see evidence"
    return f"The launch now: {now}."
