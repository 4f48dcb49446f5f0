"""Online softmax: the largest value of a row and the sum of exponentials in one pass.

The sum is rescaled whenever a larger value turns up (Milakov and Gimelshein 2018, "Online
normalizer calculation for softmax"). Worth its arithmetic where a row does not stay in registers:
it is then read twice, not three times. ``SoftmaxSum`` of ``prelude.cuh`` has the details.
"""

from __future__ import annotations

from dataclasses import replace

from kernelpro.proposers.playbook.plan.ir import Kernel

TOP, TOTAL = "softmax_top", "softmax_total"
"""Reduce operators of the rewritten nodes: two results of one reduction over the same argument."""


def with_online_softmax(kernel: Kernel) -> Kernel:
    """``kernel`` with every ``max(x)`` and ``sum(exp(x - max(x)))`` in float32 made one pass."""
    nodes = list(kernel.nodes)
    for index, node in enumerate(kernel.nodes):
        if node.kind != "reduce" or node.op != "sum" or node.dtype != "float32":
            continue
        power = kernel.nodes[node.args[0]]
        if power.op != "exp" or power.kind != "compute":
            continue
        difference = kernel.nodes[power.args[0]]
        if difference.op != "sub" or difference.kind != "compute":
            continue
        value, top = difference.args
        if _is_top(kernel, value, top) and nodes[top].op == "max":
            nodes[top] = replace(nodes[top], op=TOP)
            nodes[index] = replace(node, op=TOTAL, args=(value,))
    return replace(kernel, nodes=tuple(nodes)) if nodes != list(kernel.nodes) else kernel


def _is_top(kernel: Kernel, value: int, top: int) -> bool:
    """True if ``top`` is the largest ``value`` and serves for nothing but differences.

    With infinities and NaN in one row the rewritten one is only good for those.
    """
    node = kernel.nodes[top]
    users = [n for n in kernel.nodes if top in n.args]
    stored = any(store.node == top for store in kernel.stores)
    return (
        node.kind == "reduce" and node.op == "max" and node.args == (value,)
        and node.dtype == "float32" and not stored and all(n.op == "sub" for n in users)
    )  # fmt: skip


def top_of(kernel: Kernel, total: int) -> int:
    """The ``TOP`` node that shares its reduction with the ``TOTAL`` node ``total``."""
    return next(
        i for i, n in enumerate(kernel.nodes)
        if n.op == TOP and n.args == kernel.nodes[total].args
    )  # fmt: skip
