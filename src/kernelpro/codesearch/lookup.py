"""Looks up definitions, uses and examples of a symbol by name."""

from __future__ import annotations

import json
import re
import sqlite3

from kernelpro.codesearch.excerpts import cut, stored_lines
from kernelpro.codesearch.indexing import kind_of
from kernelpro.codesearch.ranking import MOST_HITS
from kernelpro.codesearch.records import CodeSymbol, CodeUse, CodeUses
from kernelpro.codesearch.words import match_any
from kernelpro.errors import UserError

_NAME = re.compile(r"(?:::)?(?:[A-Za-z_~]\w*::)*[A-Za-z_~]\w*")
_SHORTEST_PART = 3
"""Characters from which on a name is also looked for inside others."""
_CANDIDATES = 3000
"""Names that are read in full; chosen: CUTLASS defines ``fma`` 2,407 times."""
_USES_PER_FILE = 2
_FILES_READ = 200
"""Files looked into for uses; chosen so that the commonest name stays below 50 ms."""
_CONTEXT, _EXAMPLE_CONTEXT = (2, 3), (6, 14)
"""Lines above and below a use."""
_MAX_EXAMPLE_USES = 5


def find_symbol(db: sqlite3.Connection, name: str, limit: int) -> list[CodeSymbol]:
    """Definitions named ``name`` (``wait``, ``ClusterBarrier::wait``), best first.

    An exact name comes before another case, that before a beginning, that before a part;
    the library before its examples, types before functions. Names of one or two letters must
    match whole. Empty if nothing is like it.
    """
    scope, bare = _split(name)
    _checked_limit(limit)
    low = bare.lower().replace("\\", "").replace("%", r"\%").replace("_", r"\_")
    parts_too = "%" if len(bare) >= _SHORTEST_PART else ""
    # Names come from their index alone; only the likeliest are read and ordered in full.
    rows = db.execute(
        "SELECT s.name, s.scope, s.kind, f.path, s.line, s.signature, s.parameters, s.doc FROM "
        "(SELECT id FROM symbols WHERE lower LIKE ? ESCAPE '\\' "
        "ORDER BY lower <> ?, length(lower) LIMIT ?) c "
        "JOIN symbols s ON s.id = c.id JOIN files f ON f.id = s.file "
        "WHERE ? = '' OR ('::' || s.scope || '::') LIKE ? "
        "ORDER BY s.name <> ?, s.lower <> ?, s.lower NOT LIKE ? ESCAPE '\\', f.kind <> 'code', "
        "s.kind IN ('function', 'macro'), length(s.name), f.path, s.line LIMIT ?",
        (f"{parts_too}{low}{parts_too}", bare.lower(), _CANDIDATES, scope, f"%{scope}::",
         bare, bare.lower(), f"{low}%", limit),
    ).fetchall()  # fmt: skip
    return [
        CodeSymbol(found, where, kind, path, line, signature, tuple(json.loads(parameters)), doc)
        for found, where, kind, path, line, signature, parameters, doc in rows
    ]


def find_usages(db: sqlite3.Connection, name: str, limit: int) -> CodeUses:
    """Lines where ``name`` stands as a whole word and is not defined, few per file."""
    return _uses(db, name, limit, "", _CONTEXT, _USES_PER_FILE)


def examples_of(db: sqlite3.Connection, name: str, limit: int) -> CodeUses:
    """How examples use ``name``: longer excerpts, one per file, shortest files first.

    Falls back to uses in the library where no example has any.
    """
    limit = min(limit, _MAX_EXAMPLE_USES * 2)
    found = _uses(db, name, limit, "example", _EXAMPLE_CONTEXT, 1)
    return found if found.uses else _uses(db, name, limit, "code", _EXAMPLE_CONTEXT, 1)


def _uses(
    db: sqlite3.Connection, name: str, limit: int, kind: str, context: tuple[int, int], each: int
) -> CodeUses:
    _, bare = _split(name)
    _checked_limit(limit)
    files = db.execute(
        "SELECT f.id, f.path FROM files f WHERE f.id IN (SELECT c.file FROM chunk_words w "
        "JOIN chunks c ON c.id = w.rowid WHERE chunk_words MATCH ?) AND (? = '' OR f.kind = ?) "
        "ORDER BY f.kind = 'doc', f.lines, f.path",
        (match_any([bare.lower()]), kind, kind),
    ).fetchall()
    word = re.compile(rf"(?<!\w){re.escape(bare)}(?!\w)")
    uses: list[CodeUse] = []
    for file, path in files[:_FILES_READ]:
        defined = {line for (line,) in db.execute(
            "SELECT line FROM symbols WHERE file = ? AND name = ?", (file, bare))}  # fmt: skip
        uses += _uses_in(path, stored_lines(db, file), word, defined, context)[:each]
        if len(uses) >= limit:
            break
    return CodeUses(bare, len(files), tuple(uses[:limit]))


def _uses_in(
    path: str, lines: list[str], word: re.Pattern[str], defined: set[int], context: tuple[int, int]
) -> list[CodeUse]:
    """Uses of a word outside comments: calls and template arguments before other mentions."""
    above, below = context
    in_code = kind_of(path) != "doc"
    found = []
    for number, line in enumerate(lines, start=1):
        use = word.search(line)
        if not use or any(abs(number - at) <= 8 and at <= number for at in defined):
            continue
        code = line.split("//")[0]
        if in_code and (use.start() >= len(code) or line.lstrip().startswith("*")):
            continue
        after = code[use.end() :].lstrip()[:1]
        rank = 0 if after and after in "(<{:" else 1
        rank += line.lstrip().startswith(("#include", "using"))
        found.append((rank, number))
    uses = []
    for _, number in sorted(found):
        first, last = max(1, number - above), min(len(lines), number + below)
        uses.append(CodeUse(path, number, first, cut(lines[first - 1 : last])))
    return uses


def _split(name: str) -> tuple[str, str]:
    bare = name.strip()
    if not _NAME.fullmatch(bare):
        raise UserError(f"{name!r} is not a name; give one like SM90_TMA_LOAD or "
                        "ClusterBarrier::wait")  # fmt: skip
    scope, _, last = bare.rpartition("::")
    return scope.strip(":"), last


def _checked_limit(limit: int) -> None:
    if not 1 <= limit <= MOST_HITS:
        raise UserError(f"limit must be 1 to {MOST_HITS}, not {limit}")
