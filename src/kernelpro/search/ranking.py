"""Items in order of their worth, kept in order while it changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

Item = TypeVar("Item")
Entry = tuple[float, int, Item]
"""Worth, negated, so that the best sorts first; number of joining, which no two share; the item."""


class Ranking(Generic[Item]):
    """Highest worth first; of equals the one that joined first.

    An item's place is found in the logarithm of their number. Whoever adds an item keeps its entry,
    to move or drop it by.
    """

    __slots__ = ("_joined", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry[Item]] = []
        """For reading only."""
        self._joined = 0

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, item: Item, worth: float) -> Entry[Item]:
        """Take ``item`` in; it joins after all others."""
        self._joined += 1
        entry = (-worth, self._joined, item)
        insort(self.entries, entry)
        return entry

    def move(self, entry: Entry[Item], worth: float) -> Entry[Item]:
        """Give the item of ``entry`` another worth; when it joined stays as it was."""
        self.drop(entry)
        moved = (-worth, *entry[1:])
        insort(self.entries, moved)
        return moved

    def drop(self, entry: Entry[Item]) -> None:
        """Leave the item of ``entry`` out."""
        del self.entries[bisect_left(self.entries, entry)]
