"""The search decides as the plain rule does: every child weighed anew, the first of equals wins.

It looks at children in order of worth and stops early; that must not show in any decision.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.mcts import Mcts
from kernelpro.search.tree import Node

from .simulate import FAILURES, drive, failed, nothing, ok


class Plain(Mcts):
    """Keeps its own list of children that can be asked, in the order they became so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._live: dict[str | None, dict[str, Node]] = {}

    def tell(self, result: Tell) -> None:
        super().tell(result)
        for name, node in self.tree.nodes.items():
            assert node.parent is not None
            siblings = self._live.setdefault(node.parent.id, {})
            if not node.askable:
                siblings.pop(name, None)
            elif name not in siblings:
                siblings[name] = node

    def _best_child(self, node: Node, log_visits: float) -> tuple[Node | None, float]:
        rules = self.constants
        best, best_score = None, -math.inf
        for child in self._live.get(node.id, {}).values():
            worth = child.total / child.visits
            if rules.backup == "best" and child.successes:
                worth = child.peak
            told = 1 + child.stalled if rules.bonus_counts == "stalled" else child.visits
            n = child.pending + told
            score = worth - rules.virtual_loss * child.pending / n
            score += rules.exploration * math.sqrt(log_visits / n)
            if score > best_score:
                best, best_score = child, score
        return best, best_score


def world(seed: int, failure: float, exhausted: float, ties: bool) -> Callable[[Ask], Tell]:
    """Results of asks, fixed by their numbers; with ``ties``, of very few different speeds."""

    def answer(ask: Ask) -> Tell:
        draw = random.Random(f"{seed}/{ask.id}")
        kind, node_id = draw.random(), f"n{ask.id}"
        if kind < exhausted:
            return nothing(ask.id)
        if kind < exhausted + failure:
            return failed(ask.id, node_id, *draw.choice(FAILURES))
        few = draw.choice((0.5, 1.0, 1.0 + 2**-52, 1.5, 1.5, 2.0))
        return ok(ask.id, node_id, few if ties else draw.lognormvariate(0.2, 0.5))

    return answer


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"preset": "paper"},
        {"preset": "default"},
        {"preset": "default", "backup": "mean", "exploration": 0.2},
        {"preset": "default", "bonus_counts": "visits", "exploration": 0.0, "failed_width": 10.0},
        {"preset": "paper", "backup": "best", "virtual_loss": 0.0, "success_width": 30.0},
    ],
    ids=str,
)
@given(
    seed=st.integers(0, 10_000), steps=st.integers(1, 200), parallel=st.integers(1, 6),
    failure=st.floats(0.0, 0.9), exhausted=st.sampled_from([0.0, 0.05, 0.3]),
)  # fmt: skip
def test_every_decision_is_that_of_the_plain_rule(
    options: dict[str, Any], ties: bool, seed: int, steps: int, parallel: int, failure: float,
    exhausted: float,
) -> None:  # fmt: skip
    answer = world(seed, failure, exhausted, ties)
    order = seed if parallel > 1 else None  # results out of order revive dead ends
    one, other = Mcts(**options), Plain(**options)
    asked = drive(one, answer, steps, parallel=parallel, shuffle=order)
    assert asked == drive(other, answer, steps, parallel=parallel, shuffle=order)
    assert one.best() == other.best()


def test_of_equal_scores_the_first_wins_also_where_a_later_one_is_worth_more() -> None:
    """Worths that differ by less than the sum with the bonus can hold: a tie, not a lead."""
    search = Mcts(preset="default", root_first=3, exploration=100.0, dead_end_children=99)
    for number, status in enumerate((Status.WRONG_RESULT, Status.OK, Status.WRONG_RESULT)):
        (ask,) = search.ask()
        speed = 1.0 + 2**-52 if status is Status.OK else None
        search.tell(Tell(ask_id=ask.id, node_id=f"n{number}", status=status, stage=Stage.DONE,
                         speedup=speed))  # fmt: skip
    root = search.tree.root
    assert [entry[-1].id for entry in root.live.entries] == ["n1", "n0", "n2"]
    child, score = search._best_child(root, math.log(3))
    assert score == 100.0 * math.sqrt(math.log(3)) + 2**-52 == 100.0 * math.sqrt(math.log(3))
    assert child is search.tree.nodes["n0"]
