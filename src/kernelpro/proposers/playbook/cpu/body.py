"""The CPU back end: a plan and knobs to the ``Body`` of a candidate."""

from __future__ import annotations

from dataclasses import replace

from kernelpro.proposers.playbook.candidate import (
    Body,
    allocation,
    argument_names,
    aten_text,
    text_literal,
)  # fmt: skip
from kernelpro.proposers.playbook.cpu.gemm import GEMM, fused_rows, own_product
from kernelpro.proposers.playbook.cpu.kernel import KernelText
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.cpu.scan import scan_function
from kernelpro.proposers.playbook.cpu.unit import translation_unit
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel, MatmulKernel, Plan, ScanKernel
from kernelpro.proposers.playbook.plan.matmul import step_reads


def cpu_body(plan: Plan, knobs: CpuKnobs, number: int) -> Body:
    """Native source and the statements that run it, for graph ``number``."""
    return _Writer(plan, knobs, number).body()


class _Writer:
    """Collects kernels, product functions and Python statements step by step."""

    def __init__(self, plan: Plan, knobs: CpuKnobs, number: int) -> None:
        self.plan = plan
        self.knobs = knobs
        self.handle = f"_native_{number}"
        self.buffers: dict[str, Buffer] = dict(plan.buffers)
        self.like = next(iter(argument_names(plan)), None)
        self.kernels: list[Kernel] = []
        self.products: list[str] = []
        self.scans: list[str] = []
        self.epilogues: list[KernelText] = []
        self.functions: list[str] = []
        self.statements: dict[str, tuple[str, ...]] = {}
        self.taken: set[str] = set()

    def body(self) -> Body:
        """Walk the plan once."""
        for step in self.plan.steps:
            if isinstance(step, MatmulKernel):
                self.statements[step.name] = tuple(self.matmul(step))
            elif isinstance(step, ScanKernel):
                self.statements[step.name] = tuple(self.scan(step))
            elif isinstance(step, Kernel) and step.name not in self.taken:
                self.statements[step.name] = tuple(self.kernel(step))
            elif isinstance(step, Kernel):
                self.statements[step.name] = ()
        if not self.functions:
            return Body("", self.statements, "t.is_cpu")
        unit = translation_unit(
            self.kernels, self.buffers, self.knobs, self.epilogues,
            [GEMM, *self.products] if self.products else [], self.scans,
        )  # fmt: skip
        setup = "\n".join([
            f"{self.handle} = _inline.cpp({text_literal(unit.source)},",
            f"    functions={self.functions!r}, flags={list(unit.flags)!r})",
        ])  # fmt: skip
        return Body(setup, self.statements, "t.is_cpu")

    def kernel(self, kernel: Kernel) -> list[str]:
        """Statements of a fused kernel."""
        self.kernels.append(kernel)
        self.functions.append(kernel.name)
        reuse = dict(kernel.reuse)
        lines = []
        for name in kernel.writes():
            if name in reuse:
                lines.append(f"{name} = {reuse[name]}  # written over: nothing reads it again")
            else:
                lines.append(allocation(self.buffers[name], self.like))
        names = [name for _, name in KernelText(kernel, self.buffers, self.knobs).parameters()]
        return [*lines, f"{self.handle}.{kernel.name}({', '.join(names)})"]

    def scan(self, step: ScanKernel) -> list[str]:
        """Statements of a running sum or product."""
        self.scans.append(scan_function(step, self.buffers, self.knobs))
        self.functions.append(step.name)
        lines = [allocation(self.buffers[name], self.like) for name in step.writes()]
        arguments = ", ".join([*step.reads(), *step.writes()])
        return [*lines, f"{self.handle}.{step.name}({arguments})"]

    def matmul(self, step: MatmulKernel) -> list[str]:
        """Statements of a product and what is fused with it."""
        if self.knobs.matmul == "own":
            lines = self.own(step)
            if lines is not None:
                return lines
        assert step.call is not None
        call = aten_text(step.call.op, step.call.args, step.call.kwargs)
        lines = [f"{step.product} = {call}"]
        if step.epilogue is not None:
            lines += self.kernel(replace(step.epilogue, name=step.name))
        return lines

    def own(self, step: MatmulKernel) -> list[str] | None:
        """Our own product; None if it does not suit these shapes."""
        follower = step.epilogue or self.follower(step)
        fused = fused_rows(step, follower)
        if fused is None and step.epilogue is None and follower is not None:
            follower, fused = None, fused_rows(step, None)
        if fused is None:
            return None
        if follower is None:
            out = f"{step.product}_out"
            self.buffers[out] = replace(self.buffers[step.product], name=out)
        made = own_product(step, fused, self.buffers, self.knobs)
        if made is None:
            return None
        source, epilogue, names = made
        if follower is not None and step.epilogue is None:
            self.taken.add(follower.name)
        self.products.append(source)
        self.epilogues.append(epilogue)
        self.functions.append(step.name)
        lines = [allocation(self.buffers[n], self.like) for n in fused.writes()]
        lines.append(f"{self.handle}.{step.name}({', '.join(names)})")
        if follower is None:
            lines.append(f"{step.product} = {step.product}_out")
        return lines

    def follower(self, step: MatmulKernel) -> Kernel | None:
        """The only reader of the product, if it is the next native kernel and needs nothing else
        that is computed in between."""
        outputs = {o["ref"] for o in self.plan.outputs if isinstance(o, dict) and "ref" in o}
        outputs |= {value for _, value in self.plan.mutations}
        readers = [s for s in self.plan.steps if step.product in step_reads(s)]
        if step.product in outputs or len(readers) != 1 or not isinstance(readers[0], Kernel):
            return None
        steps = list(self.plan.steps)
        between = steps[steps.index(step) + 1 : steps.index(readers[0])]
        made = {n for s in between for n in ([s.name] if not hasattr(s, "writes") else s.writes())}
        return None if made & set(readers[0].reads()) else readers[0]
