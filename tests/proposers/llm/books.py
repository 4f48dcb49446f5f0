"""Books that keep everything in a list."""

from __future__ import annotations

from kernelpro.errors import BudgetExceeded
from kernelpro.schema.exchange import Exchange


class ListedBooks:
    def __init__(self, tokens: int | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.open = 0
        self._tokens = tokens

    def reserve(self, tokens: int, cost_usd: float | None) -> None:
        if self._tokens is not None and tokens > self._tokens:
            raise BudgetExceeded("too much")
        self.open += 1

    def record(self, exchange: Exchange, *, reserved: int, reserved_usd: float | None) -> None:
        self.open -= 1
        self.exchanges.append(exchange)

    def check(self) -> None:
        pass

    def roles(self) -> list[str]:
        return [e.role for e in self.exchanges]
