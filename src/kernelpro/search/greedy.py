"""Greedy: always improve the best success; else repair the failure that got furthest.

After some failed attempts in a row it writes one from scratch (PAPER section 4, the baseline).
"""

from __future__ import annotations

from kernelpro.schema.presets import GREEDY_RESTART_FAILURES
from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.pool import Pool
from kernelpro.search.tree import Node, Tree


class Greedy:
    """Ask/tell hill climbing with restarts; deterministic."""

    def __init__(
        self, *, seed: int = 0, objective: Objective = "latency",
        restart_failures: int = GREEDY_RESTART_FAILURES,
    ) -> None:  # fmt: skip
        self.tree = Tree(objective)
        self._pool = Pool()
        self._restart_failures = restart_failures
        self._failed_in_a_row = 0

    def ask(self, count: int = 1) -> list[Ask]:
        """Up to ``count`` requests at the same most promising node."""
        asks = []
        for _ in range(count):
            node, text = self._select()
            if node is None:
                break
            decision = Decision(score=node.reward, path=self.tree.path(node), text=text)
            asks.append(self.tree.request(node, decision))
            self._restarted(asks[-1])
        return asks

    def restore(self, asks: list[Ask]) -> None:
        """Put recorded asks in flight again."""
        for ask in asks:
            self.tree.reopen(ask)
            self._restarted(ask)

    def tell(self, result: Tell) -> None:
        """Attach the result; count failures in a row."""
        node = self.tree.close(result)
        if node is not None:
            self._pool.add(node)
            self._failed_in_a_row = 0 if node.ok else self._failed_in_a_row + 1

    def best(self) -> str | None:
        """Fastest accepted node."""
        return self.tree.incumbent.best()

    def _select(self) -> tuple[Node | None, str]:
        root = self.tree.root
        best = self._pool.best()
        if best is None:
            return (None if root.exhausted else root), "write from scratch: nothing to build on"
        if self._failed_in_a_row >= self._restart_failures and not root.exhausted:
            return root, f"write from scratch: {self._failed_in_a_row} failures in a row"
        what = "improve the best success" if best.ok else "repair the failure that got furthest"
        return best, f"{what}, {best.name}"

    def _restarted(self, ask: Ask) -> None:
        if ask.parent_id is None:
            self._failed_in_a_row = 0
