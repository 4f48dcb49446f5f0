"""Running sums and products as C++: rows (or blocks of columns) are shared among threads."""

from __future__ import annotations

from kernelpro.proposers.playbook.cpu.expressions import C_TYPES
from kernelpro.proposers.playbook.cpu.kernel import Lines, c_name
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.ir import Buffer, ScanKernel

BLOCK = 64
"""Neighbouring columns that one thread walks together: a few cache lines wide (chosen)."""


def scan_function(step: ScanKernel, buffers: dict[str, Buffer], knobs: CpuKnobs) -> str:
    """The exported function. Floating sums accumulate in double, as torch's do."""
    source, target = buffers[step.source.buffer], buffers[step.target.buffer]
    total = "int64_t" if target.dtype == "int64" else "double"
    sign, neutral = ("+", 0) if step.op == "sum" else ("*", 1)
    (o_in, a_in, n_in), (o_out, a_out, n_out) = step.source.strides, step.target.strides
    blocks = -(-step.inner // BLOCK)
    threads = f" num_threads({knobs.threads})" if knobs.threads else ""
    out = Lines()
    out.open(
        f'extern "C" void {step.name}(const {C_TYPES[source.dtype]}* __restrict '
        f"{c_name(source.name)}, {C_TYPES[target.dtype]}* __restrict {c_name(target.name)})"
    )
    out(f"#pragma omp parallel for{threads}")
    out.open(f"for (int64_t t = 0; t < {step.outer * blocks}; ++t)")
    out(f"const int64_t o = t / {blocks}, first = t % {blocks} * {BLOCK};")
    out(f"const int64_t count = first + {BLOCK} < {step.inner} ? {BLOCK} : {step.inner} - first;")
    out(f"const auto* from = {c_name(source.name)} + {step.source.offset} + o * {o_in};")
    out(f"auto* to = {c_name(target.name)} + {step.target.offset} + o * {o_out};")
    out(f"{total} sum[{BLOCK if step.inner > 1 else 1}];")
    out(f"for (int64_t n = 0; n < count; ++n) sum[n] = {neutral};")
    out.open(f"for (int64_t i = 0; i < {step.length}; ++i)")
    out.open("for (int64_t n = 0; n < count; ++n)")
    out(f"sum[n] = sum[n] {sign} ({total})load1(from + i * {a_in} + (first + n) * {n_in});")
    out(f"store1(to + i * {a_out} + (first + n) * {n_out}, sum[n]);")
    for _ in range(4):
        out.close()
    return "\n".join(out.text)
