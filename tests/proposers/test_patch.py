"""SEARCH/REPLACE blocks: what fits, what does not, and what is said about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.proposers.patch import Block, Misfit, apply, find_blocks

SOURCE = "def f(x):\n    y = x + 1\n    return y\n\n\ndef g(x):\n    return x\n"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_blocks_are_found_between_prose_and_fences():
    reply = f"First:\n```python\n{block('a', 'b')}```\nthen\n{block('c', '')}done"
    assert find_blocks(reply) == [Block("a\n", "b\n"), Block("c\n", "\n")]


def test_a_block_without_end_is_named():
    with pytest.raises(Misfit, match="2 SEARCH blocks begin, 1 are complete"):
        find_blocks(block("a", "b") + "<<<<<<< SEARCH\nx\n=======\ny\n")


def test_changes_build_on_each_other():
    blocks = [
        Block("    y = x + 1\n", "    z = x + 1\n"),
        Block("    return y\n", "    return z\n"),
    ]
    assert apply(blocks, SOURCE) == SOURCE.replace("y", "z")


@pytest.mark.parametrize(
    ("search", "replace", "changed"),
    [
        ("    y = x + 1   \n", "    y = x\n", "    y = x\n    return y"),
        ("y = x + 1\nreturn y\n", "y = x\nreturn -y\n", "    y = x\n    return -y\n"),
        ("        return x\n", "        return -x\n", "    return -x\n"),
    ],
)
def test_blanks_and_indentation_are_forgiven(search, replace, changed):
    assert changed in apply([Block(search, replace)], SOURCE)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ("    y = x + 2\n", r"block 1: .*not in the version.*line 2: 'y = x \+ 1'"),
        ("    return", "not in the version"),
        ("def f(x):\n    return x\n", "not in the version"),
        ("\n\n", "SEARCH part is empty"),
        ("something else entirely\n", "Nothing like 'something else entirely'"),
    ],
)
def test_what_does_not_fit_is_explained(search, said):
    with pytest.raises(Misfit, match=said):
        apply([Block(search, "")], SOURCE)


def test_a_place_that_is_not_unique_is_explained():
    with pytest.raises(Misfit, match=r"found 2 times \(lines 1, 3\)"):
        apply([Block("a\n", "b\n")], "a\nc\na\n")


LINES = st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=12),
                 min_size=1, max_size=12)  # fmt: skip


@given(LINES, st.data())
def test_a_verbatim_copy_always_applies_or_is_ambiguous(lines, data):
    source = "\n".join(lines) + "\n"
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    wanted = lines[first : last + 1]
    try:
        result = apply([Block("\n".join(wanted) + "\n", "NEW\n")], source)
    except Misfit as error:
        assert "times" in str(error) or "empty" in str(error)
    else:
        assert result.splitlines() == [*lines[:first], "NEW", *lines[last + 1 :]]


@given(st.text())
def test_any_reply_is_read_or_refused(text):
    try:
        find_blocks(text)
    except Misfit as error:
        assert str(error)
