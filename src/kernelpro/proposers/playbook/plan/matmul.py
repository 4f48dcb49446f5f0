"""Matrix products: which operators are one, and the kernels that follow them."""

from __future__ import annotations

from collections.abc import Callable

from kernelpro.proposers.playbook.plan.draft import BufferView
from kernelpro.proposers.playbook.plan.ir import Buffer, Step
from kernelpro.proposers.playbook.plan.library import call
from kernelpro.proposers.playbook.plan.lower import Emitter, Result
from kernelpro.proposers.playbook.plan.planner import Unfusable
from kernelpro.schema.graph import GraphNode

PRODUCT_SUFFIX = "_product"


def _addmm(e: Emitter) -> Result:
    """``bias + a @ b`` as a library product and an addition that can fuse with what follows."""
    node = e.node
    if node.kwargs.get("beta", 1) != 1 or node.kwargs.get("alpha", 1) != 1:
        raise Unfusable("scaled addmm")
    product = GraphNode(
        name=node.name + PRODUCT_SUFFIX, op="aten.mm.default", args=node.args[1:3], kwargs={},
        outputs=node.outputs, flops=node.flops,
    )  # fmt: skip
    call(e.planner, product)
    value = e.planner.values[product.name]
    assert isinstance(value, BufferView)
    return e.apply("add", value, e.value(node.args[0]))


MATMULS: dict[str, Callable[[Emitter], Result]] = {"aten.addmm.default": _addmm}
"""Overload -> lowering."""


def fuse_epilogues(
    steps: list[Step], buffers: dict[str, Buffer], outputs: frozenset[str]
) -> list[Step]:
    """Pair products with the kernels that consume them."""
    return steps
