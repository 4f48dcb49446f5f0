"""Cuts the lines that matter out of a file, and reads line ranges for ``read_code``."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from kernelpro.codesearch.indexing import stored_text
from kernelpro.codesearch.records import CodeExcerpt
from kernelpro.codesearch.words import parts
from kernelpro.errors import UserError

EXCERPT_LINES = 16
"""Chosen: five hits of this size stay around 5,000 characters."""
MAX_LINE = 200
"""Characters of a line in an excerpt; generated headers have lines of thousands."""
MAX_READ_LINES = 400
DEFAULT_READ_LINES = 120
_RANGE = re.compile(r"\s*(\d+)\s*(?:[-:,]\s*(\d+)\s*)?")


def stored_lines(db: sqlite3.Connection, file: int) -> list[str]:
    """The lines of an indexed file."""
    found = db.execute("SELECT text FROM files WHERE id = ?", (file,)).fetchone()
    return stored_text(found[0]).split("\n")


def excerpt_around(
    lines: Sequence[str], span: tuple[int, int], weights: Mapping[str, float]
) -> tuple[int, int, str]:
    """(First line, last line, text) of the window in ``span`` with the most of ``weights``.

    ``weights`` maps word stems to how much they say; a word counts once per window.
    """
    first, last = span
    found = [_stems(lines[number - 1]) & weights.keys() for number in range(first, last + 1)]
    best, best_score = first, -1.0
    for start in range(first, max(first, last - EXCERPT_LINES + 1) + 1):
        window = found[start - first : start - first + EXCERPT_LINES]
        score = sum(weights[word] for word in set().union(*window))
        score += 0.01 * sum(len(words) for words in window)
        if score > best_score:
            best, best_score = start, score
    end = min(best + EXCERPT_LINES - 1, last)
    return best, end, cut(lines[best - 1 : end])


def cut(lines: Sequence[str]) -> str:
    """Lines joined, each at most ``MAX_LINE`` characters."""
    return "\n".join(
        line.rstrip() if len(line) <= MAX_LINE else line[: MAX_LINE - 4] + " ..." for line in lines
    )


def stem(word: str) -> str:
    """A crude stem to mark matching lines; ranking uses the index's Porter stemmer."""
    return re.sub(r"(?:ations?|ings?|ers?|ed|es|s|e)$", "", word) if len(word) > 4 else word


def read_code(
    db: sqlite3.Connection, root: Path, path: str, lines: str | tuple[int, int] | None
) -> CodeExcerpt:
    """Lines of an indexed file; ``lines`` is ``120``, ``120-180`` or (120, 180).

    Only files of the index can be read, so that no path leads out of the root. ``UserError`` if
    the file is not in it (with the closest names) or the range is not in the file.
    """
    name = _indexed_name(root, path)
    found = db.execute("SELECT id, lines FROM files WHERE path = ?", (name,)).fetchone()
    if not found:
        raise UserError(f"{path!r} is not in the index of {root}." + _closest(db, name))
    content = stored_lines(db, int(found[0]))
    first, last = _line_range(lines, len(content), name)
    return CodeExcerpt(name, first, last, len(content), cut(content[first - 1 : last]))


def _indexed_name(root: Path, path: str) -> str:
    given = Path(path)
    if given.is_absolute() and given.is_relative_to(root):
        given = given.relative_to(root)
    if given.is_absolute() or ".." in PurePosixPath(path).parts:
        raise UserError(f"{path!r} is outside the code root {root}; give a path below it, as "
                        "search_code answers it")  # fmt: skip
    return given.as_posix()


def _closest(db: sqlite3.Connection, name: str) -> str:
    known = [path for (path,) in db.execute("SELECT path FROM files")]
    last = PurePosixPath(name).name
    same = [path for path in known if PurePosixPath(path).name == last]
    close = same or difflib.get_close_matches(name, known, n=3, cutoff=0.75)
    return f" Did you mean {' or '.join(close[:3])}?" if close else " See: kernelpro code search"


def _line_range(lines: str | tuple[int, int] | None, total: int, name: str) -> tuple[int, int]:
    if lines is None:
        return 1, min(total, DEFAULT_READ_LINES)
    if isinstance(lines, str):
        match = _RANGE.fullmatch(lines)
        if not match:
            raise UserError(f"lines must be like 120 or 120-180, not {lines!r}")
        first = int(match[1])
        last = int(match[2]) if match[2] else first + DEFAULT_READ_LINES - 1
    else:
        first, last = lines
    if not 1 <= first <= last or first > total:
        raise UserError(f"{name} has lines 1 to {total}; {first}-{last} is not among them")
    return first, min(last, total, first + MAX_READ_LINES - 1)


def _stems(line: str) -> set[str]:
    return {stem(word) for name in re.findall(r"\w+", line) for word in parts(name)}
