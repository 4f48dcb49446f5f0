"""The search's contract: ask and tell. Pure: no clock, no files, no torch; seeded randomness."""

from __future__ import annotations

from typing import Protocol

from kernelpro.registry import Registry
from kernelpro.schema.search import Ask, Tell


class Strategy(Protocol):
    """Decides which candidate to expand next.

    Rebuilt exactly by replaying the same asks and tells in the recorded order; deterministic for
    a seed when told in order. Constructed as ``Strategy(seed=int, objective=str, **options)``.
    """

    def ask(self, count: int = 1) -> list[Ask]:
        """Up to ``count`` requests, all in flight at once; empty = nothing left to expand."""
        ...

    def restore(self, asks: list[Ask]) -> None:
        """Re-apply recorded asks, as if :meth:`ask` had just returned them."""
        ...

    def tell(self, result: Tell) -> None:
        """The result of one ask, in any order. ``node_id`` None closes the ask without a node."""
        ...

    def best(self) -> str | None:
        """Node id of the best accepted candidate so far, None if there is none."""
        ...


STRATEGIES = Registry(
    "search strategy",
    {
        "mcts": "kernelpro.search.mcts:Mcts",
        "greedy": "kernelpro.search.greedy:Greedy",
        "beam": "kernelpro.search.beam:Beam",
        "best-of-n": "kernelpro.search.best_of_n:BestOfN",
        "random": "kernelpro.search.random_search:RandomSearch",
    },
)
