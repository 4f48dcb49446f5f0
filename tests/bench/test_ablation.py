"""Ablations pair their trials, go on where they stopped, and say what they found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loop.simulated import PROBLEM, assembler, prepare

from kernelpro.bench.ablation import ARMS, Trial, ablate, arm_config, read_trials
from kernelpro.bench.comparison import summarise
from kernelpro.bench.trials import real_trial, simulated_trial
from kernelpro.errors import UserError
from kernelpro.loop.assemble import strategy_of
from kernelpro.schema.config import RunConfig

BASE = RunConfig(device="cpu")


def trial(arm: str, problem: str, seed: int, *speeds: float) -> Trial:
    return Trial(arm=arm, problem=problem, seed=seed, best_so_far=speeds, final=speeds[-1])


def test_every_arm_is_a_valid_configuration() -> None:
    for arm in ARMS:
        config = arm_config(BASE, arm, 3, 24)
        assert not config.budget.stop_at_roofline
        assert config.seed == 3
        assert config.budget.evaluations == 24
        strategy_of(config)
    with pytest.raises(UserError, match="mtcs"):
        arm_config(BASE, "mtcs", 0, 1)


def test_summary_by_hand() -> None:
    trials = [
        trial("a", "x", 0, 1.0, 4.0), trial("b", "x", 0, 1.0, 2.0),
        trial("a", "y", 0, 3.0, 3.0), trial("b", "y", 0, 1.0, 3.0),
        trial("a", "y", 1, 9.0),  # has no partner: left out
    ]  # fmt: skip
    a, b = summarise(trials, baseline="b")
    assert (a.trials, b.trials) == (2, 2)
    assert a.geometric_mean == pytest.approx(12**0.5)
    assert a.ratio == pytest.approx(2**0.5)
    assert (a.wins, a.losses, a.ties) == (1, 0, 1)
    assert a.p == 0.5
    assert (b.ratio, b.p) == (1.0, 1.0)
    # 95 % of the best known: 3.8 on x (second evaluation), 8.55 on y (never: budget + 1).
    assert a.evaluations_to_best == 2.5
    assert a.reached_best == 0.5


def test_missing_arms_and_pairs_are_named() -> None:
    with pytest.raises(UserError, match="'greedy'"):
        summarise([trial("a", "x", 0, 1.0)], baseline="greedy")
    with pytest.raises(UserError, match="every arm"):
        summarise([trial("a", "x", 0, 1.0), trial("b", "x", 1, 1.0)], baseline="a")


def test_an_ablation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    ran: list[tuple[str, str, int]] = []
    simulated = simulated_trial()

    def count(arm: str, config: RunConfig, problem: str, seed: int) -> Trial:
        ran.append((arm, problem, seed))
        return simulated(arm, config, problem, seed)

    def go(seeds: range) -> list[Trial]:
        return ablate(
            ["mcts", "greedy"], ["landscape-0", "landscape-1"], seeds, evaluations=5, base=BASE,
            run_trial=count, trials_file=file,
        )  # fmt: skip

    first = go(range(1))
    assert len(ran) == 4
    with file.open("a") as stream:
        stream.write('{"arm": "mcts", "prob')  # killed while writing
    both = go(range(2))
    assert len(ran) == 8
    assert both[:4] == first
    assert all(t.simulated and len(t.best_so_far) == 5 for t in both)
    file.write_text('{"arm": "mcts"}\n')
    with pytest.raises(UserError, match="line 1"):
        list(read_trials(file))


def test_a_real_trial_leaves_its_run(tmp_path: Path) -> None:
    run = real_trial(
        lambda name: PROBLEM, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare,
        assemble=assembler(),
    )  # fmt: skip
    found = run("mcts", arm_config(BASE, "mcts", 1, 6), "op", 1)
    assert len(found.best_so_far) == 6
    assert list(found.best_so_far) == sorted(found.best_so_far)
    assert found.final == found.best_so_far[-1]
    assert (tmp_path / found.run / "run.sqlite").exists()
    assert not found.simulated
