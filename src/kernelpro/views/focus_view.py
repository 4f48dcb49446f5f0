"""The tree in few lines: the winner's path and the newest attempts, the rest counted."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.views.run import Run
from kernelpro.views.tree_view import TreeNode, tree_view


class FocusRow(NamedTuple):
    """One line of the tree."""

    guide: str
    """Box-drawing prefix that shows the depth and which siblings follow."""
    node: TreeNode
    hidden: int
    """Descendants of this node that are not shown."""


class FocusView(NamedTuple):
    """The lines, and how many nodes have no visible ancestor and are not shown."""

    rows: tuple[FocusRow, ...]
    hidden: int


def focus_view(run: Run, limit: int) -> FocusView:
    """At most ``limit`` nodes: the best path first, then the newest with their ancestors."""
    nodes = tree_view(run).nodes
    shown = _chosen(run, limit)
    owner: dict[str, str | None] = {}
    hidden: dict[str | None, int] = {}
    for node in nodes:
        above = owner.get(node.parent_id) if node.parent_id else None
        owner[node.id] = node.id if node.id in shown else above
        if node.id not in shown:
            hidden[above] = hidden.get(above, 0) + 1
    kept = [node for node in nodes if node.id in shown]
    guides = _guides(kept)
    rows = tuple(FocusRow(guides[n.id], n, hidden.get(n.id, 0)) for n in kept)
    return FocusView(rows=rows, hidden=hidden.get(None, 0))


def _chosen(run: Run, limit: int) -> set[str]:
    chosen: set[str] = set()
    candidates = [run.best_id, *reversed(run.facts)]
    for node_id in candidates:
        missing = [n for n in run.path(node_id) if n not in chosen]
        if len(chosen) + len(missing) > limit:
            # A path longer than the screen keeps its end: that is where things happen.
            if not chosen:
                chosen.update(missing[-limit:])
            break
        chosen.update(missing)
    return chosen


def _guides(kept: list[TreeNode]) -> dict[str, str]:
    """Prefixes for nodes in pre-order; a node whose parent is not shown starts at the margin."""
    ids = {node.id for node in kept}
    last: dict[str | None, str] = {}
    for node in kept:
        last[node.parent_id] = node.id
    stems: dict[str, str] = {}
    guides: dict[str, str] = {}
    for node in kept:
        if node.parent_id not in ids or node.parent_id is None:
            guides[node.id], stems[node.id] = "", ""
            continue
        ends = last[node.parent_id] == node.id
        stem = stems[node.parent_id]
        guides[node.id] = stem + ("└─ " if ends else "├─ ")
        stems[node.id] = stem + ("   " if ends else "│  ")
    return guides
