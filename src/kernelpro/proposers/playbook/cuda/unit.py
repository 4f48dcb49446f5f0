"""One plan as CUDA: the source of all its kernels and the Python lines that launch them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Literal

from kernelpro.proposers.playbook.candidate import Body, allocation, aten_text, text_literal
from kernelpro.proposers.playbook.cuda.elementwise import emit_elementwise
from kernelpro.proposers.playbook.cuda.emitted import Emitted
from kernelpro.proposers.playbook.cuda.hopper import source as hopper
from kernelpro.proposers.playbook.cuda.hopper.emit import emit_hopper
from kernelpro.proposers.playbook.cuda.hopper.emit import supports as supports_hopper
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import HopperTile
from kernelpro.proposers.playbook.cuda.knobs import OWN_PRODUCTS, CudaKnobs
from kernelpro.proposers.playbook.cuda.matmul import TEMPLATES, emit_matmul, supports
from kernelpro.proposers.playbook.cuda.reduction import emit_reduction
from kernelpro.proposers.playbook.cuda.scan import emit_scan
from kernelpro.proposers.playbook.cuda.transposed import emit_transposed, find_crossing
from kernelpro.proposers.playbook.plan.ir import (
    Kernel,
    MatmulKernel,
    Plan,
    ScanKernel,
)  # fmt: skip
from kernelpro.proposers.playbook.replay import worthwhile
from kernelpro.schema.hardware import HOPPER
from kernelpro.schema.problem import Precision

Method = Literal["library", "library_half", "simt", "tf32", "split", "half", "wgmma"]


def cuda_body(
    plan: Plan, knobs: CudaKnobs, *, number: int, units: int, precision: Precision,
    capability: tuple[int, int] | None = None,
) -> Body:  # fmt: skip
    """Native code of graph ``number`` for a GPU with ``units`` multiprocessors and ``capability``
    (None = unknown: nothing that only some GPUs have)."""
    writer = _Unit(plan, knobs, number, units, precision, capability)
    for step in plan.steps:
        if isinstance(step, Kernel):
            writer.kernel(step)
        elif isinstance(step, MatmulKernel):
            writer.matmul(step)
        elif isinstance(step, ScanKernel):
            writer.scan(step)
    return Body(
        setup=writer.setup(), statements=writer.statements,
        device_check="t.is_cuda and t.data_ptr() % 16 == 0",
        replay=knobs.graph and worthwhile(plan, own_products=knobs.matmul in OWN_PRODUCTS),
    )  # fmt: skip


class _Unit:
    """Collects sources and statements step by step."""

    def __init__(
        self, plan: Plan, knobs: CudaKnobs, number: int, units: int, precision: Precision,
        capability: tuple[int, int] | None,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.knobs = knobs
        self.number = number
        self.units = units
        self.precision = precision
        self.sources: list[str] = []
        self.bindings: list[str] = []
        self.statements: dict[str, tuple[str, ...]] = {}
        self.capability = capability
        self.templates: set[str] = set()
        self.hopper: list[tuple[HopperProduct, HopperTile]] = []
        self.like = next((n for n in plan.inputs if n not in plan.scalars), None)

    def kernel(self, step: Kernel) -> None:
        """An element-wise or reducing kernel."""
        self.statements[step.name] = (
            *self.allocations(step.writes()),
            *self.launches(self.emit(step)),
        )

    def scan(self, step: ScanKernel) -> None:
        """A running sum or product."""
        lines = [
            *self.allocations(step.writes()),
            *self.launches(emit_scan(step, self.plan.buffers)),
        ]
        self.statements[step.name] = tuple(lines)

    def emit(self, kernel: Kernel) -> Emitted:
        """Text of one kernel."""
        crossing = find_crossing(kernel, self.plan.buffers) if self.knobs.staged else None
        if crossing is not None:
            return emit_transposed(kernel, self.plan.buffers, self.knobs, crossing)
        reducing = any(axis.reduced for axis in kernel.axes)
        emitter = emit_reduction if reducing else emit_elementwise
        return emitter(kernel, self.plan.buffers, self.knobs, self.units)

    def matmul(self, step: MatmulKernel) -> None:
        """A product with its epilogue: own kernel, or the library and a kernel after it."""
        method = self.method(step)
        if method == "wgmma":
            emitted, product, tile, before = emit_hopper(
                step, self.plan.buffers, self.knobs, self.units
            )
            self.hopper.append((product, tile))
            lines = [*self.allocations(step.writes()), *before, *self.launches(emitted)]
        elif method in TEMPLATES:
            self.templates |= {"gemm.cuh", *TEMPLATES[method]}
            emitted = emit_matmul(step, self.plan.buffers, self.knobs, method)
            lines = [*self.allocations(step.writes()), *self.launches(emitted)]
        else:
            lines = self.product(step, half=method == "library_half")
            if step.epilogue is not None:
                lines += self.allocations(step.epilogue.writes())
                lines += self.launches(self.emit(step.epilogue))
        self.statements[step.name] = tuple(lines)

    def method(self, step: MatmulKernel) -> Method:
        """Who multiplies, given the knobs and the arithmetic the problem allows."""
        wanted = self.knobs.matmul
        strict: dict[str, Method] = {"simt": "simt", "split_tf32": "split"}
        if wanted in strict and supports(step, self.plan.buffers, strict[wanted]):
            return strict[wanted]
        half = self._is_half(step) or self.precision == "half"
        fits = self.capability == HOPPER and supports_hopper(
            step, self.plan.buffers, rounding=self.precision == "half"
        )
        if wanted == "wgmma" and fits:
            return "wgmma"
        if wanted in ("tensor", "wgmma"):
            method: Method = "half" if half else "tf32"
            allowed = half or self.precision == "tf32"
            if allowed and supports(step, self.plan.buffers, method):
                return method
        if wanted == "library_half" and self.precision == "half" and not self._is_half(step):
            return "library_half"
        return "library"

    def _is_half(self, step: MatmulKernel) -> bool:
        return self.plan.buffers[step.lhs.buffer].dtype in ("float16", "bfloat16")

    def product(self, step: MatmulKernel, *, half: bool) -> list[str]:
        """The library call that computes the plain product."""
        assert step.call is not None
        if half and step.call.op in ("aten.mm.default", "aten.bmm.default"):
            left, right = (aten_text("x", (arg,), {})[len("_torch.ops.x(") : -1]
                           for arg in step.call.args[:2])  # fmt: skip
            name = step.call.op.split(".")[1]
            call = (
                f"_torch.{name}({left}.to(_torch.bfloat16), {right}.to(_torch.bfloat16), "
                f"out_dtype=_torch.float32)"
            )
        else:
            call = aten_text(step.call.op, step.call.args, step.call.kwargs)
        return [f"{step.product} = {call}"]

    def allocations(self, names: Sequence[str]) -> list[str]:
        """Python lines that allocate what a step writes."""
        return [allocation(self.plan.buffers[name], self.like) for name in names]

    def launches(self, emitted: Emitted) -> list[str]:
        """Python lines that launch a step's kernels; remembers its source."""
        self.sources.append(emitted.source)
        device = f", device={self.like}.device" if self.like else ', device="cuda"'
        lines = [
            f"{name} = _torch.empty({count}, dtype=_torch.{dtype}{device})"
            for name, dtype, count in emitted.workspace
        ]
        for launch in emitted.launches:
            bound = f"_launch_{self.number}_{launch.kernel}"
            self.bindings.append(
                f"{bound} = _cuda_{self.number}.kernel({launch.kernel!r})"
                f"[{launch.grid!r}, {launch.block!r}, {launch.shared_bytes}]"
            )
            lines.append(f"{bound}({', '.join(launch.arguments)})")
        return lines

    def setup(self) -> str:
        """Module-level Python: the source, its build, and the launch configurations."""
        if not self.sources:
            return ""
        parts = [_text(name) for name in ("prelude.cuh", *sorted(self.templates))]
        if self.hopper:
            parts += [hopper.preamble(), hopper.wrappers(self.hopper)]
        source = "\n".join([*parts, *self.sources])
        lines = [
            f"_SOURCE_{self.number} = {text_literal(source)}",
            f"_cuda_{self.number} = _inline.cuda(_SOURCE_{self.number})",
            *self.bindings,
        ]
        return "\n".join(lines)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
