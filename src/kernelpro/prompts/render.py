"""Fills in a prompt file. A value that is missing, or that the file does not use, is an error.

Values are inserted as they are and never read for further placeholders.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from kernelpro.text import content_hash, printable

FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def render(prompt: str, /, **values: str) -> str:
    """The text of ``<prompt>.md`` with every ``{{place}}`` filled in, and no blank line twice."""
    template = load(prompt)
    places = set(_PLACE.findall(template))
    if places != set(values):
        raise ValueError(
            f"prompt {prompt!r}: missing {sorted(places - set(values))}, "
            f"not used {sorted(set(values) - places)}"
        )
    pieces = _PLACE.split(template)  # text, place, text, place, text ...
    filled = [values[p].strip("\n") if i % 2 else p for i, p in enumerate(pieces)]
    # Only the file's own blank lines are tidied: what is inserted keeps its own.
    text = ""
    for piece in filled:
        if text.endswith("\n\n") or not text:
            piece = piece.lstrip("\n")
        text += piece
    return text.rstrip() + "\n"


def as_data(text: str, label: str) -> str:
    """``text`` between marks that it cannot contain, so that no part of it reads as instruction.

    Control characters and direction overrides are taken out; the system prompts say that nothing
    between such marks is an order.
    """
    clean = printable(text).strip("\n")
    mark = "data-" + content_hash(clean).removeprefix("sha256:")[:8]
    return f'<{mark} label="{label}">\n{clean}\n</{mark}>'


@functools.cache
def load(name: str) -> str:
    """The prompt file ``<name>.md`` as it is."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")
