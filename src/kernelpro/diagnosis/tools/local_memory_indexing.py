"""Per-thread arrays indexed at run time: they cannot live in registers and go to local memory."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, registers, seen
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.register_spill import is_spill, local_amount, local_cost, sure
from kernelpro.schema.finding import Finding


@tool(
    "local_memory_indexing",
    devices=("cuda",),
    needs=(f"{m.LOCAL_LOADS}|{m.SPILL_REQUESTS}|sass.ldl",),
)
def local_memory_indexing(given: ToolInput) -> Finding | None:
    """Local traffic that is not spilling."""
    cost = local_cost(given)
    if cost is None or is_spill(given):
        return None
    used = registers(given)
    room = f" although it uses only {used:.0f} registers" if used and used < 96 else ""
    return finding(
        given,
        "local_memory_indexing",
        gain.amdahl(cost[2]),
        summary=f"keeps an array in local memory{room}: {local_amount(cost)}.",
        cause="A per-thread array is indexed by a value known only at run time. Registers have no "
        "addresses, so the whole array lives in memory, interleaved across threads.",
        actions=(
            "Make the indices compile-time constants: unroll the loops over the array fully, with "
            "a template parameter in place of a run-time length.",
            "If the index must be data-dependent, put the array in shared memory (index * "
            "blockDim.x + threadIdx.x avoids bank conflicts), or use selects over registers.",
        ),
        evidence=seen(
            given, (m.LOCAL_LOADS, None), (m.LOCAL_STORES, None), (m.LOCAL_LOAD_SECTORS, None),
            (m.SPILL_REQUESTS, 0.0), ("sass.local_indexed", 0.0), (m.REGISTERS, None),
        ),
        gain_source="Amdahl: share of local accesses in the time, removed",
        moves=("registers_not_local", "stage_in_shared"),
        confidence=0.92 if sure(given) else 0.6,
        useful=(m.SPILL_REQUESTS, "sass.local_indexed", m.LOCAL_LOAD_SECTORS),
    )  # fmt: skip
