"""The entry point of planning: :func:`make_plan`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.axes import contiguous
from kernelpro.proposers.playbook.plan.coverage import coverage, node_costs
from kernelpro.proposers.playbook.plan.draft import BufferView, Number, Value
from kernelpro.proposers.playbook.plan.ir import (
    AtenCall,
    Buffer,
    Kernel,
    MatmulKernel,
    Plan,
    ScanKernel,
    Step,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.layout import to_kernel
from kernelpro.proposers.playbook.plan.library import (
    Unplannable,
    call,
    renamed,
    require_tensor,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.lower import ELEMENTWISE, Emitter
from kernelpro.proposers.playbook.plan.lower_reduce import REDUCTIONS
from kernelpro.proposers.playbook.plan.lower_scan import SCANS
from kernelpro.proposers.playbook.plan.lower_window import WINDOWS
from kernelpro.proposers.playbook.plan.matmul import MATMULS, step_reads, with_products
from kernelpro.proposers.playbook.plan.planner import Grouping, Planner, Unfusable, references
from kernelpro.proposers.playbook.plan.views import VIEWS
from kernelpro.schema.graph import Graph, GraphInput, GraphNode
from kernelpro.schema.problem import TensorSpec

LOWERINGS = {**ELEMENTWISE, **REDUCTIONS, **VIEWS, **MATMULS, **WINDOWS, **SCANS}
"""Every ATen overload the planner understands."""
ASSERTIONS = frozenset({"aten._assert_tensor_metadata.default"})
"""Overloads without a result, true of every tensor the plan accepts."""


def make_plan(graph: Graph, grouping: Grouping = "full") -> Plan:
    """Plan ``graph``; raises ``Unplannable`` if not even library calls can express it."""
    if graph.output_structure == "other":
        raise Unplannable("forward returns a nested structure")
    graph = _plain(graph)
    planner = Planner(graph, grouping)
    scalars = _enter_inputs(planner)
    for position, node in enumerate(graph.nodes):
        planner.position, planner.current = position, node.name
        _visit(planner, node)
    planner.position = len(graph.nodes)
    for name in references((graph.outputs, graph.mutations)):
        planner.current = name
        require_tensor(planner, name)
    steps = with_products(_ordered_steps(planner), planner.buffers, _output_names(planner))
    costs = node_costs(graph, planner.products)
    return Plan(
        steps=_with_reuse(steps, planner.buffers, _output_names(planner)),
        buffers=planner.buffers, inputs=tuple(i.name for i in graph.inputs if i.kind == "input"),
        outputs=renamed(graph.outputs, planner.variables), structure=graph.output_structure,
        output_keys=graph.output_keys,
        mutations=tuple((t, planner.variables[v["ref"]]) for t, v in graph.mutations.items()),
        coverage=coverage(costs, steps, planner.reasons, own_products=False), scalars=scalars,
        costs=costs, reasons=planner.reasons,
    )  # fmt: skip


def _plain(graph: Graph) -> Graph:
    """``graph`` with JSON's stand-ins for non-finite numbers replaced by the numbers, and without
    the exporter's own assertions: as readers they would force what they look at into memory."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"float"}:
                return float(value["float"])
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return value

    nodes = tuple(
        replace(n, args=tuple(map(plain, n.args)), kwargs=plain(n.kwargs))
        for n in graph.nodes
        if n.op not in ASSERTIONS
    )
    inputs = tuple(replace(i, value=plain(i.value)) for i in graph.inputs)
    return replace(graph, nodes=nodes, inputs=inputs)


def _enter_inputs(planner: Planner) -> dict[str, object]:
    scalars: dict[str, object] = {}
    for given in planner.graph.inputs:
        if given.spec is None:
            scalars[given.name] = given.value
            if isinstance(given.value, bool | int | float):
                kind = "float32" if isinstance(given.value, float) else "int64"
                planner.values[given.name] = Number(given.value, (), kind)
            continue
        planner.values[given.name] = _enter_tensor(planner, given, given.spec)
        planner.variables[given.name] = given.name
    return scalars


def _enter_tensor(planner: Planner, given: GraphInput, spec: TensorSpec) -> Value:
    stride = tuple(spec.stride) if spec.stride is not None else contiguous(spec.shape)
    planner.buffers[given.name] = Buffer(
        given.name, spec.shape, stride, spec.dtype, given.kind, given.target, given.value
    )
    return BufferView(given.name, spec.shape, stride, 0, spec.dtype)


def _visit(planner: Planner, node: GraphNode) -> None:
    if node.op.rpartition(".")[2] == "getitem":
        _visit_getitem(planner, node)
        return
    lower = LOWERINGS.get(node.op)
    reason = "no recipe for this operator"
    if lower is not None:
        try:
            if any(0 in spec.shape for spec in node.outputs):
                raise Unfusable("empty tensor")
            planner.values[node.name] = lower(Emitter(planner, node))
            return
        except Unfusable as error:
            reason = str(error)
    if node.op not in VIEWS:
        planner.reasons[node.name] = reason
    call(planner, node)


def _visit_getitem(planner: Planner, node: GraphNode) -> None:
    source, index = node.args[0]["ref"], node.args[1]
    whole = planner.values.get(source)
    if isinstance(whole, tuple) and index < len(whole) and whole[index] is not None:
        planner.values[node.name] = whole[index]
    elif source in planner.variables:
        call(planner, node)
    else:
        call(planner, planner.nodes[source])
        call(planner, node)


def _output_names(planner: Planner) -> frozenset[str]:
    graph = planner.graph
    return frozenset(planner.variables[n] for n in references((graph.outputs, graph.mutations)))


def _ordered_steps(planner: Planner) -> list[Step]:
    """Steps in dependency order; kernels without stores and unread calls are dropped."""
    drafts = (d for d, k in planner.drafts.items() if k.stored)
    numbers = sorted([*planner.calls, *planner.scans, *drafts])
    placed: list[int] = []
    while numbers:
        known = set(placed) | (set(planner.deps) - set(numbers))
        ready = next(n for n in numbers if planner.deps[n] <= known)
        numbers.remove(ready)
        placed.append(ready)
    steps: list[Step] = []
    for number in placed:
        if number in planner.calls:
            steps.append(planner.calls[number])
        elif number in planner.scans:
            steps.append(planner.scans[number])
        else:
            name = f"kernel_{sum(isinstance(s, Kernel) for s in steps)}"
            steps.append(to_kernel(planner.drafts[number], name, planner.buffers))
    return _without_dead_steps(steps, _output_names(planner))


def _without_dead_steps(steps: list[Step], outputs: frozenset[str]) -> list[Step]:
    needed = set(outputs)
    kept: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, AtenCall | ScanKernel):
            made = (step.name,) if isinstance(step, AtenCall) else step.writes()
            if not needed.intersection(made):
                continue
        needed |= step_reads(step)
        kept.append(step)
    return kept[::-1]


def _with_reuse(
    steps: list[Step], buffers: dict[str, Buffer], outputs: frozenset[str]
) -> tuple[Step, ...]:
    """Let kernels write over library results that nothing reads afterwards."""
    fresh = {
        s.name if isinstance(s, AtenCall) else s.product for s in steps
        if isinstance(s, MatmulKernel)
        or (isinstance(s, AtenCall) and s.node.op in operators.FRESH_RESULT)
    }  # fmt: skip
    result: list[Step] = []
    for index, step in enumerate(steps):
        later = {r for s in steps[index + 1 :] for r in step_reads(s)} | outputs
        if isinstance(step, Kernel):
            step = replace(step, reuse=_reuse(step, fresh - later, buffers))
        elif isinstance(step, MatmulKernel) and step.epilogue is not None:
            pairs = _reuse(step.epilogue, fresh - later, buffers)
            step = replace(step, epilogue=replace(step.epilogue, reuse=pairs))
        result.append(step)
    return tuple(result)


def _reuse(
    kernel: Kernel, dead: set[str], buffers: dict[str, Buffer]
) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for store in kernel.stores:
        out = buffers[store.access.buffer]
        for node in kernel.nodes:
            access = node.access
            if node.kind != "load" or access is None or access.buffer not in dead:
                continue
            same = (access.strides, access.offset) == (store.access.strides, store.access.offset)
            alone = sum(1 for n in kernel.nodes if n.kind == "load" and n.access
                        and n.access.buffer == access.buffer) == 1  # fmt: skip
            given = buffers[access.buffer]
            fits = (given.stride, given.dtype, given.shape) == (out.stride, out.dtype, out.shape)
            if same and alone and fits:
                pairs.append((out.name, access.buffer))
                dead = dead - {access.buffer}
                break
    return tuple(pairs)
