"""What code search answers with. Sized for a prompt: excerpts, never whole files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HitKind = Literal["any", "code", "example", "doc", "symbol"]
"""``code``: headers and sources; ``example``: files under an example or test folder; ``doc``:
Markdown and text; ``symbol``: only where a definition matches; ``any``: all of these."""

SymbolKind = Literal["struct", "class", "union", "enum", "function", "kernel", "macro", "alias",
                     "concept"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeHit:
    """One file that answers a question, with the lines that match best."""

    path: str
    """Relative to the root, with forward slashes; what ``read_code`` takes."""
    first_line: int
    last_line: int
    score: float
    """Sum of BM25 scores (higher is better); comparable within one answer only."""
    kind: Literal["code", "example", "doc"]
    symbols: tuple[str, ...]
    """Definitions in or around the excerpt that share words with the question."""
    text: str


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Lines of one file."""

    path: str
    first_line: int
    last_line: int
    lines_in_file: int
    text: str


@dataclass(frozen=True, slots=True)
class CodeSymbol:
    """One definition with its documentation."""

    name: str
    scope: str
    """Enclosing namespaces and classes, ``cutlass::arch``; empty at file scope."""
    kind: SymbolKind
    path: str
    line: int
    signature: str
    template_parameters: tuple[str, ...]
    """``typename Element - the comment beside it``, in order."""
    doc: str


@dataclass(frozen=True, slots=True)
class CodeUse:
    """Where a symbol is used, with the lines around it."""

    path: str
    line: int
    first_line: int
    text: str


@dataclass(frozen=True, slots=True)
class CodeUses:
    """Uses of a symbol, spread over files, and how many files there are in all."""

    name: str
    files: int
    uses: tuple[CodeUse, ...]


@dataclass(frozen=True, slots=True)
class CodeIndexState:
    """What an index holds and what it left out."""

    root: str
    database: str
    files: int
    symbols: int
    lines: int
    changed: int
    """Files read anew by the refresh that made this record."""
    removed: int
    seconds: float
    skipped: tuple[tuple[str, str], ...]
    """(path, reason) of what was left out, the first fifty."""
    skipped_files: int
