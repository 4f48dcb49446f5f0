"""Whether a built kernel really uses the instructions its source asks for. Pure.

A source that names ``wgmma`` or TMA proves nothing: a dead branch is dropped, a fallback taken. The
SASS does: Hopper spells warpgroup products ``HGMMA`` (``QGMMA`` for fp8, ``IGMMA`` for integers),
tensor copies ``UTMALDG`` and ``UTMASTG``, register hand-over ``USETMAXREG``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unused:
    """Something a source asks for that its machine code does not do."""

    what: str
    opcodes: tuple[str, ...]
    """Any of these would have shown it."""


_EXPECTED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"\bwgmma\.mma_async|\bSM90_\d+x\d+x\d+_\w+_[SR]S\w*", "warpgroup products (wgmma)",
     ("HGMMA", "IGMMA", "QGMMA")),
    (r"cp\.async\.bulk\.tensor[^;]*?shared::cluster\.global|\bSM90_TMA_LOAD",
     "tensor copies into shared memory (TMA)", ("UTMALDG",)),
    (r"cp\.async\.bulk\.tensor[^;]*?global\.shared::cta|\bSM90_TMA_STORE",
     "tensor copies out of shared memory (TMA)", ("UTMASTG",)),
    (r"\bsetmaxnreg\.|\bwarpgroup_reg_(?:de)?alloc", "register hand-over (setmaxnreg)",
     ("USETMAXREG",)),
)  # fmt: skip
"""(pattern of a source, what it asks for, opcodes that show it happened)."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def unused(source: str, stems: Collection[str]) -> tuple[Unused, ...]:
    """What ``source`` asks for and none of ``stems`` (opcodes up to the first dot) does."""
    plain = _COMMENT.sub(" ", source)
    return tuple(
        Unused(what, opcodes)
        for pattern, what, opcodes in _EXPECTED
        if re.search(pattern, plain) and not set(opcodes) & set(stems)
    )
