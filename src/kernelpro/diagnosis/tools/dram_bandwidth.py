"""DRAM bandwidth is the limit: say whether the bytes are needed, and what would save some."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_si

BUSY = 80.0
"""Percent of nominal DRAM bandwidth that counts as the limit (paper)."""
REPEATED = 1.3
"""Moved over compulsory bytes from which data is moved more than once (chosen)."""


@tool("dram_bandwidth", devices=("cuda",), needs=(m.DRAM_PCT,))
def dram_bandwidth(given: ToolInput) -> Finding | None:
    """DRAM above 80 %; above information only if the problem needs fewer bytes than were moved."""
    busy = number(given, m.DRAM_PCT, 0.0)
    if busy < BUSY:
        return None
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


def bytes_over_compulsory(given: ToolInput) -> float | None:
    """DRAM bytes over the problem's compulsory bytes; None if either is unknown."""
    read, written = value(given, m.DRAM_READ), value(given, m.DRAM_WRITE)
    if read is None or written is None or given.graph is None:
        return None
    needed = given.graph.compulsory_bytes
    return (read + written) / needed if needed > 0 else None
