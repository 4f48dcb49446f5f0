"""A loop that calls a scalar libm function (expf, tanhf, erff ...) for every element."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import call_us, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.schema.graph import Graph

CALL_NS = 6.0
"""One scalar libm call with the code around it (chosen; 10-25 cycles for expf, more for tanhf)."""
VECTOR_FACTOR = 8.0
"""How much faster a vectorised polynomial does the same (chosen: 8 lanes, few more operations)."""
ASSUMED_SHARE = 0.5
"""Share of the time in the calls where the graph does not say how many there are (chosen)."""

_TRANSCENDENTAL = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "sin", "cos",
    "tan", "erf", "erfc", "gelu", "sigmoid", "silu", "softplus", "mish", "elu", "selu", "pow",
    "_softmax", "_log_softmax", "atan", "asin", "acos",
)  # fmt: skip


@tool("scalar_math_call", devices=("cpu",), needs=("cpu.libm_calls_in_loop",))
def scalar_math_call(given: ToolInput) -> Finding | None:
    """Any call site of scalar libm inside a loop."""
    calls = number(given, "cpu.libm_calls_in_loop", 0.0)
    if calls <= 0:
        return None
    share, formula = _share_of_time(given)
    names = transcendental_operators(given.graph)
    what = f" ({', '.join(names[:3])})" if names else ""
    return Finding(
        tool="scalar_math_call",
        severity=Severity.HIGH if share >= 0.3 else Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name}: {calls:.0f} call site(s) of scalar libm in a loop{what}, "
        f"about {share:.0%} of the time.",
        evidence=(observed(given, "cpu.libm_calls_in_loop", 0.0),),
        cause="A library call per element costs tens of cycles and keeps the compiler from "
        "vectorising the loop around it.",
        actions=(
            f"Replace the call{what} by an inline polynomial (range reduction by bit "
            "manipulation, then 5-7 FMAs) that the compiler vectorises; its error is below 2 ulp, "
            "inside float32 tolerance.",
            "Or build with -ffast-math -fopenmp-simd and a libmvec-aware compiler, so that the "
            "vector version is called.",
        ),
        expected_gain=gain.interval(gain.amdahl(share, VECTOR_FACTOR), given.stage1.headroom),
        confidence=0.9,
        moves=("vector_math", "approximate_math"),
        gain_source=f"Amdahl: {formula}, made {VECTOR_FACTOR:.0f}x faster",
    )


def transcendental_operators(graph: Graph | None) -> list[str]:
    """Distinct transcendental operators of the graph, in order."""
    if graph is None:
        return []
    stems = [n.op.removeprefix("aten.").split(".")[0] for n in graph.nodes]
    return list(dict.fromkeys(s for s in stems if s in _TRANSCENDENTAL))


def _share_of_time(given: ToolInput) -> tuple[float, str]:
    """Estimated share of the call spent in libm, and how it was estimated."""
    duration, graph = call_us(given), given.graph
    if graph is None or not duration:
        return ASSUMED_SHARE, f"assumed share {ASSUMED_SHARE:.0%}"
    elements = sum(
        n.outputs[0].numel
        for n in graph.nodes
        if n.outputs and n.op.removeprefix("aten.").split(".")[0] in _TRANSCENDENTAL
    )
    if elements == 0:
        return ASSUMED_SHARE, f"assumed share {ASSUMED_SHARE:.0%}"
    threads = max(value(given, "cpu.threads_used") or 1.0, 1.0)
    share = min(elements * CALL_NS / threads / (duration * 1e3), 0.95)
    return share, f"{elements} calls x {CALL_NS:.0f} ns / {threads:.1f} threads of the call's time"
