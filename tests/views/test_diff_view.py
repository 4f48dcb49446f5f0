"""A difference must rebuild both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.views.diff_view import diff_view

texts = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), max_size=30).map("\n".join)


@given(old=texts, new=texts)
def test_with_all_context_both_sides_can_be_rebuilt(old, new):
    view = diff_view(old, new, context=10_000)
    if not view.lines:
        assert old.splitlines() == new.splitlines()
        return
    assert [li.text for li in view.lines if li.kind != "add"] == old.splitlines()
    assert [li.text for li in view.lines if li.kind != "remove"] == new.splitlines()


@given(old=texts, new=texts)
def test_line_numbers_point_at_the_lines(old, new):
    for line in diff_view(old, new).lines:
        if line.old is not None:
            assert old.splitlines()[line.old - 1] == line.text
        if line.new is not None:
            assert new.splitlines()[line.new - 1] == line.text


def test_skips_are_counted():
    old = "\n".join(map(str, range(100)))
    view = diff_view(old, old.replace("50", "fifty"))
    assert [line.text for line in view.lines if line.kind == "skip"] == [
        "47 unchanged lines", "46 unchanged lines",
    ]  # fmt: skip
    assert (view.added, view.removed) == (1, 1)
