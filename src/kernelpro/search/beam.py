"""Beam search: keep the few most promising nodes, expand each a few times, choose again."""

from __future__ import annotations

from collections import deque

from kernelpro.errors import UserError
from kernelpro.schema.presets import BEAM_CHILDREN, BEAM_WIDTH
from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.pool import Pool
from kernelpro.search.tree import Node, Tree


class Beam:
    """Ask/tell beam search; deterministic. :meth:`ask` is empty while a generation is in flight."""

    def __init__(
        self, *, seed: int = 0, objective: Objective = "latency",
        width: int = BEAM_WIDTH, children: int = BEAM_CHILDREN,
    ) -> None:  # fmt: skip
        if width < 1 or children < 1:
            raise UserError(f"beam needs width and children >= 1, got {width} and {children}")
        self.tree = Tree(objective)
        self._pool = Pool()
        self._width = width
        self._children = children
        self._generation = 0
        self._slots: deque[Node] = deque()

    def ask(self, count: int = 1) -> list[Ask]:
        """Up to ``count`` requests of the current generation."""
        asks: list[Ask] = []
        while len(asks) < count and self._fill():
            node = self._slots.popleft()
            text = f"generation {self._generation}: expand {node.name}"
            decision = Decision(score=node.reward, path=self.tree.path(node), text=text)
            asks.append(self.tree.request(node, decision))
        return asks

    def restore(self, asks: list[Ask]) -> None:
        """Put recorded asks in flight again, each taking its slot of the generation."""
        for ask in asks:
            if not self._fill() or self._slots[0].id != ask.parent_id:
                raise UserError(f"Ask {ask.id} does not follow from the recorded beam search")
            self._slots.popleft()
            self.tree.reopen(ask)

    def tell(self, result: Tell) -> None:
        """Attach the result."""
        node = self.tree.close(result)
        if node is not None:
            self._pool.add(node)

    def best(self) -> str | None:
        """Fastest accepted node."""
        return self.tree.incumbent.best()

    def _fill(self) -> bool:
        """True if a slot is ready; starts the next generation once the last is told."""
        while self._slots and self._slots[0].exhausted:
            self._slots.popleft()
        if not self._slots and not self.tree.open:
            beam = self._pool.top(self._width)
            missing = self._width - len(beam)
            if missing and not self.tree.root.exhausted:
                beam += [self.tree.root] * missing
            self._generation += 1
            self._slots.extend(node for node in beam for _ in range(self._children))
        return bool(self._slots)
