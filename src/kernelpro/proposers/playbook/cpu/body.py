"""The CPU back end: a plan and knobs to the ``Body`` of a candidate."""

from __future__ import annotations

from kernelpro.proposers.playbook.candidate import Body, allocation, argument_names, text_literal
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.cpu.unit import translation_unit
from kernelpro.proposers.playbook.plan.ir import Kernel, Plan


def cpu_body(plan: Plan, knobs: CpuKnobs, number: int) -> Body:
    """Native source and the statements that run it, for graph ``number``."""
    kernels = [s for s in plan.steps if isinstance(s, Kernel)]
    if not kernels:
        return Body("", {}, "t.is_cpu")
    unit = translation_unit(kernels, plan.buffers, knobs, [])
    handle = f"_native_{number}"
    setup = "\n".join([
        f"{handle} = _inline.cpp({text_literal(unit.source)},",
        f"    functions={[k.name for k in kernels]!r}, flags={list(unit.flags)!r})",
    ])
    like = next(iter(argument_names(plan)), None)
    statements = {k.name: _run(k, plan, unit.calls[k.name], handle, like) for k in kernels}
    return Body(setup, statements, "t.is_cpu")


def _run(
    kernel: Kernel, plan: Plan, arguments: tuple[str, ...], handle: str, like: str | None
) -> tuple[str, ...]:
    reuse = dict(kernel.reuse)
    lines = []
    for name in kernel.writes():
        if name in reuse:
            lines.append(f"{name} = {reuse[name]}  # written over: nothing reads it again")
        else:
            lines.append(allocation(plan.buffers[name], like))
    lines.append(f"{handle}.{kernel.name}({', '.join(arguments)})")
    return tuple(lines)
