"""Cuts a prompt to a length: what helps least goes first, and what went is said.

Text is cut before it is marked as data, so that every mark that opens is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelpro.prompts.render import as_data
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
    label: str = ""
    """If given, the part is marked as data under this name."""
    left_out: int = 0
    characters: int | None = None
    """Longest text; more is cut out of its middle."""

    @classmethod
    def whole(cls, text: str, worth: int, label: str = "") -> Part:
        """A part that is kept or cut in the middle, but not dropped."""
        return cls((text,) if text else (), worth, least=1, label=label)

    def text(self) -> str:
        """All pieces, and how many were left out; empty if none is left."""
        if not self.pieces:
            return ""
        said = [f"({self.left_out} more left out)"] if self.left_out else []
        text = "\n".join([*self.pieces, *said])
        if self.characters is not None:
            text = truncate_middle(text, self.characters)
        return as_data(text, self.label) if self.label else text


def fit(parts: dict[str, Part], limit: int, length: Callable[[str], int]) -> dict[str, str]:
    """The text of every part, cut until all together are at most ``limit`` by ``length``.

    First whole pieces go, from the part of least worth; then the middle of what is left of the
    parts of least worth, down to a tenth of the limit each.
    """
    kept = dict(parts)
    while _total(kept, length) > limit:
        droppable = [name for name, part in kept.items() if len(part.pieces) > part.least]
        if not droppable:
            kept = _shortened(kept, limit, length)
            break
        name = min(droppable, key=lambda name: kept[name].worth)
        part = kept[name]
        kept[name] = replace(part, pieces=part.pieces[:-1], left_out=part.left_out + 1)
    return {name: part.text() for name, part in kept.items()}


def _total(parts: dict[str, Part], length: Callable[[str], int]) -> int:
    return sum(length(part.text()) for part in parts.values() if part.pieces)


def _shortened(parts: dict[str, Part], limit: int, length: Callable[[str], int]) -> dict[str, Part]:
    kept, floor = dict(parts), max(1, limit // 10)
    for name in sorted(kept, key=lambda name: kept[name].worth):
        over, text = _total(kept, length) - limit, kept[name].text()
        here = length(text) if text else 0
        if over > 0 and here > floor:
            characters = len(text) * max(floor, here - over) // here
            kept[name] = replace(kept[name], characters=characters)
    return kept
