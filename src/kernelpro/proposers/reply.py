"""Reads a coder's reply: what real models write, turned into one candidate file.

Accepts fences of any length and language, prose around them, several blocks, patches against the
version that was shown, bare sources with a launch record, and forgotten imports. What it cannot
use it says exactly, in words for the model.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import NamedTuple

from kernelpro.build.checks import ENTRY
from kernelpro.build.wrap import has_record, wrap
from kernelpro.errors import UserError
from kernelpro.proposers import patch

_FENCE = re.compile(
    r"^(?P<fence>[ \t]*(?:`{3,}|~{3,}))[ \t]*(?P<info>[^\n`]*)\n(?P<body>.*?)"
    r"(?:^(?P=fence)[ \t]*$|\Z)",
    re.M | re.S,
)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.S | re.I)
_HEADER = re.compile(r"^[ \t>*#_`-]*(title|answers|move)[ \t*_`]*:[ \t*_`]*(.+?)[ \t*_`]*$",
                     re.I | re.M)  # fmt: skip
IMPORTS = {
    "torch": "import torch",
    "nn": "import torch.nn as nn",
    "F": "import torch.nn.functional as F",
    "inline": "from kernelpro import inline",
    "math": "import math",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "np": "import numpy as np",
}
"""What a name means that a file uses and does not define."""
_TITLE_LIMIT = 100


class Answer(NamedTuple):
    """A usable reply."""

    source: str
    title: str
    rationale: str
    answers: tuple[str, ...]
    """Names of tools it says it acted on, unchecked."""
    move: str | None


class Unusable(Exception):
    """A reply that holds no candidate; the message tells the model what to do about it."""


def read_reply(text: str, parent_source: str | None, *, cut_off: bool = False) -> Answer:
    """The candidate in a reply. ``parent_source``: the version that patches refer to.

    ``cut_off``: the model stopped at its token limit. Raises :class:`Unusable`.
    """
    text = _THOUGHTS.sub("", text.replace("\r\n", "\n"))
    source = _patched(text, parent_source) or _whole(text, cut_off=cut_off)
    return headers_of(_prose(text))._replace(source=source, rationale=_rationale(text))


def headers_of(text: str) -> Answer:
    """What the lines ``Title:``, ``Answers:`` and ``Move:`` in ``text`` say, the first of each."""
    headers = {m[1].lower(): m[2].strip() for m in reversed(list(_HEADER.finditer(text)))}
    named = re.split(r"[,;]\s*", headers.get("answers", ""))
    move = headers.get("move", "").strip("`* .").lower().replace(" ", "_").replace("-", "_")
    return Answer(
        source="",
        title=" ".join(headers.get("title", "").split())[:_TITLE_LIMIT],
        rationale="",
        answers=tuple(n.strip("`* .").lower() for n in named if n and n.lower() != "none"),
        move=None if move in ("", "none") else move,
    )


def _patched(text: str, parent_source: str | None) -> str | None:
    """The patched version, if the reply is a patch."""
    try:
        blocks = patch.find_blocks(text)
        if not blocks:
            return None
        if parent_source is None:
            raise Unusable(
                "it has SEARCH/REPLACE blocks, but no version was given to change. Write the "
                "whole file"
            )
        return _complete(patch.apply(blocks, parent_source))
    except patch.Misfit as error:
        raise Unusable(f"{error}. Correct the blocks, or write the whole file") from None


def _whole(text: str, *, cut_off: bool) -> str:
    """The file in the reply's code block, or the reply itself if it is nothing but code."""
    blocks = [(m["info"].strip().lower(), m["body"]) for m in _FENCE.finditer(text)]
    bodies = [body for _, body in blocks] or [text]
    entries = [body for body in bodies if re.search(rf"^\s*class\s+{ENTRY}\b", body, re.M)]
    if entries:
        if cut_off and text.rstrip().endswith(entries[-1].rstrip()):
            raise Unusable(
                "it was cut off at the token limit before the code ended. Write less prose, or "
                "only the lines that change"
            )
        return _checked(_complete(_joined(entries[-1], bodies)))
    if recorded := [body for body in bodies if has_record(body)]:
        return _wrapped(recorded[-1])
    if cut_off:
        raise Unusable(
            "it was cut off at the token limit before any code ended. Write less prose and "
            "shorter code"
        )
    if not blocks:
        raise Unusable(f"it has no code block. Write the whole file with class {ENTRY} in one")
    kinds = ", ".join(info or "no language" for info, _ in blocks)
    raise Unusable(
        f"none of its {len(blocks)} code blocks ({kinds}) defines class {ENTRY}. Write one "
        "block that begins with ```python and holds the whole file"
    )


def _joined(entry: str, bodies: list[str]) -> str:
    """``entry`` after the Python blocks it depends on, where a model split one file in several."""
    if not _undefined(entry) - IMPORTS.keys():
        return entry
    before = [b for b in bodies[: bodies.index(entry)] if b is not entry and _parses(b)]
    joined = "\n\n".join([*before, entry])
    return joined if before and not _undefined(joined) - IMPORTS.keys() else entry


def _wrapped(source: str) -> str:
    try:
        return wrap(source, "cuda" if "__global__" in source else "cpp")
    except UserError as error:
        raise Unusable(f"its launch record cannot be used: {error}") from None


def _checked(source: str) -> str:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError) as error:
        at = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise Unusable(f"the code is not valid Python ({at}{said})") from None
    return source


def _complete(source: str) -> str:
    """``source`` with the imports that it forgot, after a docstring and ``__future__`` lines."""
    source = source.strip("\n") + "\n"
    missing = [IMPORTS[name] for name in IMPORTS if name in _undefined(source)]
    if not missing:
        return source
    lines = source.splitlines()
    at = _first_statement(source)
    return "\n".join([*lines[:at], *missing, *lines[at:]]) + "\n"


def _first_statement(source: str) -> int:
    """How many leading lines must stay first."""
    at = 0
    for node in ast.parse(source).body:
        string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not string and not future:
            break
        at = node.end_lineno or at
    return at


def _undefined(source: str) -> set[str]:
    """Names that are read somewhere and bound nowhere in the file; empty if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return read - bound - set(dir(builtins)) - {"__file__"}


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _prose(text: str) -> str:
    """The reply without its code."""
    return _FENCE.sub("", re.sub(r"(?ms)^[ \t]*<{5,9}[ \t]*SEARCH.*?>{5,9}[ \t]*REPLACE", "", text))


def _rationale(text: str) -> str:
    words = " ".join(_HEADER.sub("", _prose(text)).split())
    return words[:1000]
