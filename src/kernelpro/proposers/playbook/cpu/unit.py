"""A whole C++ translation unit from the kernels of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.proposers.playbook.cpu import mathlib, prelude
from kernelpro.proposers.playbook.cpu.accumulate import BEST_INDEX, SCALAR_REDUCE
from kernelpro.proposers.playbook.cpu.expressions import SCALAR_PRELUDE
from kernelpro.proposers.playbook.cpu.kernel import KernelText
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.cpu.loops import nest
from kernelpro.proposers.playbook.cpu.split import split_function, worth_splitting
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel

FLAGS = ("-fno-math-errno", "-fno-trapping-math")
"""Added to the builder's flags: neither changes a result, both let compares and roots vectorise."""


@dataclass(frozen=True, slots=True)
class Unit:
    """C++ text, the functions it exports, and how Python calls them."""

    source: str
    flags: tuple[str, ...]
    calls: dict[str, tuple[str, ...]]
    """Function name -> buffer names to pass, in order."""


def translation_unit(
    kernels: list[Kernel], buffers: dict[str, Buffer], knobs: CpuKnobs, extra: list[str]
) -> Unit:
    """All ``kernels`` as one source; ``extra`` is more C++ text (matrix products)."""
    texts = [KernelText(k, buffers, knobs) for k in kernels]
    bodies = [function(k) for k in texts]
    vector = [k for k in texts if k.vector]
    parts: list[str] = []
    if vector or extra:
        parts += _vector_prelude(vector, knobs)
    if len(vector) < len(texts):
        scalar = SCALAR_PRELUDE if not (vector or extra) else _without_common(SCALAR_PRELUDE)
        parts += [scalar, SCALAR_REDUCE]
    parts.append("#include <omp.h>\n")
    calls = {k.kernel.name: tuple(name for _, name in k.parameters()) for k in texts}
    return Unit("\n".join([*parts, *extra, *bodies]) + "\n", FLAGS, calls)


def _vector_prelude(texts: list[KernelText], knobs: CpuKnobs) -> list[str]:
    names: set[str] = set().union(*(k.functions for k in texts)) if texts else set()
    functions, parts = mathlib.required(names, fast=frozenset(knobs.fast_math))
    found = [prelude.PRELUDE.format(lanes=knobs.lanes)]
    if any(k.streamed for k in texts):
        found.append(prelude.STREAM)
    half = {b.dtype for k in texts for b in k.buffers.values()} & {"float16", "bfloat16"}
    if half or "half" in parts:
        found.append(prelude.HALF)
    if knobs.flush_denormals:
        found.append(prelude.FLUSH)
    if any(k.reduced for k in texts) or "reduce" in parts:
        found.append(prelude.REDUCE)
    if any(n.op in ("argmax", "argmin") for k in texts for n in k.kernel.nodes):
        found.append(BEST_INDEX)
        found.append(
            "template <class M> INLINE void scatter(M, int64_t* p, I x, int64_t n, int64_t s) {\n"
            "  for (int64_t i = 0; i < (M::value ? W : n); ++i) p[i * s] = x[i];\n}\n"
            "template <class M> INLINE void store(M m, int64_t* p, I x, int64_t n) {\n"
            "  scatter(m, p, x, n, 1);\n}\n"
        )
    return found + functions


def _without_common(text: str) -> str:
    """Drop what the vector prelude already has."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines
        if not line.startswith(("#include", "#define INLINE", "struct bfloat16"))
    )  # fmt: skip


def function(k: KernelText) -> str:
    """The row function and the exported function that shares its tasks among threads."""
    if worth_splitting(k):
        return split_function(k)
    made = nest(k)
    name = k.kernel.name
    listed = ", ".join(f"{kind} {buffer}" for kind, buffer in k.parameters())
    passed = "".join(f", {buffer}" for _, buffer in k.parameters())
    lines = [made.text, "", f'extern "C" void {name}({listed}) {{']
    call = f"{name}_rows"
    if k.streamed:
        outs = sorted(k.streamed)
        test = " | ".join(f"(uintptr_t){out}" for out in outs)
        lines.append(f"  const auto rows = (({test}) & 63) == 0 ? {call}<true> : {call}<false>;")
        call = "rows"
    if k.kernel.points < k.knobs.serial_below or made.tasks == 1:
        lines.append(f"  {call}(0, {made.tasks}{passed});")
    else:
        threads = f" num_threads({k.knobs.threads})" if k.knobs.threads else ""
        lines += [
            f"  #pragma omp parallel{threads}",
            "  {",
            "    const int64_t id = omp_get_thread_num(), all = omp_get_num_threads();",
            f"    {call}({made.tasks} * id / all, {made.tasks} * (id + 1) / all{passed});",
        ]
        if k.streamed:
            lines.append("    stream_done();")
        lines.append("  }")
    lines.append("}")
    return "\n".join(lines)
