"""Best of N: independent candidates from scratch, the baseline every search must beat."""

from __future__ import annotations

from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.tree import Tree


class BestOfN:
    """Every request is a fresh start; deterministic."""

    def __init__(self, *, seed: int = 0, objective: Objective = "latency") -> None:
        self.tree = Tree(objective)

    def ask(self, count: int = 1) -> list[Ask]:
        """``count`` requests from scratch; none once the writer has nothing more."""
        root = self.tree.root
        if root.exhausted:
            return []
        decision = Decision(text="an independent attempt from scratch")
        return [self.tree.request(root, decision) for _ in range(count)]

    def restore(self, asks: list[Ask]) -> None:
        """Put recorded asks in flight again."""
        for ask in asks:
            self.tree.reopen(ask)

    def tell(self, result: Tell) -> None:
        """Attach the result."""
        self.tree.close(result)

    def best(self) -> str | None:
        """Fastest accepted node."""
        return self.tree.incumbent.best()
