"""Splits code and questions into the words that are indexed and looked up.

An identifier counts whole and in parts: ``SM90_TMA_LOAD`` is found by itself and by ``tma load``,
``KernelTmaWarpSpecialized`` by ``warp specialized``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
_LICENSE = re.compile(r"\A\s*(?:/\*.*?\*/|(?://[^\n]*\n)+|(?:#[^\n]*\n)+)", re.S)

_NO_MEANING = """
    a an and are as at be before between by can do does each every exist for from has have how
    i if in into is it its itself of on one or so some that the their them then there they this
    to two until up use used using want what when where which while who why will with without
    you your minus per
"""
STOP_WORDS = frozenset(_NO_MEANING.split())
"""Words of questions that carry no meaning in code."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "wgmma": ("gmma",),
    "gmma": ("wgmma",),
    "hopper": ("sm90",),
    "blackwell": ("sm100",),
    "ampere": ("sm80",),
    "volta": ("sm70",),
    "turing": ("sm75",),
    "ada": ("sm89",),
    "smem": ("shared", "memory"),
    "gmem": ("global", "memory"),
    "tmem": ("tensor", "memory"),
    "attention": ("fmha",),
    "moe": ("grouped",),
    "bf16": ("bfloat16",),
    "persistent": ("tile", "scheduler"),
}
"""What CUTLASS calls what writers call otherwise; each added word counts as one more term."""


@functools.lru_cache(maxsize=1 << 18)
def parts(identifier: str) -> tuple[str, ...]:
    """The lower-case identifier, its pieces between underscores, and their parts by case.

    Parts by case of one or two letters are left out: ``CuTe`` is not ``cu`` and ``te``.
    """
    pieces = [piece for piece in identifier.split("_") if piece]
    by_case = [part for piece in pieces for part in _PART.findall(piece) if len(part) > 2]
    return tuple(dict.fromkeys(word.lower() for word in (identifier, *pieces, *by_case)))


def index_words(text: str) -> str:
    """``text`` as the space-separated words that go into the index."""
    return " ".join([word for name in _IDENTIFIER.findall(text) for word in parts(name)])


def question_words(question: str) -> tuple[str, ...]:
    """The words of a question to look up, without stop words, with synonyms, in order."""
    words = [word for name in _IDENTIFIER.findall(question) for word in parts(name)]
    kept = [word for word in words if word not in STOP_WORDS and len(word) > 1]
    extra = [other for word in kept for other in SYNONYMS.get(word, ())]
    return tuple(dict.fromkeys([*kept, *extra]))


def joined_words(question: str) -> tuple[str, ...]:
    """Neighbouring words as one: libraries write ``splitk`` and ``rmsnorm``."""
    words = [word.lower() for word in _IDENTIFIER.findall(question)]
    pairs = (one + other for one, other in itertools.pairwise(words))
    return tuple(dict.fromkeys(pair for pair in pairs if len(pair) > 4))


def match_any(words: Iterable[str]) -> str:
    """An FTS5 query for any of ``words``; quoted, so that none is an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def without_license(text: str) -> str:
    """``text`` with a licence at its head blanked out; every line keeps its number."""
    head = _LICENSE.match(text)
    if not head or not re.search(r"copyright|license", head[0], re.I):
        return text
    return "\n" * head[0].count("\n") + text[head.end() :]
