"""Reused data that has left the cache before its next use."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, memory_share, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.dram_bandwidth import REPEATED, bytes_over_compulsory
from kernelpro.diagnosis.waste import global_efficiency, local_share, requested_over_fetched
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_si

BUSY = 50.0
"""Percent of DRAM peak below which misses cost little bandwidth (chosen)."""
L2_HIT = 60.0
"""Percent of L2 hits under which reuse is being lost (chosen)."""
REUSE = 1.5
"""Requested over fetched bytes from which the kernel reuses data at all (chosen)."""
READ_HEAVY = 1.8
"""Read over written bytes from which a kernel is not a plain copy (chosen)."""
WAITING = 0.4
"""Share of long-scoreboard stalls from which a gather's misses are what it waits for (paper's
threshold for a dominant stall)."""
MISS_OVER_HIT = 2.5
"""DRAM over L2 latency (chosen; microbenchmarks of Hopper report about 260 cycles for an L2 hit
and 600-800 for DRAM)."""
COALESCED = 0.8
"""Below this efficiency the access pattern, not the order of blocks, is the cause."""


@tool("cache_locality", devices=("cuda",), needs=(m.L2_HIT, m.DRAM_PCT))
def cache_locality(given: ToolInput) -> Finding | None:
    """Coalesced accesses whose data is fetched repeatedly from DRAM, or a gather that misses."""
    efficiency = global_efficiency(given)
    if (efficiency is not None and efficiency < COALESCED) or (local_share(given) or 0.0) > 0.1:
        return None
    if number(given, m.L2_HIT, 100.0) >= L2_HIT:
        return None
    return _repeated(given) or _gather(given)


def _repeated(given: ToolInput) -> Finding | None:
    """DRAM-heavy, and the same data comes from DRAM several times."""
    hits, busy = number(given, m.L2_HIT, 100.0), number(given, m.DRAM_PCT, 0.0)
    if busy < BUSY:
        return None
    over = bytes_over_compulsory(given)
    if over is not None:
        if over < REPEATED:
            return None
        high, sure = gain.amdahl(memory_share(given), over), 0.85
        proof = f"DRAM moved {over:.1f}x the bytes that the problem needs"
    else:
        reuse = requested_over_fetched(given)
        if reuse is None or reuse < REUSE or not _read_heavy(given):
            return None
        high, sure = gain.amdahl(memory_share(given), min(reuse, 2.0)), 0.5
        proof = f"every byte fetched from DRAM is requested {reuse:.1f} times, but not in time"
    read = value(given, m.DRAM_READ)
    return finding(
        given,
        "cache_locality",
        high,
        summary=f"L2 serves only {hits:.0f} % while DRAM is at {busy:.0f} %"
        + ("" if read is None else f" ({format_si(read, 'B')} read)")
        + f"; {proof}.",
        cause="Blocks that share data run too far apart in time, or the working set between two "
        "uses is larger than the L2 cache.",
        actions=(
            "Order blocks so that those running together share data: tile the block index "
            "(grouped or swizzled rasterisation), neighbours in space adjacent in blockIdx.",
            "Process a piece that fits in L2 completely (all passes) before the next one.",
            _SORT,
        ),
        evidence=seen(given, (m.L2_HIT, L2_HIT), (m.DRAM_PCT, BUSY), (m.L1_HIT, None)),
        gain_source="Amdahl: share of the time at the memory limit, made cheaper by "
        + ("moved over compulsory bytes" if over is not None else "requested over fetched bytes"),
        moves=("reorder_blocks", "stage_in_shared", "single_pass"),
        confidence=sure,
        useful=(m.DRAM_READ, m.LOAD_SECTORS),
        at_most=Severity.CRITICAL if over is not None else Severity.MEDIUM,
    )


_SORT = "Sort or bucket data-dependent indices so that equal rows are fetched together."


def _gather(given: ToolInput) -> Finding | None:
    """Rows fetched through an index, each by whole sectors, and warps wait for the misses."""
    loads, chained = value(given, "sass.indirect"), value(given, "sass.chained")
    waiting = stall_share(given, "long_scoreboard")
    if not loads or chained or waiting is None or waiting < WAITING:
        return None
    hits = number(given, m.L2_HIT, 100.0)
    misses = 1.0 - hits / 100.0
    return finding(
        given,
        "cache_locality",
        gain.amdahl(waiting * misses, MISS_OVER_HIT),
        summary=f"fetches rows through an index ({loads:.0f} load(s) whose address is loaded "
        f"first); {1 - misses:.0%} of the L2 accesses hit, and warps wait {waiting:.0%} of the "
        "time.",
        cause="Rows are wanted in the order of the index, so a row that is wanted again has left "
        "the cache, and every miss costs the full DRAM latency.",
        actions=(
            _SORT,
            "Load the indices of several rows first and have their rows in flight together.",
        ),
        evidence=seen(
            given, ("sass.indirect", 0.0), (m.L2_HIT, L2_HIT), (m.DRAM_PCT, None),
            (m.stall("long_scoreboard"), None),
        ),
        gain_source="Amdahl: time waiting for misses, 2.5x shorter if they hit",
        moves=("reorder_blocks", "more_work_per_thread"),
        confidence=0.5,
        useful=(m.DRAM_READ,),
        at_most=Severity.MEDIUM,
    )  # fmt: skip


def _read_heavy(given: ToolInput) -> bool:
    read, written = value(given, m.DRAM_READ), value(given, m.DRAM_WRITE)
    return read is not None and read > READ_HEAVY * (written or 0.0)
