"""A whole C++ translation unit from the kernels of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.proposers.playbook.cpu import mathlib, prelude
from kernelpro.proposers.playbook.cpu.accumulate import BEST_INDEX, SCALAR_REDUCE
from kernelpro.proposers.playbook.cpu.expressions import SCALAR_PRELUDE
from kernelpro.proposers.playbook.cpu.kernel import KernelText, c_name
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.cpu.loops import nest
from kernelpro.proposers.playbook.cpu.split import split_function, worth_splitting
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel

FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")
"""Added to the builder's flags. The first two change no result and let comparisons and roots
vectorise; the last silences notes about passing wide vectors, which are always inlined."""


@dataclass(frozen=True, slots=True)
class Unit:
    """C++ text and the compiler flags it wants."""

    source: str
    flags: tuple[str, ...]


def translation_unit(
    kernels: list[Kernel], buffers: dict[str, Buffer], knobs: CpuKnobs,
    epilogues: list[KernelText], products: list[str], scans: list[str],
) -> Unit:  # fmt: skip
    """All ``kernels`` as one source, after the text of own matrix ``products`` and of ``scans``.

    ``epilogues``: kernels already written inside the products; only their needs count here.
    """
    texts = [KernelText(k, buffers, knobs) for k in kernels]
    bodies = [function(k) for k in texts]
    vector = [*epilogues, *(k for k in texts if k.vector)]
    parts: list[str] = ["#include <omp.h>\n"]
    if vector:
        parts += _vector_prelude(vector, knobs)
    if scans or not all(k.vector for k in texts):
        parts += [_without_known(SCALAR_PRELUDE, "\n".join(parts)), SCALAR_REDUCE]
    return Unit("\n".join([*parts, *products, *scans, *bodies]) + "\n", FLAGS)


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


def _without_known(text: str, known: str) -> str:
    """``text`` without the one-line declarations that ``known`` already has."""
    once = ("#include", "#define INLINE", "struct bfloat16", "struct Full")
    return "".join(
        line for line in text.splitlines(keepends=True)
        if not (line.startswith(once) and line.split("//")[0].strip() in known)
    )  # fmt: skip


def function(k: KernelText) -> str:
    """The row function and the exported function that shares its tasks among threads."""
    if worth_splitting(k):
        return split_function(k)
    made = nest(k)
    name = k.kernel.name
    passed = k.passed()
    lines = [made.text, "", f'extern "C" void {name}({k.declared()}) {{']
    call = f"{name}_rows"
    if k.streamed:
        outs = sorted(k.streamed)
        test = " | ".join(f"(uintptr_t){c_name(out)}" for out in outs)
        lines.append(f"  const auto rows = (({test}) & 63) == 0 ? {call}<true> : {call}<false>;")
        call = "rows"
    if k.kernel.points < k.knobs.serial_below or made.tasks == 1:
        lines.append(f"  {call}(0, {made.tasks}, {passed});")
    else:
        threads = f" num_threads({k.knobs.threads})" if k.knobs.threads else ""
        lines += [
            f"  #pragma omp parallel{threads}",
            "  {",
            "    const int64_t id = omp_get_thread_num(), all = omp_get_num_threads();",
            f"    {call}({made.tasks} * id / all, {made.tasks} * (id + 1) / all, {passed});",
        ]
        if k.streamed:
            lines.append("    stream_done();")
        lines.append("  }")
    lines.append("}")
    return "\n".join(lines)
