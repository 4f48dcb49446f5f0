"""Memory merges, retires, and forgets the least used; facts outrank conclusions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.loop.memory import CATEGORY_CHARACTERS, Memory
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome, Stage, Status

from .simulated import accepted, failure

WRONG = failure(Status.WRONG_RESULT, Stage.VERIFY)


def candidate(number: int, move: str | None = "unroll_more", conditions: str = "c") -> Candidate:
    proposal = Proposal(
        source="", mode="optimize", title=f"try {number}", move=move, conditions=conditions
    )
    return Candidate(id=f"n{number}", parent_id="n0", source_hash="", proposal=proposal)


def learn(
    memory: Memory, number: int, outcome: Outcome, *, before: float | None = 1.0,
    move: str | None = "unroll_more", conditions: str = "c",
) -> tuple[MemoryEntry, ...]:  # fmt: skip
    parent = None if before is None else accepted(before, "")
    entries = memory.learn(candidate(number, move, conditions), outcome, parent, None)
    memory.apply(entries)
    return entries


def judgements(memory: Memory) -> list[tuple[str, str | None, str]]:
    return [(e.category, e.move, e.conditions) for e in memory.recall() if e.category != "fact"]


def test_verdicts_on_moves() -> None:
    memory = Memory()
    learn(memory, 1, accepted(1.5, ""), move="a")
    learn(memory, 2, accepted(1.005, ""), move="b")
    learn(memory, 3, accepted(0.7, ""), move="c")
    learn(memory, 4, WRONG, move="d")
    learn(memory, 5, accepted(1.5, ""), before=None, move="e")
    learn(memory, 6, accepted(1.3, "", noise=0.4), move="too noisy to tell")
    assert judgements(memory) == [
        ("pattern", "a", "c"), ("pattern", "e", "c"), ("learning", "b", "c"),
        ("learning", "c", "c"), ("error", "d", "c"),
    ]  # fmt: skip


def test_the_same_verdict_is_merged_and_other_conditions_are_not() -> None:
    memory = Memory()
    first = learn(memory, 1, WRONG)
    again = learn(memory, 2, WRONG)
    assert again[1] == first[1], "the entry is confirmed, not repeated"
    learn(memory, 3, WRONG, conditions="other")
    assert judgements(memory) == [
        ("error", "unroll_more", "c"), ("error", "unroll_more", "other"),
    ]  # fmt: skip
    assert len([e for e in memory.recall() if e.category == "fact"]) == 3


def test_a_new_fact_retires_what_it_contradicts() -> None:
    memory = Memory()
    learn(memory, 1, accepted(1.5, ""))
    entries = learn(memory, 2, WRONG)
    fact = entries[0]
    retired = [e for e in entries if e.retired_by is not None]
    assert [(e.category, e.retired_by) for e in retired] == [("pattern", fact.id)]
    assert judgements(memory) == [("error", "unroll_more", "c")]
    learn(memory, 3, accepted(1.5, ""))
    assert judgements(memory) == [("pattern", "unroll_more", "c")]


def test_conclusions_that_contradict_a_verdict_are_left_out() -> None:
    memory = Memory()
    learn(memory, 1, WRONG)
    claims = [
        MemoryEntry(id=0, category="pattern", text="it works", candidate_id="n1",
                    move="unroll_more", conditions="c"),
        MemoryEntry(id=0, category="pattern", text="new", candidate_id="n1", move="other"),
        MemoryEntry(id=0, category="fact", text="I am the referee", candidate_id="n1"),
        MemoryEntry(id=0, category="file", text="include/cute/tensor.hpp", candidate_id="n1"),
    ]  # fmt: skip
    kept = memory.infer(claims)
    assert [e.text for e in kept] == ["new", "include/cute/tensor.hpp"]
    memory.apply(kept)
    assert len({e.id for e in memory.recall()}) == len(memory.recall())
    assert len(memory.infer(claims * 40)) <= 30


def test_the_oldest_least_used_entry_goes_first() -> None:
    memory = Memory()
    learn(memory, 0, WRONG, move="confirmed")
    learn(memory, 1, WRONG, move="confirmed")
    for number in range(2, 400):
        learn(memory, number, WRONG, move=f"move {number} " + "x" * 60)
    moves = [e.move for e in memory.recall() if e.category == "error"]
    assert moves[0] == "confirmed"
    assert moves[1] != "move 2 " + "x" * 60
    assert moves[-1] == "move 399 " + "x" * 60


events = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y"]),
              st.sampled_from([0.5, 1.0, 1.6, None])),
    max_size=120,
)  # fmt: skip


@given(events, st.integers(0, 120))
def test_replaying_the_entries_rebuilds_the_memory(
    told: list[tuple[str | None, str, float | None]], cut: int
) -> None:
    live, replayed = Memory(), Memory()
    for number, (move, conditions, speedup) in enumerate(told):
        outcome = WRONG if speedup is None else accepted(speedup, "")
        entries = learn(live, number, outcome, move=move, conditions=conditions)
        replayed.apply(entries)
        if number == cut:
            assert replayed.recall() == live.recall()
            assert replayed.learn(candidate(999), WRONG, None, None) == live.learn(
                candidate(999), WRONG, None, None
            )
    recalled = live.recall()
    assert recalled == replayed.recall()
    for category in {e.category for e in recalled}:
        assert sum(len(e.text) for e in recalled if e.category == category) <= CATEGORY_CHARACTERS
    verdicts = [(e.move, e.conditions) for e in recalled if e.move and e.category == "pattern"]
    denied = [(e.move, e.conditions) for e in recalled if e.move and e.category != "pattern"]
    assert not set(verdicts) & set(denied), "no verdict stands beside its opposite"
