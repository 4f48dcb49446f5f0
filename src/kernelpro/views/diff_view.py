"""Line differences of two sources, numbered on both sides."""

from __future__ import annotations

import difflib
from typing import Literal, NamedTuple


class DiffLine(NamedTuple):
    """One line. ``skip`` stands for unchanged lines that are not shown."""

    kind: Literal["same", "add", "remove", "skip"]
    old: int | None
    new: int | None
    text: str


class DiffView(NamedTuple):
    """The lines of a unified difference and their counts."""

    lines: tuple[DiffLine, ...]
    added: int
    removed: int


def diff_view(old: str, new: str, *, context: int = 3) -> DiffView:
    """What turns ``old`` into ``new``, with ``context`` unchanged lines around each change."""
    before, after = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    lines: list[DiffLine] = []
    shown = 0
    for group in matcher.get_grouped_opcodes(context):
        start = group[0][3]
        if start > shown:
            lines.append(DiffLine("skip", None, None, f"{start - shown} unchanged lines"))
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                lines += [DiffLine("same", a0 + k + 1, b0 + k + 1, before[a0 + k])
                          for k in range(a1 - a0)]  # fmt: skip
                continue
            lines += [DiffLine("remove", k + 1, None, before[k]) for k in range(a0, a1)]
            lines += [DiffLine("add", None, k + 1, after[k]) for k in range(b0, b1)]
        shown = group[-1][4]
    if lines and shown < len(after):
        lines.append(DiffLine("skip", None, None, f"{len(after) - shown} unchanged lines"))
    return DiffView(
        lines=tuple(lines),
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "remove" for line in lines),
    )
