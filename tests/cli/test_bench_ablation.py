"""``kernelpro bench ablation``: one table or one JSON object; errors name what is wrong."""

from __future__ import annotations

import json

SIMULATED = ("bench", "ablation", "--simulated", "3", "--evaluations", "5")


def test_a_table_and_its_files(run, tmp_path):
    ran = run(*SIMULATED, "--arms", "mcts,greedy", "--out", tmp_path / "a")
    assert ran.code == 0, ran.err
    assert "SIMULATED" in ran.out
    assert "| mcts | " in ran.out and "| greedy | " in ran.out
    assert "6/6 landscape-1002, greedy, seed 0" in ran.err
    assert {f.name for f in (tmp_path / "a").iterdir()} == {
        "settings.json", "trials.jsonl", "ablation.json", "ablation.md", "best_so_far.svg",
        "performance_profile.svg",
    }  # fmt: skip


def test_json_is_one_object_and_quiet_is_quiet(run, tmp_path):
    ran = run(*SIMULATED, "--arms", "mcts,greedy", "--out", tmp_path / "a", "--json", "--quiet")
    assert ran.code == 0 and ran.err == ""
    report = json.loads(ran.out)
    assert report["how"] == "simulated"
    assert [arm["arm"] for arm in report["arms"]] == ["mcts", "greedy"]


def test_mistakes_are_named(run, tmp_path):
    ran = run("bench", "ablation", "--out", tmp_path / "a")
    assert ran.code == 2 and "problem files or folders" in ran.err
    ran = run(*SIMULATED, "--arms", "mtcs,greedy", "--out", tmp_path / "a")
    assert ran.code == 2 and "mtcs" in ran.err
    ran = run(*SIMULATED, "--direct", "--out", tmp_path / "a")
    assert ran.code == 2 and "exclude each other" in ran.err
