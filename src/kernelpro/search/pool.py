"""Nodes in order of how promising they look, for strategies that only ever want the best."""

from __future__ import annotations

import heapq

from kernelpro.schema.outcome import STAGE_RANK
from kernelpro.search.tree import Node

Rank = tuple[bool, float, int]


def rank(node: Node, age: int) -> Rank:
    """Sorts best first: successes by reward, then failures by stage reached; older first."""
    if node.ok:
        return (False, -node.reward, age)
    stage = node.tell.stage if node.tell is not None else None
    return (True, -float(STAGE_RANK[stage] if stage is not None else 0), age)


class Pool:
    """A priority queue of nodes; those whose writer is exhausted drop out when they surface."""

    def __init__(self) -> None:
        self._heap: list[tuple[Rank, Node]] = []
        self._added = 0

    def add(self, node: Node) -> None:
        """Take a told node in."""
        heapq.heappush(self._heap, (rank(node, self._added), node))
        self._added += 1

    def best(self) -> Node | None:
        """The most promising node that can still be asked."""
        while self._heap and self._heap[0][1].exhausted:
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def top(self, count: int) -> list[Node]:
        """The ``count`` most promising nodes that can still be asked, best first."""
        taken: list[tuple[Rank, Node]] = []
        while self._heap and len(taken) < count:
            entry = heapq.heappop(self._heap)
            if not entry[1].exhausted:
                taken.append(entry)
        for entry in taken:
            heapq.heappush(self._heap, entry)
        return [node for _, node in taken]
