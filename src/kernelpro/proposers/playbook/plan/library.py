"""Operators left to torch, and making a value available to Python as a tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelpro.proposers.playbook.plan.axes import contiguous
from kernelpro.proposers.playbook.plan.draft import BufferView, Internal, Number
from kernelpro.proposers.playbook.plan.ir import Buffer
from kernelpro.proposers.playbook.plan.operators import VIEW_OPS
from kernelpro.proposers.playbook.plan.planner import Planner, Unfusable, references
from kernelpro.schema.graph import GraphNode
from kernelpro.schema.problem import TensorSpec

EXPANDED = "_expanded"
"""Ending of the names of stored tensors seen with repeated rows."""


class Unplannable(Exception):
    """The graph cannot be written as straight-line code; the message says why."""


def call(planner: Planner, node: GraphNode) -> None:
    """Leave ``node`` to torch."""
    reads = []
    for name in dict.fromkeys(references((node.args, node.kwargs))):
        if isinstance(planner.values.get(name), Number) and name not in planner.nodes:
            continue
        require_tensor(planner, name)
        reads.append(planner.variables[name])
    changed = replace(
        node, args=renamed(node.args, planner.variables),
        kwargs=renamed(node.kwargs, planner.variables),
    )  # fmt: skip
    if node.op == "aten.view.default" and any(name.endswith(EXPANDED) for name in reads):
        # What the reference views is a copy; here it has repeated rows, which a view cannot merge.
        changed = replace(changed, op="aten.reshape.default")
    step = planner.call(changed, view=node.op in VIEW_OPS, reads=reads)
    planner.variables[node.name] = node.name
    planner.producer[node.name] = step
    if len(node.outputs) == 1:
        spec = node.outputs[0]
        stride = tuple(spec.stride) if spec.stride is not None else contiguous(spec.shape)
        view = BufferView(node.name, spec.shape, stride, 0, spec.dtype)
        planner.buffers[node.name] = Buffer(node.name, spec.shape, stride, spec.dtype, "temporary")
        planner.values[node.name] = view


def _name_view(planner: Planner, name: str, view: BufferView) -> None:
    """Make the stored window ``view`` the tensor of graph value ``name``."""
    stored = planner.buffers[view.buffer]
    if stored.shape == view.shape and stored.stride == view.stride:
        planner.variables[name] = view.buffer
        return
    spec = TensorSpec(shape=view.shape, dtype=view.dtype, stride=view.stride)
    expand = GraphNode(
        name=f"{name}{EXPANDED}", op="aten.expand.default", kwargs={}, outputs=(spec,),
        args=({"ref": view.buffer}, list(view.shape)),
    )  # fmt: skip
    step = planner.call(expand, view=True, reads=[view.buffer])
    planner.variables[name] = expand.name
    planner.producer[expand.name] = step


def require_tensor(planner: Planner, name: str) -> None:
    """Make graph value ``name`` available as a Python variable."""
    if name in planner.variables:
        return
    value = planner.values.get(name)
    if isinstance(value, Internal):
        try:
            view = planner.spill(value)
            _name_view(planner, name, view)
            return
        except Unfusable as error:
            raise Unplannable(f"{name}: {error}") from None
    if isinstance(value, BufferView):
        whole = planner.buffers[value.buffer]
        if (whole.shape, whole.stride, 0) == (value.shape, value.stride, value.offset):
            planner.variables[name] = value.buffer
            return
    if name not in planner.nodes:
        raise Unplannable(f"{name} has no value")
    node = planner.nodes[name]
    kept = planner.values.get(name)
    call(planner, node)
    if kept is not None:
        planner.values[name] = kept


def renamed(value: Any, variables: dict[str, str]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"ref"}:
            return {"ref": variables.get(value["ref"], value["ref"])}
        return {k: renamed(v, variables) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(renamed(v, variables) for v in value)
    if isinstance(value, list):
        return [renamed(v, variables) for v in value]
    return value
