"""Random search: expand any node, the virtual root included, with equal probability."""

from __future__ import annotations

import random

from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.tree import Node, Tree


class RandomSearch:
    """Uniform choice; the draw of each ask depends on the seed and the ask's number alone."""

    def __init__(self, *, seed: int = 0, objective: Objective = "latency") -> None:
        self.tree = Tree(objective)
        self._seed = seed
        self._choices: list[Node] = [self.tree.root]
        self._asked = 0

    def ask(self, count: int = 1) -> list[Ask]:
        """Up to ``count`` requests; none once every node is exhausted."""
        asks: list[Ask] = []
        while len(asks) < count and self._choices:
            draw = random.Random(f"{self._seed}:{self._asked}")
            node = self._choices[draw.randrange(len(self._choices))]
            text = f"expand {node.name}: one of {len(self._choices)} at random"
            asks.append(self.tree.request(node, Decision(path=self.tree.path(node), text=text)))
            self._asked += 1
        return asks

    def restore(self, asks: list[Ask]) -> None:
        """Put recorded asks in flight again."""
        for ask in asks:
            self.tree.reopen(ask)
            self._asked += 1

    def tell(self, result: Tell) -> None:
        """Attach the result; an exhausted parent leaves the draw."""
        parent = self.tree.open.get(result.ask_id)
        was_exhausted = parent is not None and parent.exhausted
        node = self.tree.close(result)
        if node is not None:
            self._choices.append(node)
        elif parent is not None and not was_exhausted:
            self._choices.remove(parent)

    def best(self) -> str | None:
        """Fastest accepted node."""
        return self.tree.incumbent.best()
