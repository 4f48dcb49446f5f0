"""What a plan computes natively and what it leaves to torch, in work, not in operator counts."""

from __future__ import annotations

from collections.abc import Sequence, Set

from kernelpro.proposers.playbook.plan.ir import AtenCall, Coverage, MatmulKernel, Plan, Step
from kernelpro.proposers.playbook.plan.matmul import PRODUCT_SUFFIX
from kernelpro.schema.graph import Graph


def node_costs(graph: Graph, products: Set[str] = frozenset()) -> dict[str, float]:
    """Graph node -> FLOPs, at least one per output element.

    ``products``: nodes split in two; their product counts under its own name, the bias as
    element-wise work.
    """
    costs: dict[str, float] = {}
    for node in graph.nodes:
        elements = float(sum(spec.numel for spec in node.outputs))
        costs[node.name] = max(node.flops, elements)
        if node.name in products:
            costs[node.name + PRODUCT_SUFFIX] = costs[node.name]
            costs[node.name] = elements
    return costs


def coverage(
    costs: dict[str, float], steps: Sequence[Step], reasons: dict[str, str], *, own_products: bool
) -> Coverage:
    """``own_products``: the back end multiplies itself; else products count as library work."""
    native: list[str] = []
    library: dict[str, str] = {}
    for step in steps:
        if isinstance(step, AtenCall):
            if not step.view and not step.node.op.endswith("getitem"):
                library[step.name] = reasons.get(step.name, "writes a constant tensor")
        elif isinstance(step, MatmulKernel):
            native += step.epilogue.covers if step.epilogue else ()
            if own_products:
                native.append(step.product)
            else:
                library[step.product] = "the library multiplies"
        else:
            native += step.covers
    native = [n for n in dict.fromkeys(native) if n not in library]
    covered = sum(costs.get(n, 0.0) for n in native)
    total = covered + sum(costs.get(n, 0.0) for n in library)
    return Coverage(tuple(native), tuple(library.items()), covered / total if total else 0.0)


def plan_coverage(plan: Plan, *, own_products: bool) -> Coverage:
    """Coverage of ``plan`` under a back end's choice of who multiplies."""
    return coverage(plan.costs, plan.steps, plan.reasons, own_products=own_products)
