"""The tree search keeps its books, respects the gate, and gives up dead ends."""

from __future__ import annotations

import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.errors import UserError
from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Tell
from kernelpro.search.mcts import Mcts
from kernelpro.search.tree import Node

from .simulate import Record, drive, failed, make, nothing, ok, random_world

worlds = st.tuples(
    st.integers(0, 10_000), st.integers(1, 150), st.integers(1, 6), st.floats(0.0, 0.95)
)


def mcts(**options: object) -> Mcts:
    return cast(Mcts, make("mcts", **{"preset": "paper", **options}))


def children_of(search: Mcts) -> dict[str | None, list[Node]]:
    children: dict[str | None, list[Node]] = {None: []}
    for node in search.tree.nodes.values():
        assert node.parent is not None
        children.setdefault(node.parent.id, []).append(node)
        children.setdefault(node.id, [])
    return children


@given(worlds)
def test_visits_rewards_and_pending_add_up(world: tuple[int, int, int, float]) -> None:
    seed, steps, parallel, failure = world
    search = mcts()
    drive(search, random_world(seed, failure=failure), steps, parallel=parallel, shuffle=seed)
    children = children_of(search)
    for node in [search.tree.root, *search.tree.nodes.values()]:
        own = 0 if node is search.tree.root else 1
        below = children[node.id]
        assert node.children == len(below)
        assert node.visits == own + sum(c.visits for c in below)
        assert math.isclose(node.total, own * node.reward + sum(c.total for c in below))
        assert node.successes == int(node.ok) + sum(c.successes for c in below)
        assert node.pending == node.pending_here + sum(c.pending for c in below)
        live = [entry[-1] for entry in node.live.entries]
        assert len(live) == len(node.live)
        assert {c.id for c in live} == {c.id for c in below if c.askable}
        assert node.askable == (not node.dead and (not node.exhausted or bool(live)))


@given(worlds)
def test_pruned_nodes_are_never_asked_and_the_gate_is_respected(
    world: tuple[int, int, int, float],
) -> None:
    seed, steps, parallel, failure = world
    search = mcts()
    answer = random_world(seed, failure=failure)
    flying = []
    for _ in range(steps):
        for ask in search.ask(parallel - len(flying)):
            node = search.tree.node(ask.parent_id)
            assert not any(n.dead for n in node.lineage())
            assert not node.exhausted
            decision = ask.decision
            assert decision.mean is not None and decision.bonus is not None
            assert decision.score == pytest.approx(decision.mean + decision.bonus)
            assert decision.path[-1:] == (() if ask.parent_id is None else (ask.parent_id,))
            if not decision.gate_open:
                assert not node.live, "a closed gate is passed only where nothing else is left"
            flying.append(ask)
        if not flying:
            break
        search.tell(answer(flying.pop(seed % len(flying))))


@given(worlds)
def test_the_tree_does_not_depend_on_the_order_of_results(
    world: tuple[int, int, int, float],
) -> None:
    seed, steps, parallel, failure = world
    record: Record = []
    one = mcts()
    drive(one, random_world(seed, failure=failure), steps, parallel=parallel, record=record)
    asks = [a for kind, batch in record if kind == "ask" for a in batch]
    tells = {t.ask_id: t for kind, t in record if kind == "tell"}
    other = mcts()
    waiting: list[Tell] = []
    for ask in asks:
        while ask.parent_id is not None and ask.parent_id not in other.tree.nodes:
            other.tell(waiting.pop())  # latest first: as out of order as parents allow
        other.restore([ask])
        if ask.id in tells:
            waiting.append(tells[ask.id])
    for tell in reversed(waiting):
        other.tell(tell)
    for node_id, node in one.tree.nodes.items():
        twin = other.tree.nodes[node_id]
        assert (node.visits, node.successes, node.dead, node.askable, node.exhausted) == (
            twin.visits, twin.successes, twin.dead, twin.askable, twin.exhausted,
        )  # fmt: skip
        assert math.isclose(node.total, twin.total)
    assert one.best() == other.best()


def test_a_failed_node_with_three_failed_children_is_given_up() -> None:
    search = mcts(failed_width=10.0)
    search.tell(failed(search.ask()[0].id, "n0"))
    search.tree.root.exhausted = True
    for i, ask in enumerate(search.ask(3), start=1):
        assert ask.parent_id == "n0"
        assert not search.tree.nodes["n0"].dead
        search.tell(failed(ask.id, f"n{i}"))
    assert search.tree.nodes["n0"].dead
    assert search.ask() == []


def test_three_failed_repairs_in_flight_kill_the_node_and_a_late_success_revives_it() -> None:
    search = mcts(failed_width=10.0)
    (first,) = search.ask()
    search.tell(failed(first.id, "n1"))
    search.tree.root.exhausted = True
    repairs = search.ask(4)
    assert [a.parent_id for a in repairs] == ["n1"] * 4
    for i, ask in enumerate(repairs[:3]):
        search.tell(failed(ask.id, f"r{i}"))
    assert search.tree.nodes["n1"].dead
    assert search.ask() == []
    search.tell(ok(repairs[3].id, "r3", 2.0))
    assert not search.tree.nodes["n1"].dead
    assert search.ask()[0].parent_id is not None


def test_a_failed_node_whose_repair_succeeded_further_down_is_kept() -> None:
    search = mcts(failed_width=10.0, root_width=1.0)
    search.tell(failed(search.ask()[0].id, "n1"))
    search.tree.root.exhausted = True
    node = search.tree.nodes["n1"]
    for tell_id, tell in (("a", failed), ("b", failed), ("c", failed)):
        ask = search.tree.request(node, search._decision(node, search._weigh(node)))
        search.tell(tell(ask.id, tell_id))
        if tell_id == "b":
            below = search.tree.nodes["b"]
            ask = search.tree.request(below, search._decision(below, search._weigh(below)))
            search.tell(ok(ask.id, "b1", 1.2))
    assert not node.dead


def test_uct_matches_the_formula_by_hand() -> None:
    search = mcts()
    for i, speedup in enumerate((2.0, 1.0)):
        (ask,) = search.ask()
        assert ask.parent_id is None
        search.tell(ok(ask.id, f"n{i}", speedup))
    # Root: N = 2, width floor(2 * sqrt 2) = 2 children: the gate is closed, descend to n0.
    (ask,) = search.ask()
    assert ask.parent_id == "n0"
    # n0: visits 1, no children, gate open (0 < 3); ln 1 = 0.
    assert ask.decision.mean == pytest.approx(math.log(2.0))
    assert ask.decision.bonus == 0.0
    assert ask.decision.gate_open
    search.tell(ok(ask.id, "n2", 4.0))
    # Root: N = 3, width floor(2 * 1.73) = 3: the virtual child competes.
    root = search._weigh(search.tree.root)
    mean = (math.log(2) + math.log(1) + math.log(4)) / 3
    assert root.gate
    assert root.mean == pytest.approx(mean)
    assert root.bonus == pytest.approx(1.414 * math.sqrt(math.log(3) / max(1, 3 / 3)))
    assert root.child is search.tree.nodes["n0"]
    assert root.child_score == pytest.approx(
        (math.log(2) + math.log(4)) / 2 + 1.414 * math.sqrt(math.log(3) / 2)
    )


@given(worlds, st.sampled_from(["paper", "default"]))
def test_peaks_and_stalls_are_those_of_the_results_told(
    world: tuple[int, int, int, float], preset: str
) -> None:
    seed, steps, parallel, failure = world
    search = mcts(preset=preset)
    drive(search, random_world(seed, failure=failure), steps, parallel=parallel, shuffle=seed)
    told = list(search.tree.nodes.values())  # in the order they were told
    for node in [search.tree.root, *told]:
        below = [n for n in told if node in n.lineage() and n is not node]
        peak, stalled = (node.reward if node.ok else -math.inf), 0
        for result in below:
            better = result.ok and result.reward > peak
            peak, stalled = (result.reward, 0) if better else (peak, stalled + 1)
        assert (node.peak, node.stalled) == (peak, stalled)
        children = [n.reward for n in told if n.parent is node]
        assert math.isclose(node.starts, sum(children), abs_tol=1e-9)


def test_the_best_backup_matches_the_formula_by_hand() -> None:
    search = mcts(preset="default", root_first=2)
    for i, speedup in enumerate((2.0, 1.5)):
        search.tell(ok(search.ask()[0].id, f"n{i}", speedup))
    for name, speedup in (("a", 1.2), ("b", 3.0)):
        (ask,) = search.ask()
        assert ask.parent_id == "n0"
        search.tell(ok(ask.id, name, speedup))
    n0 = search.tree.nodes["n0"]
    assert (n0.peak, n0.stalled) == (math.log(3.0), 0)  # the loss before it is forgotten
    root = search._weigh(search.tree.root)
    assert root.mean == pytest.approx((math.log(2.0) + math.log(1.5)) / 2)  # the starts' mean
    assert root.child is n0
    assert root.child_score == pytest.approx(math.log(3.0) + 0.5 * math.sqrt(math.log(4)))
    here = search._weigh(n0)
    assert here.mean == pytest.approx(math.log(2.0))  # one more from n0 starts at n0's own speed
    assert here.bonus == pytest.approx(0.5 * math.sqrt(math.log(3) / 3))  # two children already
    assert search.ask()[0].parent_id == "b"


def test_a_bad_move_says_nothing_against_its_parent_and_a_stuck_branch_gives_way() -> None:
    search = mcts(preset="default", root_first=2)
    for i, speedup in enumerate((2.0, 1.8)):
        search.tell(ok(search.ask()[0].id, f"n{i}", speedup))
    asked = []
    for i in range(6):
        (ask,) = search.ask()
        asked.append(ask.parent_id)
        search.tell(ok(ask.id, f"m{i}", 0.5))  # nothing ever gains
    assert {"n0", "n1"} <= set(asked), "both starts are tried when neither gains"
    assert not {a for a in asked if a is not None and a.startswith("m")}


def test_decisions_of_the_default_say_worth_not_mean() -> None:
    search = mcts(preset="default", root_first=1)
    search.tell(ok(search.ask()[0].id, "n0", 2.0))
    assert "worth 0.69 + bonus 0.00" in search.ask()[0].decision.text


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_scouts_in_flight_spread_over_the_tree(preset: str) -> None:
    search = mcts(preset=preset)
    for i in range(12):
        (ask,) = search.ask()
        search.tell(ok(ask.id, f"n{i}", 1.5))
    assert len({a.parent_id for a in search.ask(6)}) >= 3


def test_exhausting_everything_ends_the_search() -> None:
    search = mcts()
    answer = random_world(3, exhausted=0.6)
    asked = drive(search, answer, 10_000)
    assert len(asked) < 10_000
    assert not search.tree.root.askable


def test_an_exhausted_node_with_children_is_passed_through() -> None:
    search = mcts()
    search.tell(ok(search.ask()[0].id, "n0", 2.0))
    search.tell(nothing(search.ask()[0].id))  # scratch or n0 closes
    search.tell(nothing(search.ask()[0].id))
    assert search.ask() == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"preset": "papr"}, "papr"), ({"explore": 1.0}, "explore"),
        ({"exploration": -0.1}, "exploration"), ({"virtual_loss": math.nan}, "virtual_loss"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(options: dict[str, object], named: str) -> None:
    with pytest.raises(UserError, match=named):
        mcts(**options)


def test_the_default_preset_does_not_punish_a_parent_for_failed_children() -> None:
    for preset, mean in (("paper", (math.log(4.0) - 3.0) / 2), ("default", math.log(4.0) / 2)):
        search = mcts(preset=preset)
        search.tell(ok(search.ask()[0].id, "n0", 4.0))
        search.tree.root.exhausted = True
        search.tell(failed(search.ask()[0].id, "n1", Status.BUILD_ERROR, Stage.BUILD))
        node = search.tree.nodes["n0"]
        assert node.total / node.visits == pytest.approx(mean)
    assert cast(Mcts, make("mcts")).constants.failure_reward == 0.0


def test_the_first_few_come_from_scratch_also_when_told_one_by_one() -> None:
    search = mcts(root_first=4)
    for i in range(4):
        (ask,) = search.ask()
        assert ask.parent_id is None
        assert ask.decision.gate_open
        assert "one of the first 4 from scratch" in ask.decision.text
        search.tell(ok(ask.id, f"n{i}", 3.0 - i / 2))
    assert search.ask()[0].parent_id is not None


def test_a_writer_with_nothing_more_from_scratch_is_not_asked_for_the_rest() -> None:
    search = mcts(root_first=4)
    search.tell(ok(search.ask()[0].id, "n0", 2.0))
    search.tell(nothing(search.ask()[0].id))
    assert search.ask()[0].parent_id == "n0"


def test_decisions_always_say_mean_bonus_and_gate() -> None:
    search = mcts()
    answer = random_world(5)
    for _ in range(30):
        (ask,) = search.ask()
        assert f"mean {ask.decision.mean:.2f} + bonus {ask.decision.bonus:.2f}" in ask.decision.text
        assert "gate open" in ask.decision.text or "gate closed" in ask.decision.text
        search.tell(answer(ask))
