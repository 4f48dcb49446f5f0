"""View operators: index arithmetic on values, no work at run time.

Windows on memory change strides; values inside a draft kernel change dims. What cannot be
expressed raises ``Unfusable`` (the value is then written to memory and torch makes the view).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.axes import Dim, Free, view_strides
from kernelpro.proposers.playbook.plan.draft import BufferView, Internal, Number, Value
from kernelpro.proposers.playbook.plan.lower import Emitter, Result
from kernelpro.proposers.playbook.plan.planner import Planner, Unfusable


def reshape_value(planner: Planner, value: Value, shape: tuple[int, ...]) -> Value:
    """``value`` seen with ``shape`` (same number of elements)."""
    if value.shape == shape:
        return value
    if math.prod(shape) == 0:
        raise Unfusable("empty tensor")
    if isinstance(value, Number):
        return replace(value, shape=shape)
    if isinstance(value, BufferView):
        stride = view_strides(value.shape, value.stride, shape)
        if stride is not None:
            return replace(value, shape=shape, stride=stride)
        kind = operators.compute_type(value.dtype)
        inside = planner.compute("copy", [value], value.shape, value.dtype, [kind], kind)
        assert isinstance(inside, Internal)
        value = inside
    made = planner.reshaped(value, shape)
    if made is None:
        raise Unfusable("reshape crosses a broadcast or uneven dimension")
    return made


def reorder(planner: Planner, value: Value, order: list[int]) -> Value:
    """Permute the dimensions of ``value``."""
    shape = tuple(value.shape[i] for i in order)
    if isinstance(value, Number):
        return replace(value, shape=shape)
    if isinstance(value, BufferView):
        return replace(value, shape=shape, stride=tuple(value.stride[i] for i in order))
    now = planner.internal(value)
    return replace(now, shape=shape, dims=tuple(now.dims[i] for i in order))


def expand(planner: Planner, value: Value, shape: tuple[int, ...]) -> Value:
    """Broadcast ``value`` to ``shape``."""
    lead = len(shape) - len(value.shape)
    if isinstance(value, Number):
        return replace(value, shape=shape)
    grown = [i < lead or value.shape[i - lead] != size for i, size in enumerate(shape)]
    if isinstance(value, BufferView):
        stride = tuple(0 if new else value.stride[i - lead] for i, new in enumerate(grown))
        return replace(value, shape=shape, stride=stride)
    now = planner.internal(value)
    dims: list[Dim] = []
    for i, size in enumerate(shape):
        dims.append((Free(size) if size > 1 else ()) if grown[i] else now.dims[i - lead])
    return replace(now, shape=shape, dims=tuple(dims))


def _view(e: Emitter) -> Result:
    return reshape_value(e.planner, e.value(e.arg(0, "self")), e.node.outputs[0].shape)


def _permute(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    rank = len(value.shape)
    if e.node.op == "aten.t.default":
        order = list(reversed(range(rank)))
    elif e.node.op == "aten.transpose.int":
        order = list(range(rank))
        a, b = e.arg(1, "dim0") % rank, e.arg(2, "dim1") % rank
        order[a], order[b] = order[b], order[a]
    else:
        order = [d % rank for d in e.arg(1, "dims")]
    return reorder(e.planner, value, order)


def _expand(e: Emitter) -> Result:
    return expand(e.planner, e.value(e.arg(0, "self")), e.node.outputs[0].shape)


def in_memory(e: Emitter, value: Value) -> BufferView:
    """``value`` in memory (a part of a kernel's values is read from memory)."""
    if isinstance(value, Number):
        raise Unfusable("part of a constant")
    if isinstance(value, Internal):
        return e.planner.spill(value)
    return value


def _slice(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    rank = len(view.shape)
    dim = e.arg(1, "dim", 0) % rank
    start, step = e.arg(2, "start", 0) or 0, e.arg(4, "step", 1)
    size = view.shape[dim]
    start = min(max(start + size if start < 0 else start, 0), size)
    return _cut(view, dim, start, e.node.outputs[0].shape[dim], step)


def _cut(view: BufferView, dim: int, start: int, length: int, step: int = 1) -> BufferView:
    if length == 0:
        raise Unfusable("empty slice")
    shape, stride = list(view.shape), list(view.stride)
    offset = view.offset + start * stride[dim]
    shape[dim] = length
    stride[dim] *= step
    return replace(view, shape=tuple(shape), stride=tuple(stride), offset=offset)


def _select(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    dim = e.arg(1, "dim") % len(view.shape)
    index = e.arg(2, "index")
    index += view.shape[dim] if index < 0 else 0
    keep = [i for i in range(len(view.shape)) if i != dim]
    return replace(
        view, shape=tuple(view.shape[i] for i in keep),
        stride=tuple(view.stride[i] for i in keep), offset=view.offset + index * view.stride[dim],
    )  # fmt: skip


def _split(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    dim = e.arg(2, "dim", 0) % len(view.shape)
    parts: list[Value | None] = []
    start = 0
    for spec in e.node.outputs:
        length = spec.shape[dim]
        parts.append(_cut(view, dim, start, length))
        start += length
    return tuple(parts)


def _alias(e: Emitter) -> Result:
    return e.value(e.arg(0, "self"))


VIEWS: dict[str, Callable[[Emitter], Result]] = {
    **dict.fromkeys((
        "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default",
        "aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
        "aten.squeeze.default", "aten.flatten.using_ints", "aten.unflatten.int",
        "aten.view_copy.default",
    ), _view),
    **dict.fromkeys(("aten.permute.default", "aten.transpose.int", "aten.t.default"), _permute),
    "aten.expand.default": _expand, "aten.slice.Tensor": _slice, "aten.select.int": _select,
    "aten.split_with_sizes.default": _split, "aten.split.Tensor": _split,
    "aten.alias.default": _alias, "aten.detach.default": _alias,
    "aten.lift_fresh_copy.default": _alias,
}  # fmt: skip
"""Overload -> index arithmetic."""
