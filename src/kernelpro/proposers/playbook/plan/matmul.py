"""Matrix products: which operators are one, and the element-wise kernel that follows them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from kernelpro.proposers.playbook.plan.axes import contiguous
from kernelpro.proposers.playbook.plan.draft import BufferView, Value
from kernelpro.proposers.playbook.plan.ir import (
    Access,
    AtenCall,
    Axis,
    Buffer,
    Kernel,
    MatmulKernel,
    Step,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.layout import rebuilt
from kernelpro.proposers.playbook.plan.library import call
from kernelpro.proposers.playbook.plan.lower import Emitter, Result
from kernelpro.proposers.playbook.plan.planner import Unfusable, references
from kernelpro.schema.graph import GraphNode

PRODUCT_SUFFIX = "_product"
"""Name of the plain product inside an ``addmm``, after the operator's own name."""
PRODUCT_TYPES = frozenset({"float32", "float16", "bfloat16"})


def _addmm(e: Emitter) -> Result:
    """``bias + a @ b`` as a library product and an addition that can fuse with what follows."""
    node = e.node
    if node.kwargs.get("beta", 1) != 1 or node.kwargs.get("alpha", 1) != 1:
        raise Unfusable("scaled addmm")
    return with_bias(e, "aten.mm.default", node.args[1:3], e.value(node.args[0]))


def with_bias(e: Emitter, op: str, args: tuple[object, ...], bias: Value) -> Value:
    """``op`` on ``args`` as a library call of its own, and ``bias`` (broadcast) added natively."""
    node = e.node
    product = GraphNode(
        name=node.name + PRODUCT_SUFFIX, op=op, args=args, kwargs={}, outputs=node.outputs,
        flops=node.flops,
    )  # fmt: skip
    call(e.planner, product)
    e.planner.products.add(node.name)
    e.planner.reasons[product.name] = "no recipe for the product; its bias is added natively"
    value = e.planner.values[product.name]
    assert isinstance(value, BufferView)
    return e.apply("add", value, bias)


MATMULS: dict[str, Callable[[Emitter], Result]] = {"aten.addmm.default": _addmm}
"""Overload -> lowering."""


def with_products(
    steps: list[Step], buffers: dict[str, Buffer], outputs: frozenset[str]
) -> list[Step]:
    """Turn ``mm``, ``bmm`` and pointwise convolution calls into ``MatmulKernel`` steps.

    If exactly one step reads the product, and that is an element-wise kernel over its rows and
    columns, the kernel becomes the epilogue (the product then takes the kernel's place).
    """
    products = {
        s.name: made for s in steps if isinstance(s, AtenCall) and (made := _product(s, buffers))
    }
    result: list[Step] = []
    for step in steps:
        if isinstance(step, AtenCall) and step.name in products:
            if _epilogue_of(step.name, products, steps, outputs) is None:
                result.append(products[step.name])
        elif isinstance(step, Kernel) and (made := _taken(step, products, steps, outputs)):
            result.append(made)
        else:
            result.append(step)
    return result


def _product(step: AtenCall, buffers: dict[str, Buffer]) -> MatmulKernel | None:
    if step.node.op == "aten.convolution.default":
        return _pointwise(step, buffers)
    batched = {"aten.mm.default": False, "aten.bmm.default": True}.get(step.node.op)
    if batched is None:
        return None
    left, right = (buffers.get(name) for name in list(references(step.node.args))[:2])
    if left is None or right is None or {left.dtype, right.dtype} - PRODUCT_TYPES:
        return None
    lead = (0,) if not batched else ()
    shape = left.shape if batched else (1, *left.shape)
    return MatmulKernel(
        name=f"matmul_{step.name}", batch=shape[0], m=shape[1], n=right.shape[-1], k=shape[2],
        lhs=Access(left.name, (*lead, *left.stride)),
        rhs=Access(right.name, (*lead, *right.stride)), product=step.name, call=step.node,
        covers=(step.name,),
    )  # fmt: skip


def _pointwise(step: AtenCall, buffers: dict[str, Buffer]) -> MatmulKernel | None:
    """A convolution with windows of one element: per image, weights times pixels."""
    x, weight = (buffers.get(name) for name in list(references(step.node.args))[:2])
    bias, stride, padding, _, transposed, _, groups = step.node.args[2:9]
    if x is None or weight is None or {x.dtype, weight.dtype} - PRODUCT_TYPES:
        return None
    plain = bias is None and not transposed and groups == 1
    still = all(s == 1 for s in stride) and not any(padding) and math.prod(weight.shape[2:]) == 1
    dense = all(b.stride == contiguous(b.shape) for b in (x, weight))
    if not (plain and still and dense):
        return None
    pixels, channels = math.prod(x.shape[2:]), x.shape[1]
    return MatmulKernel(
        name=f"matmul_{step.name}", batch=x.shape[0], m=weight.shape[0], n=pixels, k=channels,
        lhs=Access(weight.name, (0, channels, 1)),
        rhs=Access(x.name, (channels * pixels, pixels, 1)), product=step.name, call=step.node,
        covers=(step.name,),
    )  # fmt: skip


def _epilogue_of(
    name: str, products: dict[str, MatmulKernel], steps: list[Step], outputs: frozenset[str]
) -> Kernel | None:
    """The kernel that can run where the product ``name`` is stored, over (batch,) m, n."""
    readers = [s for s in steps if name in step_reads(s)]
    if name in outputs or len(readers) != 1 or not isinstance(readers[0], Kernel):
        return None
    kernel, product = readers[0], products[name]
    if any(n in products for n in kernel.reads() if n != name):
        # Two products meet here; the later one takes the kernel, the earlier one is stored.
        later = [s.name for s in steps if isinstance(s, AtenCall) and s.name in kernel.reads()]
        if later[-1] != name:
            return None
    return over_product(kernel, product)


def _taken(
    kernel: Kernel, products: dict[str, MatmulKernel], steps: list[Step], outputs: frozenset[str]
) -> MatmulKernel | None:
    for name in kernel.reads():
        if name in products:
            epilogue = _epilogue_of(name, products, steps, outputs)
            if epilogue is not None:
                product = products[name]
                covers = (*product.covers, *epilogue.covers)
                return replace(product, epilogue=epilogue, covers=covers, name=kernel.name)
    return None


def over_product(kernel: Kernel, product: MatmulKernel) -> Kernel | None:
    """``kernel`` with axes exactly (batch if > 1, m, n); None if it has another shape."""
    if any(a.reduced for a in kernel.axes):
        return None
    sizes = [product.m, product.n] if product.batch == 1 else [
        product.batch, product.m, product.n]  # fmt: skip
    split = split_axes(kernel, product, sizes)
    return split if split and [a.size for a in split.axes] == sizes else None


def split_axes(kernel: Kernel, product: MatmulKernel, sizes: list[int]) -> Kernel | None:
    """Split merged axes of ``kernel`` at the borders of ``sizes`` (row-major over the product).

    None if the kernel does not walk the product in row-major order or loads it twice.
    """
    loads = [n.access for n in kernel.nodes if n.kind == "load" and n.access
             and n.access.buffer == product.product]  # fmt: skip
    if len(loads) != 1 or loads[0].offset:
        return None
    steps = list(loads[0].strides)
    axes = list(kernel.axes)
    row_major, step = [], 1
    for axis in reversed(axes):
        row_major.append(step)
        step *= axis.size
    if steps != row_major[::-1] or step != math.prod(sizes):
        return None
    borders = {math.prod(sizes[i:]) for i in range(len(sizes))}
    for border in sorted(borders, reverse=True):
        kernel_axes = list(kernel.axes)
        inner = 1
        for index in range(len(kernel_axes) - 1, -1, -1):
            outer = inner * kernel_axes[index].size
            if inner < border < outer:
                if border % inner or outer % border:
                    return None
                kernel = _split_axis(kernel, index, border // inner)
                break
            inner = outer
    return kernel


def _split_axis(kernel: Kernel, index: int, inner: int) -> Kernel:
    axes = list(kernel.axes)
    old = axes[index]
    axes[index : index + 1] = [Axis(old.size // inner, old.reduced), Axis(inner, old.reduced)]

    def split(access: Access) -> Access:
        steps = list(access.strides)
        steps[index : index + 1] = [steps[index] * inner, steps[index]]
        return Access(access.buffer, tuple(steps), access.offset)

    return rebuilt(kernel, tuple(axes), split)


def step_reads(step: Step) -> set[str]:
    """Buffers a step reads."""
    if isinstance(step, AtenCall):
        return set(references((step.node.args, step.node.kwargs)))
    return set(step.reads())
