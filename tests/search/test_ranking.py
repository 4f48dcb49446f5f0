"""A ranking is always the stable sort of what is in it by worth."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.search.ranking import Entry, Ranking

worths = st.sampled_from([0.0, -0.0, 0.5, 0.5 + 2**-53, -3.0, 1e300])
actions = st.lists(
    st.tuples(st.sampled_from(["add", "move", "drop"]), st.integers(0, 50), worths), max_size=80
)


@given(actions)
def test_best_first_and_equals_in_the_order_of_joining(
    done: list[tuple[str, int, float]],
) -> None:
    ranking: Ranking[int] = Ranking()
    entries: dict[int, Entry[int]] = {}
    joined: dict[int, float] = {}  # worth by item, in the order of joining
    for action, pick, worth in done:
        if action == "add":
            item = len(entries) + 1000 * pick
            if item not in entries:
                entries[item] = ranking.add(item, worth)
                joined[item] = worth
        elif entries:
            item = list(entries)[pick % len(entries)]
            if action == "move":
                entries[item] = ranking.move(entries[item], worth)
                joined[item] = worth
            else:
                ranking.drop(entries.pop(item))
                del joined[item]
        assert [e[-1] for e in ranking.entries] == sorted(joined, key=lambda i: -joined[i])
        assert len(ranking) == len(joined)


def test_who_comes_back_joins_last() -> None:
    ranking: Ranking[str] = Ranking()
    first = ranking.add("a", 1.0)
    ranking.add("b", 1.0)
    ranking.drop(first)
    ranking.add("a", 1.0)
    assert [e[-1] for e in ranking.entries] == ["b", "a"]
