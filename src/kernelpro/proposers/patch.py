"""SEARCH/REPLACE blocks: read from a reply, applied to a version.

Text is looked for as it is; if it is not there, once more without regard to trailing blanks, then
to a common indentation. A block that fits nowhere or twice is refused with the reason.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

_BLOCK = re.compile(
    r"^[ \t]*<{5,9}[ \t]*SEARCH[ \t]*\n(?P<search>.*?)^[ \t]*={5,9}[ \t]*\n(?P<replace>.*?)"
    r"^[ \t]*>{5,9}[ \t]*REPLACE[ \t]*$",
    re.M | re.S,
)
MARK = re.compile(r"^[ \t]*<{5,9}[ \t]*SEARCH", re.M)
"""Where a block begins."""


class Block(NamedTuple):
    """One change: these lines become those."""

    search: str
    replace: str


class Misfit(Exception):
    """A block that cannot be applied; the message says which and why."""


def find_blocks(reply: str) -> list[Block]:
    """The blocks of a reply, in order. :class:`Misfit` for one that is begun and not ended."""
    blocks = [Block(m["search"], m["replace"]) for m in _BLOCK.finditer(reply)]
    begun = len(MARK.findall(reply))
    if begun > len(blocks):
        raise Misfit(
            f"{begun} SEARCH blocks begin, {len(blocks)} are complete: each needs a line of "
            "======= and a line >>>>>>> REPLACE"
        )
    return blocks


def apply(blocks: list[Block], source: str) -> str:
    """``source`` with all blocks applied one after another; :class:`Misfit` names the first that
    does not fit."""
    for number, block in enumerate(blocks, start=1):
        source = _applied(block, source, number)
    return source


def _applied(block: Block, source: str, number: int) -> str:
    if not block.search.strip():
        raise Misfit(f"block {number}: its SEARCH part is empty")
    lines, wanted = source.splitlines(), block.search.splitlines()
    replacement = block.replace.splitlines()
    for same in (_identical, _but_for_trailing, _but_for_indent):
        places = [at for at in range(len(lines) - len(wanted) + 1)
                  if same(lines[at : at + len(wanted)], wanted)]  # fmt: skip
        if len(places) > 1:
            said = ", ".join(str(at + 1) for at in places[:5])
            raise Misfit(
                f"block {number}: its SEARCH text is found {len(places)} times (lines {said}); "
                "add lines around it that tell the places apart"
            )
        if places:
            at = places[0]
            shifted = _shifted(replacement, wanted, lines[at : at + len(wanted)])
            return "\n".join([*lines[:at], *shifted, *lines[at + len(wanted) :]]) + "\n"
    raise Misfit(
        f"block {number}: its SEARCH text is not in the version. {_nearest(lines, wanted)}"
    )


def _identical(here: list[str], wanted: list[str]) -> bool:
    return here == wanted


def _but_for_trailing(here: list[str], wanted: list[str]) -> bool:
    return [line.rstrip() for line in here] == [line.rstrip() for line in wanted]


def _but_for_indent(here: list[str], wanted: list[str]) -> bool:
    return [line.strip() for line in here] == [line.strip() for line in wanted] and (
        _indent_change(wanted, here) is not None
    )


def _indent_change(wanted: list[str], here: list[str]) -> int | None:
    """Columns by which ``here`` is indented more than ``wanted``; None if not the same for all."""
    pairs = [(w, h) for w, h in zip(wanted, here, strict=True) if w.strip()]
    changes = {(len(h) - len(h.lstrip())) - (len(w) - len(w.lstrip())) for w, h in pairs}
    return changes.pop() if len(changes) == 1 else None


def _shifted(replacement: list[str], wanted: list[str], here: list[str]) -> list[str]:
    change = _indent_change(wanted, here) or 0
    if change >= 0:
        return [" " * change + line if line.strip() else line for line in replacement]
    return [line[min(-change, len(line) - len(line.lstrip())) :] for line in replacement]


def _nearest(lines: list[str], wanted: list[str]) -> str:
    """Where the version comes closest to the first wanted line that says something."""
    first = max((w.strip() for w in wanted), key=len)
    stripped = [line.strip() for line in lines]
    close = difflib.get_close_matches(first, stripped, n=1, cutoff=0.6)
    if not close:
        return f"Nothing like {first[:80]!r} is there"
    return f"Nearest to {first[:80]!r} is line {stripped.index(close[0]) + 1}: {close[0][:80]!r}"
