"""DRAM bandwidth is the limit: say whether the bytes are needed, and what would save some; or it
should be the limit, and is not reached although nothing is moved in vain."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import dram_saturated, finding, seen, threads_per_block
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.measured import DRAM_ATTAINABLE
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.waste import accessed_share, requested_over_fetched
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_si

BUSY = 80.0
"""Percent of nominal DRAM bandwidth that counts as the limit (paper)."""
REPEATED = 1.3
"""Moved over compulsory bytes from which data is moved more than once (chosen)."""
NEAREST = 0.9
"""Least DRAM use over that of the busiest memory unit: DRAM itself must be what is nearest to its
limit, not a cache (chosen)."""
USEFUL = 0.9
"""Least share of useful bytes in those accessed, where what the problem needs is not known: below
it, other tools name the bytes that are in vain (chosen)."""


@tool("dram_bandwidth", devices=("cuda",), needs=(m.DRAM_PCT,))
def dram_bandwidth(given: ToolInput) -> Finding | None:
    """DRAM above 80 %; above information only if the problem needs fewer bytes than were moved.
    Or below it in a memory-bound kernel that moves what it must, while no cache is busier."""
    busy = number(given, m.DRAM_PCT, 0.0)
    if busy < BUSY:
        return _gaps(given, busy)
    moved = number(given, m.DRAM_READ, 0.0) + number(given, m.DRAM_WRITE, 0.0)
    needed = 0.0 if given.graph is None else given.graph.compulsory_bytes
    ratio = moved / needed if needed > 0 and moved > 0 else 1.0
    repeated = ratio >= REPEATED
    amount = f"{format_si(moved, 'B')} moved" if moved else "bytes moved not measured"
    if repeated:
        amount += f", {ratio:.1f}x the {format_si(needed, 'B')} that the problem needs"
    return finding(
        given,
        "dram_bandwidth",
        ratio if repeated else 1.0,
        summary=f"DRAM runs at {busy:.0f} % of its peak ({amount}).",
        cause="The same data passes through DRAM more than once."
        if repeated
        else "The kernel streams its data at the speed of the memory: this is the roofline, unless "
        "some of the data is read twice.",
        actions=(
            "Keep a row or tile in registers or shared memory between its uses, so that a second "
            "pass does not read it again; use an online formula where statistics come first.",
            "Fuse with the kernels before and after, so that intermediates never reach memory.",
            "Store in a narrower type where the tolerance allows.",
        ),
        evidence=seen(given, (m.DRAM_PCT, BUSY), (m.DRAM_READ, None), (m.DRAM_WRITE, None)),
        gain_source="moved over compulsory bytes" if repeated else "none known without the problem",
        moves=("single_pass", "fuse_kernels", "reduce_passes"),
        confidence=0.9 if repeated else 0.6,
        useful=(m.DRAM_READ, m.DRAM_WRITE),
        at_most=Severity.CRITICAL if repeated else Severity.INFO,
    )


def _gaps(given: ToolInput, busy: float) -> Finding | None:
    """Memory stands idle in between: too few bytes are in flight all the time.

    By the counters alone, above information only where requests do not queue up already: a padded
    transpose reaches 74 % of an H200's nominal bandwidth, and nobody knows how to better it.
    """
    over = bytes_over_compulsory(given)
    if over is None:
        # Without the problem, reuse may be what is lost, and another order of blocks the answer.
        in_vain = accessed_share(given) < USEFUL or (requested_over_fetched(given) or 0) >= REPEATED
    else:
        in_vain = over >= REPEATED
    if in_vain or not given.stage1.roofline_class == given.stage1.measured == "memory":
        return None
    if busy < NEAREST * number(given, m.MEMORY_PCT, busy):
        return None
    filled = value(given, m.ACHIEVED_OCCUPANCY)
    threads = threads_per_block(given)
    block = f"smaller blocks than {threads:.0f} threads, and " if threads and threads > 256 else ""
    warps = "" if filled is None else f" ({filled:.0f} % of the warp slots are filled)"
    return finding(
        given,
        "dram_bandwidth",
        DRAM_ATTAINABLE / busy,
        summary=f"DRAM runs at {busy:.0f} % of its peak where {DRAM_ATTAINABLE:.0f} % can be had, "
        "although next to nothing is moved in vain.",
        cause="Memory stands idle part of the time. Blocks that first load, then compute, then "
        "store leave it idle in between, unless others fill the gaps: too few bytes are in flight "
        "(Little's law: bandwidth times latency).",
        actions=(
            "Issue all loads of a thread before the first use, 2 to 4 of 128 bits, and copy the "
            "next tile ahead (cp.async, TMA) while this one is computed and stored.",
            f"Have more blocks on a multiprocessor{warps}: {block}fewer registers or less shared "
            "memory a block, so that one block's loads overlap with another's arithmetic.",
            "Leave out streaming hints (__ldcs, __stcs, evict_first) and time it: they keep "
            "results out of L2, which could write them back later.",
        ),
        evidence=seen(
            given, (m.DRAM_PCT, DRAM_ATTAINABLE), (m.MEMORY_PCT, None), (m.DRAM_READ, None),
            (m.DRAM_WRITE, None), (m.ACHIEVED_OCCUPANCY, None), (m.BLOCK_SIZE, None),
        ),
        gain_source="attainable over present DRAM throughput",
        moves=("more_work_per_thread", "async_copy", "smaller_block"),
        confidence=0.4,
        useful=(m.DRAM_READ, m.ACHIEVED_OCCUPANCY),
        at_most=Severity.INFO if over is None and dram_saturated(given) else Severity.MEDIUM,
    )  # fmt: skip


def bytes_over_compulsory(given: ToolInput) -> float | None:
    """DRAM bytes over the problem's compulsory bytes; None if either is unknown."""
    read, written = value(given, m.DRAM_READ), value(given, m.DRAM_WRITE)
    if read is None or written is None or given.graph is None:
        return None
    needed = given.graph.compulsory_bytes
    return (read + written) / needed if needed > 0 else None
