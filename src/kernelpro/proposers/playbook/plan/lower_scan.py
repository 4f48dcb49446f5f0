"""Running sums and products along one dimension: a step of their own, in memory on both sides.

A reversed operand (``flip``) is only a view with a negative stride. The result is then stored in
the operand's order, so that flipping it back is a view as well and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.axes import contiguous, view_strides
from kernelpro.proposers.playbook.plan.draft import BufferView, Number
from kernelpro.proposers.playbook.plan.ir import Access, ScanKernel, ScanOp
from kernelpro.proposers.playbook.plan.lower import Emitter, Result
from kernelpro.proposers.playbook.plan.planner import Unfusable
from kernelpro.proposers.playbook.plan.views import in_memory

RESULT_TYPES = frozenset({"float16", "bfloat16", "float32", "float64", "int64"})
SHORTEST = 2


def _scan(op: ScanOp) -> Callable[[Emitter], Result]:
    def lower(e: Emitter) -> Result:
        value = e.value(e.arg(0, "self"))
        if isinstance(value, Number) or not value.shape:
            raise Unfusable("scan of a constant")
        if e.dtype not in RESULT_TYPES or value.dtype not in (*operators.FLOATS, "int64", "bool"):
            raise Unfusable(f"scan of {value.dtype} to {e.dtype}")
        return _add_step(e, in_memory(e, value), op, e.arg(1, "dim") % len(value.shape))

    return lower


def _add_step(e: Emitter, view: BufferView, op: ScanOp, dim: int) -> BufferView:
    planner, shape = e.planner, view.shape
    outer, length, inner = _three(shape, dim)
    if length < SHORTEST:
        raise Unfusable("scan over a single element")
    strides = view_strides(shape, view.stride, (outer, length, inner))
    if strides is None:
        raise Unfusable("the operand's dimensions do not merge into rows")
    backwards = strides[1] < 0
    step = planner.new_step()
    name = planner.fresh_name(e.node.name)
    made = BufferView(name, shape, contiguous(shape), 0, e.dtype)
    planner.add_buffer(made, step)
    along = -inner if backwards else inner
    start = (length - 1) * inner if backwards else 0
    planner.scans[step] = ScanKernel(
        name=f"scan_{e.node.name}", op=op, outer=outer, length=length, inner=inner,
        source=Access(view.buffer, strides, view.offset),
        target=Access(name, (length * inner, along, 1), start), covers=(e.node.name,),
    )  # fmt: skip
    if view.buffer in planner.producer:
        planner.depend(step, [planner.producer[view.buffer]])
    if not backwards:
        return made
    stride = tuple(-s if i == dim else s for i, s in enumerate(made.stride))
    return replace(made, stride=stride, offset=start)


def _three(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Elements before, along and after ``dim``."""
    outer = inner = 1
    for i, size in enumerate(shape):
        outer *= size if i < dim else 1
        inner *= size if i > dim else 1
    return outer, shape[dim], inner


def _flip(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    stride, offset = list(view.stride), view.offset
    for dim in e.arg(1, "dims"):
        offset += (view.shape[dim] - 1) * stride[dim]
        stride[dim] = -stride[dim]
    return replace(view, stride=tuple(stride), offset=offset)


SCANS: dict[str, Callable[[Emitter], Result]] = {
    "aten.cumsum.default": _scan("sum"), "aten.cumprod.default": _scan("prod"),
    "aten.flip.default": _flip,
}  # fmt: skip
"""Overload -> lowering."""
