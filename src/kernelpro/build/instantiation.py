"""Reads the template context that nvcc and NVRTC print below an error inside a header.

A CuTe mistake prints a dozen instantiations of two thousand characters each. What a writer needs is
the last one, which is a line of their own, and the layouts of the first, written as CuTe writes
them: ``(4,1):(128,0)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BINDINGS = 4
"""Template arguments shown (chosen)."""
BINDING_WIDTH = 120
TAIL = 400
"""Characters at the end of a line in which its place stands."""
LINE_LIMIT = 20_000
"""Longer instantiations are not taken apart."""

_INSTANTIATION = re.compile(r"^\s+(?:detected during:?\s+)?\w[^\"]*\"")
_PLACE = re.compile(r"at line (?P<line>\d+)(?: of \"?(?P<file>[^\s\"]+?)\"?)?\s*$")
_WORTH = re.compile(r"(?:Layout|Shape|Stride|Tiler|Major\w*|tnsp[AB])$")


@dataclass(frozen=True, slots=True)
class Context:
    """Where the user's own line is (file empty = the file of the error), and what was bound."""

    file: str
    line: str
    bindings: tuple[str, ...]


def context(following: Sequence[str]) -> Context | None:
    """Of the lines below an error (up to the first empty one); None if there is none."""
    found: Context | None = None
    for text in following:
        if not text.strip():
            break
        place = _PLACE.search(text[-TAIL:])
        if place is None or not _INSTANTIATION.match(text):
            continue
        bindings = found.bindings if found else bound(text)
        found = Context(place["file"] or "", place["line"], bindings)
    return found


def bound(text: str) -> tuple[str, ...]:
    """The telling template arguments of one instantiation, as CuTe writes them."""
    start = text.find("[with ")
    end = text.rfind("]")
    if start < 0 or end < start or len(text) > LINE_LIMIT:
        return ()
    pairs = (part.strip().partition("=") for part in _split(text[start + 6 : end]))
    telling = [(name, simplified(value)) for name, _, value in pairs if _WORTH.search(name)]
    return tuple(f"{name} = {value[:BINDING_WIDTH]}" for name, value in telling[:BINDINGS])


def simplified(text: str) -> str:
    """``cute::Layout<cute::tuple<cute::C<4>, cute::_1>, ...>`` as ``(4,1):...``."""
    plain = re.sub(r"\b(?:cute|cutlass|SM\d+|GMMA)::", "", text)
    plain = re.sub(r"\bC<(-?\d+)>", r"\1", plain)
    plain = re.sub(r"\b_(\d+)\b", r"\1", plain)
    return _tuples(plain).replace(" ", "")


def _tuples(text: str) -> str:
    """Nested ``tuple<...>`` as parentheses and ``Layout<shape, stride>`` as shape:stride."""
    match = re.search(r"\b(tuple|Layout)<", text)
    if match is None:
        return text
    depth, end = 1, match.end()
    while end < len(text) and depth:
        depth += {"<": 1, ">": -1}.get(text[end], 0)
        end += 1
    if depth:
        return text
    parts = [_tuples(part.strip()) for part in _split(text[match.end() : end - 1])]
    made = ":".join(parts) if match[1] == "Layout" else f"({','.join(parts)})"
    return text[: match.start()] + made + _tuples(text[end:])


def _split(text: str) -> list[str]:
    """At commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in "<([":
            depth += 1
        elif letter in ">)]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
