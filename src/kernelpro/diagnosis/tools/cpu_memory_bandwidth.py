"""A memory-bound call on the CPU: at the machine's bandwidth, or moving data it need not move."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, call_us, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_si

SATURATED = 0.85
"""Useful bandwidth above this share of a measured copy: nothing left in this direction (chosen)."""
LOW = 0.6
"""Below this the call moves data more often than needed, or not fast enough (chosen)."""
FAULTS = 4.0
"""Page faults per megabyte of working set above which fresh temporaries matter: a 4 KiB page is
256 per MiB, so 4 means that more than 1.5 % of the data is newly mapped memory (chosen)."""


@tool(
    "cpu_memory_bandwidth",
    devices=("cpu",),
    needs=("cpu.achieved_gb_s", "cpu.bandwidth_share"),
)
def cpu_memory_bandwidth(given: ToolInput) -> Finding | None:
    """Info at saturation; medium or high when a memory-bound problem uses little bandwidth."""
    if given.stage1.analytic not in ("memory", "mixed"):
        return None
    share = number(given, "cpu.bandwidth_share", 0.0)
    if share >= SATURATED:
        return _saturated(given, share)
    if share >= LOW or given.stage1.roofline_class == "launch":
        return None
    return _wasteful(given, share)


def _saturated(given: ToolInput, share: float) -> Finding:
    rate = number(given, "cpu.achieved_gb_s", 0.0)
    return Finding(
        tool="cpu_memory_bandwidth",
        severity=Severity.INFO,
        rank=0,
        summary=f"{given.kernel.name} moves its compulsory data at {rate:.1f} GB/s, {share:.0%} of "
        "what a plain copy reaches on this machine.",
        evidence=(observed(given, "cpu.bandwidth_share", SATURATED),),
        cause="The data have to pass once; this is the roofline.",
        actions=("Only moving fewer bytes can help: fuse with the neighbours, or store less.",),
        expected_gain=(1.0, 1.0),
        moves=(),
        gain_source="none left at the roofline",
    )


def _wasteful(given: ToolInput, share: float) -> Finding:
    nbytes = value(given, "cpu.working_set_bytes")
    faults = value(given, "cpu.page_faults_per_call")
    temporaries = faults is not None and nbytes is not None and faults > FAULTS * nbytes / 2**20
    duration = call_us(given)
    moved = "" if nbytes is None else f" ({format_si(nbytes, 'B')} compulsory)"
    actions = [
        "Touch every element once: combine the passes over a row into one loop while the row is "
        "in L1 or L2, or use an online formula (running maximum and sum).",
        "Write large outputs that are not read again with streaming stores, so that the old "
        "contents are not fetched first.",
    ]
    moves = ["reduce_passes", "single_pass", "streaming_stores"]
    if temporaries:
        actions.insert(0, f"{faults:.0f} page faults a call come from fresh temporaries: fuse the "
                       "operators around them, or write into the output buffer.")  # fmt: skip
        moves.insert(0, "avoid_temporaries")
    return Finding(
        tool="cpu_memory_bandwidth",
        severity=Severity.HIGH if share < LOW / 2 else Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name} uses {share:.0%} of the attainable bandwidth{moved}.",
        evidence=(
            observed(given, "cpu.bandwidth_share", LOW),
            observed(given, "cpu.achieved_gb_s"),
        ),
        cause="A memory-bound problem that runs below the copy bandwidth reads or writes its data "
        "more than once, or its inner loop is too slow to keep the memory busy.",
        actions=tuple(actions),
        expected_gain=gain.interval(1.0 / max(share, 0.01), given.stage1.headroom),
        missing=absent(given, ("cpu.page_faults_per_call",))
        + (() if duration is not None else ("cpu.call_us",)),
        confidence=0.6 if not temporaries else 0.8,
        moves=tuple(moves),
        gain_source="1 / share of the attainable bandwidth in use",
    )
