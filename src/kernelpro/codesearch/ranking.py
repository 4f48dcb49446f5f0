"""Ranks files for a question: BM25 of the best piece plus BM25 of the path."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import get_args

from kernelpro.codesearch.excerpts import excerpt_around, stem, stored_lines
from kernelpro.codesearch.records import CodeHit, HitKind
from kernelpro.codesearch.words import joined_words, match_any, parts, question_words
from kernelpro.errors import UserError

MOST_HITS = 50
_ROWS = 1000
"""Pieces that are looked at; chosen: the answer of every tuning question is far above."""
COMMON_SHARE = 0.3
"""A word in more pieces than this says little and costs most of a query's time; left out of
bodies (not of paths) while two rarer words remain. Chosen on the tuning questions."""
KIND_WEIGHT = {"code": 1.0, "example": 0.9, "doc": 0.8}
"""Chosen: a question is more often about the library than about an example that uses it."""
ALIKE, ALIKE_WEIGHT = 0.6, 0.85
"""File names that share this much are variants of one another, and what a further one is worth.
Chosen on the questions of ``benchmarks/codesearch``."""
_CONTENDERS = 40
_Ranked = tuple[float, str, int, str]
"""Score, path, file number, kind."""
_ASKS_FOR_EXAMPLE = re.compile(r"\b(?:examples?|tutorial|sample|demo)\b", re.I)
EXAMPLE_WEIGHT_IF_ASKED = 1.2


@dataclass(frozen=True, slots=True)
class _Question:
    words: tuple[str, ...]
    body_words: tuple[str, ...]
    weights: dict[str, float]
    """Stem of a word -> inverse document frequency."""


def search(db: sqlite3.Connection, query: str, kind: HitKind, limit: int) -> list[CodeHit]:
    """At most ``limit`` files, best first, each with the lines that match best.

    ``UserError`` for an unknown kind, a limit out of range or a query without a word.
    """
    if kind not in get_args(HitKind):
        raise UserError(f"kind must be one of {', '.join(get_args(HitKind))}, not {kind!r}")
    if not 1 <= limit <= MOST_HITS:
        raise UserError(f"limit must be 1 to {MOST_HITS}, not {limit}")
    question = _question(db, query)
    if kind == "symbol":
        return _symbol_hits(db, question, limit)
    scores, chunk_of = _file_scores(db, question)
    weight = dict(KIND_WEIGHT)
    if _ASKS_FOR_EXAMPLE.search(query):
        weight["example"] = EXAMPLE_WEIGHT_IF_ASKED
    known = db.execute(
        f"SELECT id, path, kind FROM files WHERE id IN ({','.join(map(str, scores))})"
    ).fetchall()
    ranked = sorted(
        ((scores[file] * weight[its_kind], path, file, its_kind) for file, path, its_kind in known
         if kind in ("any", its_kind)),
        key=lambda item: (-item[0], item[1]),
    )  # fmt: skip
    return [
        _hit(db, question, file, path, its_kind, score, chunk_of.get(file))
        for score, path, file, its_kind in _spread(ranked[:_CONTENDERS], limit)
    ]


def _spread(ranked: list[_Ranked], limit: int) -> list[_Ranked]:
    """The best ``limit``, each chosen after files like those already chosen were marked down:
    five variants of one kernel answer no more than one does."""
    left = [(item[0], item, name_parts(item[1])) for item in ranked]
    chosen: list[_Ranked] = []
    while left and len(chosen) < limit:
        best = max(left, key=lambda entry: entry[0])
        left.remove(best)
        chosen.append(best[1])
        left = [
            (score * (ALIKE_WEIGHT if alike(name, best[2]) >= ALIKE else 1.0), item, name)
            for score, item, name in left
        ]
    return chosen


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Words that two file names share, over those of both."""
    return len(one & other) / max(1, len(one | other))


def name_parts(path: str) -> frozenset[str]:
    """Words of a file's name without its suffix."""
    return frozenset(parts(PurePosixPath(path).stem)[1:])


def _question(db: sqlite3.Connection, query: str) -> _Question:
    words = question_words(query)
    words += tuple(w for w in joined_words(query) if w not in words and _in_paths(db, w))
    if not words:
        raise UserError(f"The query {query!r} has no word to look for; name what you want to do, "
                        "an instruction or a type")  # fmt: skip
    total = max(1, int(db.execute("SELECT count(*) FROM chunks").fetchone()[0]))
    counts = {word: _count(db, word) for word in words}
    rare = tuple(word for word in words if counts[word] <= COMMON_SHARE * total)
    weights = {stem(w): math.log(1 + total / (1 + count)) for w, count in counts.items()}
    return _Question(words, rare if len(rare) >= 2 else words, weights)


def _in_paths(db: sqlite3.Connection, word: str) -> bool:
    """True if the word stands in the name of a file: "warp specialized" is then one word."""
    found = db.execute("SELECT 1 FROM path_words WHERE path_words MATCH ? LIMIT 1",
                       (match_any([word]),))  # fmt: skip
    return found.fetchone() is not None


def _count(db: sqlite3.Connection, word: str) -> int:
    found = db.execute("SELECT count(*) FROM chunk_words WHERE chunk_words MATCH ?",
                       (match_any([word]),))  # fmt: skip
    return int(found.fetchone()[0])


def _file_scores(
    db: sqlite3.Connection, question: _Question
) -> tuple[dict[int, float], dict[int, int]]:
    """File -> summed score, and file -> its best piece."""
    pieces = db.execute(
        "SELECT c.file, c.id, -w.score FROM (SELECT rowid AS id, bm25(chunk_words) AS score "
        "FROM chunk_words WHERE chunk_words MATCH ? ORDER BY score LIMIT ?) w "
        "JOIN chunks c ON c.id = w.id",
        (match_any(question.body_words), _ROWS),
    ).fetchall()
    scores: dict[int, float] = {}
    chunk_of: dict[int, int] = {}
    for file, chunk, score in pieces:
        if score > scores.get(file, 0.0):
            scores[file], chunk_of[file] = score, chunk
    paths = db.execute(
        "SELECT rowid, -bm25(path_words) FROM path_words WHERE path_words MATCH ?",
        (match_any(question.words),),
    )
    for file, score in paths:
        scores[file] = scores.get(file, 0.0) + score
    return scores, chunk_of


def _hit(
    db: sqlite3.Connection, question: _Question, file: int, path: str, kind: str, score: float,
    chunk: int | None,
) -> CodeHit:  # fmt: skip
    lines = stored_lines(db, file)
    span = (1, len(lines))
    if chunk is not None:
        span = db.execute("SELECT first_line, last_line FROM chunks WHERE id = ?",
                          (chunk,)).fetchone()  # fmt: skip
    first, last, text = excerpt_around(lines, span, question.weights)
    symbols = db.execute(
        "SELECT DISTINCT name FROM symbols WHERE file = ? AND line BETWEEN ? AND ? ORDER BY line",
        (file, *span),
    ).fetchall()
    named = [name for (name,) in symbols if _shares_a_word(name, question.words)]
    return CodeHit(path, first, last, round(score, 3), kind, tuple(named[:6]), text)  # type: ignore[arg-type]


def _shares_a_word(name: str, words: Sequence[str]) -> bool:
    low = name.lower()
    return any(word in low for word in words)


def _symbol_hits(db: sqlite3.Connection, question: _Question, limit: int) -> list[CodeHit]:
    """Definitions whose name or documentation matches, one hit per file."""
    rows = db.execute(
        "SELECT f.id, f.path, f.kind, s.line, s.name, -w.score FROM "
        "(SELECT rowid AS id, bm25(symbol_words) AS score FROM symbol_words "
        "WHERE symbol_words MATCH ? ORDER BY score LIMIT ?) w "
        "JOIN symbols s ON s.id = w.id JOIN files f ON f.id = s.file ORDER BY w.score, f.path",
        (match_any(question.words), _ROWS),
    ).fetchall()
    hits: dict[int, CodeHit] = {}
    for file, path, kind, line, name, score in rows:
        if file not in hits and len(hits) < limit:
            lines = stored_lines(db, file)
            span = (line, min(line + 15, len(lines)))
            first, last, text = excerpt_around(lines, span, question.weights)
            hits[file] = CodeHit(path, first, last, round(score, 3), kind, (name,), text)
    return list(hits.values())
