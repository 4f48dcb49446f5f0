"""The search tree: nodes in reading order, and a tidy left-to-right placement for drawing."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.candidate import Mode
from kernelpro.schema.outcome import Status
from kernelpro.views.run import Run


class TreeNode(NamedTuple):
    """One attempt."""

    id: str
    parent_id: str | None
    depth: int
    row: float
    """Vertical place in units of one leaf; a parent sits in the middle of its children."""
    title: str
    mode: Mode
    status: Status | None
    speedup: float | None
    """As the search measured it."""
    duplicate_of: str | None
    on_best_path: bool
    is_best: bool


class TreeView(NamedTuple):
    """Nodes in pre-order, and the size of the drawing in columns and rows."""

    nodes: tuple[TreeNode, ...]
    columns: int
    rows: int


def tree_view(run: Run) -> TreeView:
    """The tree of ``run``; nodes whose parent is missing start a tree of their own."""
    order, depth = _pre_order(run)
    rows, count = _rows(run, order)
    best = run.best_id
    best_path = set(run.path(best))
    nodes = tuple(_node(run, node_id, depth[node_id], rows[node_id], best_path, best)
                  for node_id in order)  # fmt: skip
    return TreeView(nodes=nodes, columns=max(depth.values(), default=-1) + 1, rows=count)


def _pre_order(run: Run) -> tuple[list[str], dict[str, int]]:
    order: list[str] = []
    depth: dict[str, int] = {}
    stack = [(n, 0) for n in reversed(list(run.facts)) if run.parent_of(n) is None]
    while stack:
        node_id, level = stack.pop()
        order.append(node_id)
        depth[node_id] = level
        stack += [(child, level + 1) for child in reversed(run.children.get(node_id, []))]
    return order, depth


def _rows(run: Run, order: list[str]) -> tuple[dict[str, float], int]:
    rows: dict[str, float] = {}
    leaves = 0
    for node_id in order:
        if not run.children.get(node_id):
            rows[node_id] = float(leaves)
            leaves += 1
    for node_id in reversed(order):
        children = run.children.get(node_id)
        if children:
            rows[node_id] = (rows[children[0]] + rows[children[-1]]) / 2
    return rows, leaves


def _node(
    run: Run, node_id: str, depth: int, row: float, best_path: set[str], best_id: str | None
) -> TreeNode:
    facts = run.facts[node_id]
    return TreeNode(
        id=node_id, parent_id=run.parent_of(node_id), depth=depth, row=row, title=facts.title,
        mode=facts.mode, status=facts.status, speedup=facts.speedup,
        duplicate_of=facts.duplicate_of, on_best_path=node_id in best_path,
        is_best=node_id == best_id,
    )  # fmt: skip
