"""Contiguous data moved in accesses narrower than the hardware's: too many instructions a byte."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.gain import amdahl
from kernelpro.diagnosis.measured import DRAM_ATTAINABLE
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.shared_memory_tiling import stages_already
from kernelpro.diagnosis.waste import global_efficiency, requested_over_fetched
from kernelpro.schema.finding import Finding

NARROW = 2.5
"""Bytes per lane and access that are always too few: 8- and 16-bit elements (chosen)."""
WORD = 4.5
"""32-bit accesses count only where the load queue is what the warps wait for (chosen)."""
QUEUE = 0.2
"""Share of lg_throttle stalls that shows a full load-store queue (chosen)."""
SATURATED = 85.0
"""Percent of DRAM peak from which width no longer matters (measured: scalar float copies reach
it on the H200)."""
STREAMING = 0.06
"""Share of global accesses in all instructions from which a kernel is streaming (chosen)."""
REUSED = 3.0
"""Requested over fetched bytes from which staging, not width, is the question (chosen)."""
WIDEST = 16.0
"""Bytes of the widest access per thread."""


@tool(
    "vectorization",
    devices=("cuda",),
    needs=(
        f"{m.LOAD_SECTORS}|{m.STORE_SECTORS}",
        f"{m.LOAD_REQUESTS}|{m.STORE_REQUESTS}",
        m.DRAM_PCT,
    ),
)
def vectorization(given: ToolInput) -> Finding | None:
    """Narrow, contiguous accesses in a streaming kernel that does not saturate DRAM."""
    width = bytes_per_lane(given)
    if width is None or width > WORD or number(given, m.DRAM_PCT, 0.0) >= SATURATED:
        return None
    efficiency = global_efficiency(given)
    if (efficiency is not None and efficiency < 0.8) or stages_already(given):
        return None
    queue = stall_share(given, "lg_throttle") or 0.0
    if (width > NARROW and queue < QUEUE) or not _streaming(given):
        return None
    waiting = stall_share(given, "long_scoreboard", "lg_throttle", "drain")
    reach = DRAM_ATTAINABLE / max(number(given, m.DRAM_PCT, 1.0), 1.0)
    share = 0.8 if waiting is None else max(waiting, 0.4)
    bits = round(width) * 8
    return finding(
        given,
        "vectorization",
        min(amdahl(share, WIDEST / max(width, 1.0)), reach),
        summary=f"moves {width:.1f} bytes per thread and access ({bits}-bit elements one by one); "
        f"DRAM is at {number(given, m.DRAM_PCT, 0.0):.0f} %.",
        cause="Every load moves a fraction of what one instruction can: the load-store queue and "
        "the instruction rate limit before the memory does.",
        actions=(
            f"Handle {WIDEST / max(width, 1.0):.0f} consecutive elements per thread and access "
            "them as one 128-bit vector (float4, uint4, or half2 x 4); treat the ends separately.",
            "Make sure that base pointers and row lengths are multiples of 16 bytes.",
        ),
        evidence=seen(
            given, (m.LOAD_SECTORS, None), (m.LOAD_REQUESTS, None), (m.DRAM_PCT, SATURATED),
            (m.stall("lg_throttle"), None),
        ),
        gain_source="Amdahl: share of the time waiting for global accesses, 16 bytes over the "
        "bytes per access now; at most the DRAM bandwidth left",
        moves=("vectorize_loads", "more_work_per_thread"),
        confidence=0.75,
        useful=(m.stall("lg_throttle"), m.GLOBAL_LOADS),
        example="float4 v = reinterpret_cast<const float4*>(x)[i];",
    )  # fmt: skip


def bytes_per_lane(given: ToolInput) -> float | None:
    """Bytes that one lane moves per global access, from sectors of a contiguous request.

    The disassembly's widths where no request counters were read; None without either.
    """
    sectors = number(given, m.LOAD_SECTORS, 0.0) + number(given, m.STORE_SECTORS, 0.0)
    requests = number(given, m.LOAD_REQUESTS, 0.0) + number(given, m.STORE_REQUESTS, 0.0)
    if requests > 0:
        return sectors / requests
    widths = {bits: value(given, f"sass.ldg.{bits}") or 0.0 for bits in (8, 16, 32, 64, 128)}
    total = sum(widths.values())
    return sum(bits / 8 * count for bits, count in widths.items()) / total if total else None


def _streaming(given: ToolInput) -> bool:
    """True if accesses are a good part of the instructions and data is not used repeatedly."""
    reuse = requested_over_fetched(given)
    if reuse is not None and reuse >= REUSED:
        return False
    accesses = number(given, m.GLOBAL_LOADS, 0.0) + number(given, m.GLOBAL_STORES, 0.0)
    instructions = value(given, m.INSTRUCTIONS)
    if not instructions or accesses <= 0:
        return True
    return accesses / instructions >= STREAMING
