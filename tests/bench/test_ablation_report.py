"""An ablation's folder: settings that must agree, a table, and pictures that stand alone."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kernelpro import api
from kernelpro.bench.ablation import Trial
from kernelpro.bench.ablation_figures import best_so_far, best_so_far_figure, profile_figure
from kernelpro.bench.ablation_report import AblationReport, check_settings, table, write_report
from kernelpro.errors import UserError
from kernelpro.schema.codec import loads


def trial(arm: str, seed: int, *speeds: float, budget: int = 4) -> Trial:
    return Trial(arm=arm, problem="x", seed=seed, best_so_far=speeds,
                 final=max(1.0, *speeds, 0.0), budget=budget)  # fmt: skip


TRIALS = [
    trial("new", 0, 1.0, 2.0, 4.0, 4.0), trial("new", 1, 4.0),
    trial("old", 0, 1.0, 1.0, 1.0, 2.0), trial("old", 1, 0.5, 2.0, 2.0, 2.0),
]  # fmt: skip


def test_curves_hold_what_a_run_that_ended_early_had() -> None:
    curves = best_so_far(TRIALS)
    assert curves["new"] == pytest.approx([2.0, 8**0.5, 4.0, 4.0])
    assert curves["old"] == pytest.approx([1.0, 2**0.5, 2**0.5, 2.0])


@pytest.mark.parametrize("draw", [best_so_far_figure, profile_figure])
def test_figures_are_whole_svg_with_every_arm_named(draw: object) -> None:
    text = draw(TRIALS)  # type: ignore[operator]
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    words = "".join(root.itertext())
    assert "new" in words and "old" in words
    assert "var(--" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_report_and_table(tmp_path: Path) -> None:
    report = write_report(
        TRIALS, how="bank", settings={"evaluations": 4}, baseline="old", measured=3,
        folder=tmp_path,
    )  # fmt: skip
    new, old = report.arms
    assert (new.trials, new.problems) == (2, 1)
    assert (new.ratio, new.wins, new.losses) == (2.0, 2, 0)
    # The best known is 4; 3.8 is reached at once and at the third evaluation, or never (5).
    assert (new.evaluations_to_best, old.evaluations_to_best) == (2.0, 5.0)
    assert new.evaluations_ratio == pytest.approx(2 / 5)
    assert (new.share_of_best, old.share_of_best) == (1.0, 0.5)
    assert new.p_problems == 0.5
    stored = loads(AblationReport, (tmp_path / "ablation.json").read_text())
    assert (stored.arms, stored.folder) == (report.arms, "")
    lines = table(report).splitlines()
    assert lines[0].startswith("2 pairs of 1 problems, real evaluations, replayed from a bank.")
    assert lines[-2].startswith("| new | 4.000x | 4.000x | 2.000 (2.000 to 2.000) | 2-0-0 | 0.25")
    assert lines[-1].startswith("| old | 2.000x | 2.000x | - | - | - | 5 |")


def test_arms_that_evaluated_nothing_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="bank holds nothing"):
        write_report([trial("new", 0), trial("old", 0)], how="closed", settings={},
                     baseline="old", measured=0, folder=tmp_path)  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    check_settings(tmp_path / "a", {"evaluations": 24, "problems": {"x": "1"}})
    check_settings(tmp_path / "a", {"evaluations": 24, "problems": {"x": "1"}})
    with pytest.raises(UserError, match="begun with evaluations 24, not 30"):
        check_settings(tmp_path / "a", {"evaluations": 30, "problems": {"x": "1"}})


def test_a_simulated_ablation_goes_on_and_says_that_it_is_one(tmp_path: Path) -> None:
    told: list[str] = []

    def go(arms: list[str]) -> AblationReport:
        return api.ablation(
            out=tmp_path, arms=arms, baseline="greedy", evaluations=6, simulated=4,
            progress=lambda place, count, name: told.append(f"{place}/{count} {name}"),
        )  # fmt: skip

    first = go(["mcts", "greedy"])
    assert told[0] == "1/8 landscape-1000, mcts, seed 0" and len(told) == 8
    again = go(["mcts", "greedy", "random"])
    assert len(told) == 12, "only the new arm was run"
    assert [a.arm for a in again.arms] == ["mcts", "greedy", "random"]
    assert again.arms[0].ratio == first.arms[0].ratio
    assert "SIMULATED" in table(again)
    assert json.loads((tmp_path / "settings.json").read_text())["how"] == "simulated"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"arms": ["mtcs", "greedy"], "simulated": 1}, "mtcs"),
        ({"arms": ["mcts"], "simulated": 1}, "baseline 'greedy'"),
        ({"arms": ["mcts", "greedy"]}, "problem files or folders"),
    ],
)
def test_wrong_questions_are_refused(given: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=named):
        api.ablation(out=tmp_path / "o", **given)  # type: ignore[arg-type]
