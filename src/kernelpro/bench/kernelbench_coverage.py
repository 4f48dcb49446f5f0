"""What the playbook can write for each task, found without running anything.

The problem is exported with stand-ins (shapes without values), planned, and written as CUDA for a
described GPU. Says nothing about speed or correctness: the referee does, on the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from kernelpro.bench.kernelbench_tasks import Task, TaskKey
from kernelpro.errors import UserError
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.plan.coverage import plan_coverage
from kernelpro.proposers.playbook.plan.ir import (
    AtenCall,
    Kernel,
    MatmulKernel,
    Plan,
    ScanKernel,
)
from kernelpro.proposers.playbook.plan.library import Unplannable
from kernelpro.proposers.playbook.recipes.base import Task as Recipe
from kernelpro.proposers.playbook.recipes.cuda import CudaBackend
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.problem import Precision, Problem

Extent = Literal["full", "partial", "refused"]

H200 = Device(
    kind="cuda", name="NVIDIA H200 (described, not probed)", uuid="described", units=132,
    memory_bytes=150_000_000_000, capability=(9, 0), architecture="sm_90a",
)  # fmt: skip
"""What code is written for where no GPU is at hand (NVIDIA H200 data sheet)."""
NO_PEAKS = Peaks(copy_gb_s=1.0, flops={}, source="estimated")
"""Planning does not look at them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCoverage:
    """What is native in the playbook's best guess for one task, and what is not."""

    key: TaskKey
    name: str
    extent: Extent
    """``full``: no library call is left; ``partial``: some are; ``refused``: no own kernel."""
    reason: str = ""
    """Why it was refused."""
    kernels: int = 0
    """Fused loop nests, and running sums."""
    products: int = 0
    """Matrix products written as kernels of our own."""
    native: int = 0
    """Graph operators computed in them."""
    native_share: float = 0.0
    """Share of the graph's work in native kernels, 0..1."""
    library: dict[str, int] = field(default_factory=dict)
    """``operator: reason`` -> how often it stays with torch."""

    __pydantic_config__ = CONFIG


def task_coverage(task: Task, precision: Precision = "strict") -> TaskCoverage:
    """Plan ``task`` for the described GPU, with products written by the playbook itself."""
    try:
        problem = task.load(precision)
        return _of_graphs(task, problem, _graphs(problem))
    except UserError as error:
        return _refused(task, "not exportable: " + str(error).splitlines()[0])
    except Unplannable as error:
        return _refused(task, f"not plannable: {error}")


def _graphs(problem: Problem) -> tuple[Graph, ...]:
    """From shapes; from real weights and inputs where the constructor asks for values."""
    try:
        return export_graphs(problem, shapes_only=True)
    except UserError:
        return export_graphs(problem)


def _of_graphs(task: Task, problem: Problem, graphs: tuple[Graph, ...]) -> TaskCoverage:
    recipe, backend = Recipe(problem, graphs, H200, NO_PEAKS), CudaBackend()
    plans = recipe.plans("full")
    variants = list(backend.initial(recipe))
    own = next((v for v in variants if backend.owns_products(v.knobs)), variants[0])
    bodies = [backend.body(plan, own.knobs, i, recipe) for i, plan in enumerate(plans)]
    if not any(body.setup for body in bodies):
        return _refused(task, "; ".join(_left(plans)) or "nothing to compute")
    coverages = [plan_coverage(p, own_products=backend.owns_products(own.knobs)) for p in plans]
    library = _left(plans)
    return TaskCoverage(
        key=task.key, name=task.name, extent="partial" if library else "full",
        kernels=sum(isinstance(s, Kernel | ScanKernel) for p in plans for s in p.steps),
        products=sum(isinstance(s, MatmulKernel) for p in plans for s in p.steps),
        native=sum(len(c.native) for c in coverages),
        native_share=min(c.native_share for c in coverages), library=library,
    )  # fmt: skip


def _left(plans: Iterable[Plan]) -> dict[str, int]:
    """Operators left to torch, with the planner's reason."""
    found: Counter[str] = Counter()
    for plan in plans:
        operators = {s.name: s.node.op for s in plan.steps if isinstance(s, AtenCall)}
        for name, reason in plan_coverage(plan, own_products=True).library:
            found[f"{operators.get(name, name)}: {reason}"] += 1
    return dict(found.most_common())


def _refused(task: Task, reason: str) -> TaskCoverage:
    return TaskCoverage(key=task.key, name=task.name, extent="refused", reason=reason)
