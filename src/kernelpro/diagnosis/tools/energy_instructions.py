"""Many instructions per useful operation: each is fetched, issued and paid for."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import seen
from kernelpro.diagnosis.energy_model import (
    FLOPS_PER_FMA,
    PICO,
    costs,
    dram_bytes,
    energy_finding,
    instruction_pj,
    spent,
)
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

VECTOR_BYTES = 16.0
"""A thread's widest load or store."""
NEEDED_FACTOR = 1.5
"""Instructions of a good kernel over its arithmetic and widest accesses (chosen: loop control and
addresses)."""
LEAST_FACTOR = 2.0
"""Instructions over those of a good kernel from which it is worth a remark (chosen)."""


@tool("energy_instructions", devices=("cuda",), needs=(m.THREAD_INSTRUCTIONS,))
def energy_instructions(given: ToolInput) -> Finding | None:
    """Executed thread instructions against arithmetic plus one widest access per 16 bytes.

    Only where the problem's graph says how much arithmetic there is.
    """
    found, prices, moved = spent(given), costs(given), dram_bytes(given)
    executed = value(given, m.THREAD_INSTRUCTIONS)
    if found is None or prices is None or moved is None or not executed or given.graph is None:
        return None
    useful = given.graph.flops / FLOPS_PER_FMA + moved / VECTOR_BYTES
    good = NEEDED_FACTOR * useful
    if useful <= 0 or executed < LEAST_FACTOR * good:
        return None
    return energy_finding(
        given, "energy_instructions", found, PICO * (executed - good) * instruction_pj(prices),
        summary=f"executes {executed / useful:.0f} instructions per useful operation.",
        cause="Narrow loads and stores, index arithmetic in every iteration, loop control of short "
        "loops, or work done again that could be kept.",
        actions=(
            "Load and store 128 bits per instruction; unroll so that addresses are computed once.",
            "Use 32-bit indices and increments instead of divisions and modulo.",
            "Keep what several outputs share in registers instead of computing it again.",
        ),
        moves=("vectorize_loads", "unroll_more", "strength_reduce", "use_32bit_indices",
               "more_work_per_thread"),
        evidence=seen(given, (m.THREAD_INSTRUCTIONS, None), (m.INTEGER_OPS, None),
                      (m.GLOBAL_LOADS, None)),
        gain_source="instructions beyond a good kernel's times the price of a multiply-add",
        confidence=0.5,
    )  # fmt: skip
