"""Which values of a row stay in registers from one pass to the next.

Kept are the values where later passes take up the computation: of a softmax the masked scores
until the sum, then the exponentials until the store; nothing is loaded or computed twice. Where
the loads below them need fewer registers, the loads are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body

_WORDS = {"float64": 2, "int64": 2}
"""32-bit registers of a value; one for the other types."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Nodes that are held, and the registers they take at most at any time."""

    nodes: frozenset[int]
    words: int
    """Per reduction step of one thread."""


def choose_holding(body: Body, roots: Sequence[Sequence[int]]) -> Holding:
    """What to keep when pass ``s`` computes ``roots[s]``; empty if no pass needs another's work."""
    values, loads = (_Tracing(body, roots, loads=only).holding() for only in (False, True))
    return loads if loads.words < values.words else values


def words(body: Body, node: int) -> int:
    """Registers of a node's value at one reduction step."""
    wide = _WORDS.get(body.kernel.nodes[node].dtype, 1)
    return wide * (body.lanes if body.per_lane(node) else 1)


class _Tracing:
    """Runs through the passes and notes who needs what was computed before."""

    def __init__(self, body: Body, roots: Sequence[Sequence[int]], *, loads: bool) -> None:
        self.body = body
        self.loads = loads
        self.memory = _reads_memory(body)
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for stage, wanted in enumerate(roots):
            fresh: set[int] = set()
            for node in wanted:
                self.visit(node, stage, fresh)
            self.first |= {node: stage for node in fresh if self.holdable(node)}
        self.passes = len(roots)

    def holdable(self, node: int) -> bool:
        """Only what depends on memory: indices and the like are quickly computed again."""
        return self.memory[node] and (not self.loads or self.body.kernel.nodes[node].kind == "load")

    def visit(self, node: int, stage: int, fresh: set[int]) -> None:
        """Collect in ``fresh`` what this pass computes."""
        it = self.body.kernel.nodes[node]
        if self.body.levels[node] != "element" or it.kind == "reduce" or node in fresh:
            return
        if node in self.first:
            self.last[node] = stage
            return
        fresh.add(node)
        for arg in it.args:
            self.visit(arg, stage, fresh)

    def holding(self) -> Holding:
        """Nodes used after the pass that computed them."""
        most = max(
            (
                sum(words(self.body, n) for n, end in self.last.items()
                    if self.first[n] < border <= end)
                for border in range(1, self.passes)
            ),
            default=0,
        )  # fmt: skip
        return Holding(frozenset(self.last), most)


def _reads_memory(body: Body) -> list[bool]:
    """Per node: is there an element load below it (or is it one)?"""
    found: list[bool] = []
    for index, node in enumerate(body.kernel.nodes):
        own = node.kind == "load" and body.levels[index] == "element"
        below = node.kind != "reduce" and any(found[arg] for arg in node.args)
        found.append(own or below)
    return found
