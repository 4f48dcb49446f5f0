"""An identifier is found whole and by its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.codesearch.words import index_words, parts, question_words, without_license


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("SM90_TMA_LOAD", ("sm90_tma_load", "sm90", "tma", "load")),
        ("KernelTmaWarp", ("kerneltmawarp", "kernel", "tma", "warp")),
        ("CuTe", ("cute",)),
        ("Sm90RowBroadcast", ("sm90rowbroadcast", "sm90", "row", "broadcast")),
    ],
)
def test_parts(identifier, expected):
    assert parts(identifier) == expected


def test_questions_lose_words_without_meaning_and_gain_what_the_library_says():
    assert question_words("How do I use wgmma on Hopper?") == ("wgmma", "hopper", "gmma", "sm90")


def test_a_licence_is_not_indexed_and_lines_keep_their_numbers(tree):
    text = (tree / "include/toy/swizzle.hpp").read_text()
    bare = without_license(text)
    assert bare.count("\n") == text.count("\n") and "Redistribution" not in bare
    assert without_license("// first comment\nint x;\n") == "// first comment\nint x;\n"


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,30}", fullmatch=True))
def test_the_whole_identifier_is_always_a_word(identifier):
    assert index_words(identifier).split(" ")[0] == identifier.lower()
