"""Sliding windows: pooling, padding and depthwise convolution as views with overlapping strides.

A window is a view with one dimension more per spatial dimension, so the operators become plain
reductions that fuse like any other. What padding adds is not in memory: such loads carry a border
and a value that stands in for what lies beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.draft import Border, BufferView, Value
from kernelpro.proposers.playbook.plan.lower import ELEMENTWISE, Emitter, Result
from kernelpro.proposers.playbook.plan.lower_reduce import REDUCTIONS
from kernelpro.proposers.playbook.plan.matmul import with_bias
from kernelpro.proposers.playbook.plan.planner import Planner, Unfusable
from kernelpro.proposers.playbook.plan.views import in_memory

LONGEST_WINDOW = 1024
"""Elements of a window beyond which one thread a window is no way to do it (chosen)."""


def _each(value: Any, rank: int, default: int) -> list[int]:
    """One number per spatial dimension."""
    if isinstance(value, int):
        return [value] * rank
    if not value:
        return [default] * rank
    return list(value) * rank if len(value) == 1 else list(value)


def windows(
    view: BufferView, size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], out: Sequence[int], fill: float,
) -> BufferView:  # fmt: skip
    """``view`` (leading dimensions, spatial ones) as (leading, ``out``, ``size``) dimensions."""
    rank = len(size)
    lead = len(view.shape) - rank
    steps, borders, offset = view.stride[lead:], [], view.offset
    shape = (*view.shape[:lead], *out, *size)
    strides = (*view.stride[:lead], *(a * b for a, b in zip(steps, stride, strict=True)),
               *(a * b for a, b in zip(steps, dilation, strict=True)))  # fmt: skip
    for i in range(rank):
        offset -= padding[i] * steps[i]
        last = (out[i] - 1) * stride[i] + (size[i] - 1) * dilation[i] - padding[i]
        if padding[i] or last >= view.shape[lead + i]:
            walk = [0] * len(shape)
            walk[lead + i], walk[lead + rank + i] = stride[i], dilation[i]
            borders.append(Border(tuple(walk), -padding[i], view.shape[lead + i]))
    return BufferView(view.buffer, shape, strides, offset, view.dtype, window=True,
                      borders=tuple(borders), fill=fill)  # fmt: skip


def _pool(e: Emitter, *, fill: float, dilated: bool) -> tuple[BufferView, int]:
    """The windows of a pooling operator, and how many spatial dimensions it has."""
    view = in_memory(e, e.value(e.arg(0, "self")))
    if view.dtype not in operators.FLOATS:
        raise Unfusable("windows over integers")
    rank = 3 if "3d" in e.node.op else 2
    size = _each(e.arg(1, "kernel_size"), rank, 1)
    stride = _each(e.arg(2, "stride"), rank, 0)
    stride = [s or k for s, k in zip(stride, size, strict=True)]
    padding = _each(e.arg(3, "padding"), rank, 0)
    dilation = _each(e.arg(4, "dilation"), rank, 1) if dilated else [1] * rank
    if math.prod(size) > LONGEST_WINDOW:
        raise Unfusable("windows this large are reductions of their own")
    out = e.node.outputs[0].shape[-rank:]
    return windows(view, size, stride, padding, dilation, out, fill), rank


def _reduced(value: Value, rank: int) -> list[int]:
    return list(range(len(value.shape) - rank, len(value.shape)))


def _max_pool(e: Emitter) -> Result:
    value, rank = _pool(e, fill=-math.inf, dilated=True)
    # The second result, the places of the maxima, is left to torch where it is used.
    return e.reduce("max", value, _reduced(value, rank), keepdim=False), None


def _avg_pool(e: Emitter) -> Result:
    value, rank = _pool(e, fill=0.0, dilated=False)
    divisor = e.arg(6, "divisor_override")
    if divisor is None:
        divisor = math.prod(value.shape[-rank:])
        if any(_each(e.arg(3, "padding"), rank, 0)) and not e.arg(5, "count_include_pad", True):
            raise Unfusable("windows at the border have divisors of their own")
        if any(_passes_padding(border, value.shape) for border in value.borders):
            raise Unfusable("with ceil_mode the last window has a divisor of its own")
    total = e.reduce("sum", value, _reduced(value, rank), keepdim=False)
    return e.apply("mul", total, 1.0 / divisor)


def _passes_padding(border: Border, shape: Sequence[int]) -> bool:
    """True if the last window ends beyond the padding (as wide behind as it is in front)."""
    reach = sum(step * (size - 1) for step, size in zip(border.stride, shape, strict=True))
    return border.offset + reach >= border.size - border.offset


def _adaptive_avg_pool(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    rank = 3 if "3d" in e.node.op else 2
    out = e.node.outputs[0].shape[-rank:]
    size = [whole // part for whole, part in zip(view.shape[-rank:], out, strict=True)]
    if any(w % p for w, p in zip(view.shape[-rank:], out, strict=True)):
        raise Unfusable("windows of unequal size")
    value = windows(view, size, size, [0] * rank, [1] * rank, out, 0.0)
    total = e.reduce("sum", value, _reduced(value, rank), keepdim=False)
    return e.apply("mul", total, 1.0 / math.prod(size))


def _pad(e: Emitter) -> Result:
    view = in_memory(e, e.value(e.arg(0, "self")))
    pad, fill = list(e.arg(1, "pad")), e.arg(2, "value", 0.0)
    out, borders, offset = e.node.outputs[0].shape, [], view.offset
    rank = len(view.shape)
    for i in range(len(pad) // 2):
        dim, before = rank - 1 - i, pad[2 * i]
        offset -= before * view.stride[dim]
        walk = [0] * rank
        walk[dim] = 1
        borders.append(Border(tuple(walk), -before, view.shape[dim]))
    padded = replace(view, shape=out, offset=offset, window=True, borders=tuple(borders),
                     fill=float(fill or 0.0))  # fmt: skip
    return e.apply("copy", padded)


def _convolution(e: Emitter) -> Result:
    """Depthwise: native. Any other: the library's, with the bias added by what follows it."""
    x, weight = e.value(e.arg(0, "input")), e.value(e.arg(1, "weight"))
    groups, bias = e.arg(8, "groups", 1), e.arg(2, "bias")
    if not e.arg(6, "transposed", False) and groups == x.shape[1] > 1 and weight.shape[1] == 1:
        return _depthwise(e, x, weight)
    if bias is None:
        raise Unfusable("no recipe for this convolution")
    if not _joins_a_kernel(e.planner, e.node.name):
        raise Unfusable("no recipe for this convolution, and nothing to add its bias with")
    per_channel = e.view(e.value(bias), (e.node.outputs[0].shape[1], *[1] * (len(x.shape) - 2)))
    args = (*e.node.args[:2], None, *e.node.args[3:])
    return with_bias(e, e.node.op, args, per_channel)


def _joins_a_kernel(planner: Planner, name: str) -> bool:
    """True if an operator that becomes native reads the value ``name``, views seen through."""
    return any(
        _joins_a_kernel(planner, node.name) if node.op in operators.VIEW_OPS
        else node.op in ELEMENTWISE or node.op in REDUCTIONS
        for node in planner.readers.get(name, ())
    )  # fmt: skip


def _depthwise(e: Emitter, x: Value, weight: Value) -> Result:
    """A convolution with one input channel a group: a weighted sum over each window."""
    rank, groups = len(x.shape) - 2, x.shape[1]
    stride, padding, dilation = (
        _each(e.arg(i, ""), rank, default) for i, default in ((3, 1), (4, 0), (5, 1))
    )
    batch, channels = x.shape[:2]
    each, size, out = weight.shape[0] // groups, weight.shape[2:], e.node.outputs[0].shape[2:]
    view = windows(in_memory(e, x), size, stride, padding, dilation, out, 0.0)
    # (batch, channels, each, out, size): every input channel feeds ``each`` outputs.
    view = replace(
        view, shape=(*view.shape[:2], each, *view.shape[2:]),
        stride=(*view.stride[:2], 0, *view.stride[2:]),
        borders=tuple(replace(b, stride=(*b.stride[:2], 0, *b.stride[2:])) for b in view.borders),
    )  # fmt: skip
    factors = e.view(weight, (channels, each, *[1] * rank, *size))
    product = e.apply("mul", view, factors)
    total = e.reduce("sum", product, _reduced(product, rank), keepdim=False)
    total = e.view(total, (batch, channels * each, *out))
    bias = e.arg(2, "bias")
    if bias is None:
        return total
    return e.apply("add", total, e.view(e.value(bias), (channels * each, *[1] * rank)))


WINDOWS: dict[str, Callable[[Emitter], Result]] = {
    "aten.max_pool2d_with_indices.default": _max_pool,
    "aten.max_pool3d_with_indices.default": _max_pool,
    "aten.avg_pool2d.default": _avg_pool, "aten.avg_pool3d.default": _avg_pool,
    "aten._adaptive_avg_pool2d.default": _adaptive_avg_pool,
    "aten._adaptive_avg_pool3d.default": _adaptive_avg_pool,
    "aten.constant_pad_nd.default": _pad, "aten.convolution.default": _convolution,
}  # fmt: skip
"""Overload -> lowering, for operators that slide."""
