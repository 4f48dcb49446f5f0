"""Code search over a header tree: CUTLASS by default, any folder on request.

``root`` None means ``KERNELPRO_CODE_ROOT``, else the tree that ``inline.cuda`` compiles against.
An index is made on first use (seconds) and kept in the cache.
"""

from __future__ import annotations

import functools
from pathlib import Path

from kernelpro import environ
from kernelpro.codesearch.index import CodeIndex
from kernelpro.codesearch.records import (
    CodeExcerpt,
    CodeHit,
    CodeIndexState,
    CodeSymbol,
    CodeUses,
    HitKind,
)
from kernelpro.errors import UserError


def index_code(*, root: Path | str | None = None) -> CodeIndexState:
    """Build or update the index now; what it holds, and what was left out and why."""
    return _index(root).refresh()


def search_code(
    query: str, kind: HitKind = "any", limit: int = 5, *, root: Path | str | None = None
) -> list[CodeHit]:
    """Files that answer ``query``, best first, each with its best matching lines.

    ``kind``: ``any``, ``code``, ``example``, ``doc``, or ``symbol`` (definitions only).
    ``UserError`` for a bad root, kind, limit, or a query without words.
    """
    return _index(root).search(query, kind, limit)


def read_code(
    path: str, lines: str | tuple[int, int] | None = None, *, root: Path | str | None = None
) -> CodeExcerpt:
    """Lines of an indexed file (``120-180``, ``120`` or (120, 180); default its head).

    ``UserError`` if the file is not in the index, or the range not in the file.
    """
    return _index(root).read(path, lines)


def find_symbol(name: str, limit: int = 10, *, root: Path | str | None = None) -> list[CodeSymbol]:
    """Definitions of a type, function, macro or alias, with documentation; ``A::b`` narrows."""
    return _index(root).symbol(name, limit)


def find_usages(name: str, limit: int = 10, *, root: Path | str | None = None) -> CodeUses:
    """Where ``name`` is used outside its definitions, spread over files."""
    return _index(root).usages(name, limit)


def examples_of(symbol: str, limit: int = 3, *, root: Path | str | None = None) -> CodeUses:
    """How example programs use ``symbol``, with the lines around each use."""
    return _index(root).examples(symbol, limit)


def _index(root: Path | str | None) -> CodeIndex:
    return _opened(code_root(root), environ.cache_root())


@functools.lru_cache(maxsize=8)
def _opened(root: Path, cache_root: Path) -> CodeIndex:
    return CodeIndex(root, cache_root)


def code_root(root: Path | str | None) -> Path:
    """The tree that a ``root`` given or left out means; ``UserError`` if there is none."""
    chosen = Path(root) if root is not None else environ.code_root()
    if chosen is not None:
        return chosen.expanduser().absolute()
    from kernelpro.inline import nvcc

    found = nvcc.find_cutlass()
    if found is None:
        raise UserError("There is no tree to search: CUTLASS is not installed. Install it with "
                        "pip install --no-deps nvidia-cutlass, or name a folder of headers with "
                        "--code-root or KERNELPRO_CODE_ROOT")  # fmt: skip
    return found
