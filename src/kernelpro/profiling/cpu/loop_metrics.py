"""Counts in a hot loop and a function, under the metric names of the package's table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from kernelpro.profiling.cpu.instructions import Instruction
from kernelpro.profiling.cpu.loops import Loop
from kernelpro.schema.profile import Metric

SOURCE = "objdump"

LIBM = frozenset(
    name + suffix
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
        "erfc", "exp", "exp2", "expm1", "fmod", "hypot", "lgamma", "log", "log10", "log1p",
        "log2", "pow", "remainder", "sin", "sincos", "sinh", "tan", "tanh", "tgamma",
    )
    for suffix in ("", "f", "l")
)  # fmt: skip
_GLIBC_ALIAS = re.compile(r"__(\w+)_finite")
_RUNTIME = re.compile(r"(GOMP_|omp_|__kmpc_)")


def is_libm(symbol: str) -> bool:
    """True for scalar functions of the C mathematics library."""
    alias = _GLIBC_ALIAS.fullmatch(symbol)
    return (alias[1] if alias else symbol) in LIBM


def is_vector_math(symbol: str) -> bool:
    """True for vector variants by the x86 vector ABI (libmvec) or SLEEF/SVML names."""
    return symbol.startswith(("_ZGV", "Sleef_", "__svml_"))


def computes(loop: Loop) -> bool:
    """True if the loop does floating-point arithmetic, itself or through the maths library."""
    return any(i.arithmetic or (i.is_call and is_libm(i.symbol)) for i in loop.instructions)


def hot_loop_metrics(loop: Loop) -> dict[str, Metric]:
    """Metrics of the hot loop."""
    rows = loop.instructions
    arithmetic = [i for i in rows if i.arithmetic]
    packed = [i for i in arithmetic if i.packed]
    fused = [i for i in arithmetic if i.is_fma]
    plain = [i for i in arithmetic if (m := i.arithmetic) and m["kind"] in {"add", "sub", "mul"}]
    memory = [i for i in rows if i.memory is not None]
    calls = [i.symbol for i in rows if i.is_call]
    other = [s for s in calls if not is_libm(s) and not is_vector_math(s)]
    metrics = {
        "cpu.vector_bits": _count(max((i.vector_bits for i in packed), default=0), "bit"),
        "cpu.packed_fp_share": _share(len(packed), len(arithmetic)),
        "cpu.accumulators": _count(accumulators(rows)),
        "cpu.other_calls_in_loop": _count(len(other)),
        "cpu.loop_divisions": _count(sum(i.is_division for i in rows)),
        "cpu.loop_gathers": _count(sum(i.is_gather for i in rows)),
        "cpu.loop_scatters": _count(sum(i.is_scatter for i in rows)),
        "cpu.loop_shuffles": _count(sum(i.is_shuffle for i in rows)),
        "cpu.loop_loads": _count(sum(i.loads for i in memory)),
        "cpu.loop_stores": _count(sum(i.stores for i in memory)),
        "cpu.loop_spills": _count(sum(is_spill(i) for i in memory)),
        "cpu.loop_instructions": _count(len(rows)),
        "cpu.loop_flops": _count(sum(i.flops for i in rows), "flop"),
    }
    if fused or plain:
        metrics["cpu.fma_share"] = _share(len(fused), len(fused) + len(plain))
    return metrics


def function_metrics(loops: Sequence[Loop], rows: Sequence[Instruction]) -> dict[str, Metric]:
    """Metrics of a whole native function; ``loops`` and ``rows`` of everything it reaches."""
    in_loops = {i.address: i for loop in loops for i in loop.instructions}.values()
    calls = [i.symbol for i in in_loops if i.is_call]
    innermost = [loop for loop in loops if loop.innermost]
    vector = [loop for loop in innermost if any(i.packed for i in loop.instructions)]
    scalar = [
        loop
        for loop in innermost
        if loop not in vector and any(i.arithmetic for i in loop.instructions)
    ]
    return {
        "cpu.libm_calls_in_loop": _count(sum(map(is_libm, calls))),
        "cpu.vector_math_calls_in_loop": _count(sum(map(is_vector_math, calls))),
        "cpu.non_temporal_stores": _count(sum(i.is_streaming_store for i in rows)),
        "cpu.scalar_loops": _count(len(scalar)),
        "cpu.vector_loops": _count(len(vector)),
        "cpu.uses_openmp": _count(any(_RUNTIME.match(i.symbol) for i in rows), "1"),
    }


def instruction_mix(loop: Loop) -> dict[str, float]:
    """Instructions of one iteration by class: ``fp_packed``, ``fp_scalar``, ``fma`` (also in
    those), ``division``, ``gather``, ``scatter``, ``shuffle``, ``load``, ``store``, ``call``,
    ``branch``, ``total``."""
    mix: Counter[str] = Counter(total=len(loop.instructions))
    for row in loop.instructions:
        mix["fp_packed"] += row.packed
        mix["fp_scalar"] += row.arithmetic is not None and not row.packed
        mix["fma"] += row.is_fma
        mix["division"] += row.is_division
        mix["gather"] += row.is_gather
        mix["scatter"] += row.is_scatter
        mix["shuffle"] += row.is_shuffle
        mix["load"] += row.loads
        mix["store"] += row.stores
        mix["call"] += row.is_call
        mix["branch"] += row.is_conditional
    return {name: float(count) for name, count in mix.items()}


def accumulators(rows: Sequence[Instruction]) -> int:
    """Vector registers that carry a value into the next iteration through FP arithmetic."""
    first_read: set[str] = set()
    written: set[str] = set()
    accumulated: set[str] = set()
    for row in rows:
        read, target = row.vector_reads_and_writes()
        first_read |= read - written
        if target:
            written.add(target)
            if row.arithmetic:
                accumulated.add(target)
            else:
                accumulated.discard(target)
    return len(first_read & accumulated)


def is_spill(row: Instruction) -> bool:
    """True if a vector register is moved to or from the stack frame."""
    address = row.memory
    return address is not None and address.base in {"%rsp", "%rbp"} and row.vector_bits > 0


def _count(value: float, unit: str = "count") -> Metric:
    return Metric(value=float(value), unit=unit, source=SOURCE)


def _share(part: int, whole: int) -> Metric:
    return Metric(value=part / whole if whole else 0.0, unit="1", source=SOURCE)
