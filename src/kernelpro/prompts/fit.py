"""Cuts a prompt to a length: what helps least goes first, and what went is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from kernelpro.text import truncate_middle


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a prompt: pieces that can be left out from the last one up."""

    pieces: tuple[str, ...]
    """Most useful first."""
    worth: int
    """Parts of smaller worth are cut first."""
    least: int = 0
    """Pieces that stay; their text may still be cut in the middle, last of all."""
    left_out: int = 0

    def text(self) -> str:
        """All pieces, and how many were left out."""
        said = [f"({self.left_out} more left out)"] if self.left_out and self.pieces else []
        return "\n".join([*self.pieces, *said])

    @classmethod
    def whole(cls, text: str, worth: int) -> Part:
        """A part that is kept or cut in the middle, but not dropped."""
        return cls((text,) if text else (), worth, least=1)


def fit(parts: dict[str, Part], limit: int, length: Callable[[str], int]) -> dict[str, str]:
    """The text of every part, cut until all together are at most ``limit`` by ``length``.

    First whole pieces go, from the part of least worth; then the middle of what is left of the
    parts of least worth, down to a tenth of the limit each.
    """
    kept = dict(parts)
    while _total(kept, length) > limit:
        droppable = [name for name, part in kept.items() if len(part.pieces) > part.least]
        if not droppable:
            return _truncated(kept, limit, length)
        name = min(droppable, key=lambda name: kept[name].worth)
        part = kept[name]
        kept[name] = dataclasses.replace(part, pieces=part.pieces[:-1], left_out=part.left_out + 1)
    return {name: part.text() for name, part in kept.items()}


def _total(parts: dict[str, Part], length: Callable[[str], int]) -> int:
    return sum(length(part.text()) for part in parts.values() if part.pieces)


def _truncated(parts: dict[str, Part], limit: int, length: Callable[[str], int]) -> dict[str, str]:
    texts = {name: part.text() for name, part in parts.items()}
    floor = max(1, limit // 10)
    for name in sorted(texts, key=lambda name: parts[name].worth):
        over = sum(length(text) for text in texts.values() if text) - limit
        here = length(texts[name]) if texts[name] else 0
        if over <= 0 or here <= floor:
            continue
        characters = len(texts[name]) * max(floor, here - over) // here
        texts[name] = truncate_middle(texts[name], characters)
    return texts
