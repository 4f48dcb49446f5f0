"""The tree of attempts, left to right; every node is a link to its details."""

from __future__ import annotations

import math

from kernelpro.report.charts.svg import label
from kernelpro.report.markup import Markup, element
from kernelpro.report.words import STATUS_SHORT, times
from kernelpro.views.tree_view import TreeNode, TreeView
from kernelpro.views.words import status_word

PILL_WIDTH, PILL_HEIGHT, COLUMN, ROW = 84, 22, 108, 29


def tree_chart(view: TreeView, *, href: str = "#{}") -> Markup:
    """The tree from left to right; every node is a link to its details."""
    width = view.columns * COLUMN - (COLUMN - PILL_WIDTH) + 4
    height = view.rows * ROW + 4
    by_id = {node.id: node for node in view.nodes}
    edges = [(by_id[n.parent_id], n) for n in view.nodes if n.parent_id in by_id]
    edges.sort(key=lambda edge: edge[1].on_best_path)
    best = max((n.speedup for n in view.nodes if n.speedup), default=1.0)
    low = min((n.speedup for n in view.nodes if n.speedup), default=1.0)
    return element(
        "svg",
        [_edge(parent, child) for parent, child in edges],
        [_pill(node, low, best, href) for node in view.nodes],
        viewbox=f"0 0 {width} {height}", width=width, height=height, class_="tree",
        role="group", aria_label=f"Tree of {len(view.nodes)} attempts",
    )  # fmt: skip


def _corner(node: TreeNode) -> tuple[float, float]:
    return node.depth * COLUMN + 2, node.row * ROW + 2


def _edge(parent: TreeNode, child: TreeNode) -> Markup:
    (px, py), (cx, cy) = _corner(parent), _corner(child)
    x0, y0, y1 = px + PILL_WIDTH, py + PILL_HEIGHT / 2, cy + PILL_HEIGHT / 2
    middle = (x0 + cx) / 2
    path = f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {cx:.1f} {y1:.1f}"
    return element("path", d=path, class_="edge on-path" if child.on_best_path else "edge")


def _pill(node: TreeNode, low: float, best: float, href: str) -> Markup:
    x, y = _corner(node)
    if node.speedup is not None:
        verdict, spoken = times(node.speedup), times(node.speedup)
        classes = f"pill heat-{heat(node.speedup, low, best)}"
    else:
        verdict, spoken = (
            "✕ " + STATUS_SHORT[node.status] if node.status else "?",
            status_word(node.status),
        )
        classes = "pill pill-failed"
    if node.duplicate_of:
        classes += " pill-duplicate"
    if node.is_best:
        classes += " pill-best"
    same = f", same source as {node.duplicate_of}" if node.duplicate_of else ""
    name = f"{node.id}, {spoken}{same}: {node.title}"
    return element(
        "a",
        element("title", name),
        element("rect", x=x, y=y, width=PILL_WIDTH, height=PILL_HEIGHT, rx=4),
        label(x + 7, y + 15, node.id.removeprefix("n").lstrip("0") or node.id, "pill-id"),
        label(x + PILL_WIDTH - 7, y + 15, verdict, "pill-verdict", "end"),
        href=href.format(node.id), class_=classes, aria_label=name,
    )  # fmt: skip


def heat(speedup: float, low: float, high: float) -> int:
    """0 (slowest accepted) to 5 (fastest) on a log scale."""
    if high <= low:
        return 5
    return min(5, int(6 * math.log(speedup / low) / math.log(high / low)))
