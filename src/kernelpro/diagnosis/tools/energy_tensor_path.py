"""A matrix product on the scalar pipe: a FLOP costs several times what it costs on tensor cores."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import matmul_like, seen
from kernelpro.diagnosis.energy_model import PICO, costs, energy_finding, single_flops, spent
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding
from kernelpro.schema.hardware import EnergyCosts

IDLE = 10.0
"""Percent of tensor pipe use below which the product is on the scalar pipe (as
``tensor_core_underutilization``)."""
TENSOR_KINDS = ("tf32", "float16", "bfloat16")


@tool("energy_tensor_path", devices=("cuda",), needs=(m.FFMA,))
def energy_tensor_path(given: ToolInput) -> Finding | None:
    """Scalar FLOPs of a product times the difference in price to the dearest tensor type."""
    found, prices = spent(given), costs(given)
    if found is None or prices is None or not matmul_like(given):
        return None
    kind = dearest_tensor(prices)
    if kind is None or number(given, m.PIPE_TENSOR, 0.0) >= IDLE:
        return None
    cheap, dear = prices.pj_per_flop[kind], prices.pj_per_flop.get("float32", 0.0)
    if dear <= cheap:
        return None
    return energy_finding(
        given, "energy_tensor_path", found, PICO * single_flops(given) * (dear - cheap),
        summary=f"multiplies matrices at {dear:.2g} pJ per FLOP; {kind} on tensor cores costs "
        f"{cheap:.2g} here.",
        cause="The product is written with scalar multiply-adds, each of which is fetched, issued "
        "and reads three registers; a tensor instruction does thousands of them.",
        actions=(
            "Use matrix instructions where the precision class allows (half, bf16, TF32, or three "
            "TF32 products where strict float32 is asked for), or the vendor's library.",
        ),
        moves=("use_tensor_cores", "use_wgmma", "library_matmul"),
        evidence=seen(given, (m.FFMA, None), (m.PIPE_TENSOR, IDLE)),
        gain_source="scalar FLOPs times the difference of measured prices",
        confidence=0.7,
        useful=(m.PIPE_TENSOR,),
    )  # fmt: skip


def dearest_tensor(prices: EnergyCosts) -> str | None:
    """The tensor type with the highest measured price: a cautious prediction."""
    known = [kind for kind in TENSOR_KINDS if kind in prices.pj_per_flop]
    return max(known, key=lambda kind: prices.pj_per_flop[kind], default=None)
