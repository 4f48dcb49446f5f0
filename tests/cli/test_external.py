"""start, ask and tell as a person or an agent in a shell uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.loop.simulated import prepare
from tests.proposers.requests import PROBLEM
from typer.testing import CliRunner

from kernelpro.cli.main import app
from kernelpro.errors import UserError
from kernelpro.loop.run import create_run
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig

BROKEN = "class ModelNew(:\n    pass\n"
"""Rejected before anything is built or measured."""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELPRO_CACHE", str(tmp_path / "cache"))
    config = RunConfig(
        device="cpu", writer="external", budget=Budget(evaluations=3),
        evaluation=EvaluationConfig(checks="fast"),
    )  # fmt: skip
    create_run(PROBLEM, config, runs_root=tmp_path / "runs", cache_root=tmp_path, prepare=prepare)
    return tmp_path / "runs"


def kernelpro(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_several_open_requests_answered_by_number(runs, tmp_path):
    page = kernelpro("ask", "latest", "-n", 2, "--markdown", "--runs", runs)
    assert "# Request 1: twice_relu" in page
    assert "# Request 2: twice_relu" in page
    assert kernelpro("ask", "latest", "--count", 2, "--runs", runs) == page, "the same again"
    asked = json.loads(kernelpro("ask", "latest", "-n", 3, "--json", "--runs", runs))
    assert [r["request"] for r in asked["requests"]] == [1, 2, 3]

    mine = tmp_path / "mine.py"
    mine.write_text(BROKEN)
    told = json.loads(kernelpro("tell", "latest", 2, mine, "--runs", runs, "--json", code=1))
    assert (told["request"], told["node"], told["outcome"]["status"]) == (2, "n0001", "rejected")
    mine.write_text(BROKEN + "# another\n")
    again = json.loads(kernelpro("tell", "latest", 2, mine, "--runs", runs, "--json", code=1))
    assert again["already"]
    assert again["node"] == "n0001"
    page = kernelpro("tell", "latest", "1", mine, "--runs", runs, code=1)
    assert "rejected" in page
    asked = json.loads(kernelpro("ask", "latest", "--json", "--runs", runs))
    assert [r["request"] for r in asked["requests"]] == [3]


def test_several_answers_in_one_command(runs, tmp_path):
    kernelpro("ask", "latest", "-n", 2, "--runs", runs)
    for name in "ab":
        (tmp_path / name).write_text(f"# Title: version {name}\n{BROKEN}# {name}\n")
    words = ("tell", "latest", 2, tmp_path / "a", 1, tmp_path / "b", "--runs", runs)
    told = json.loads(kernelpro(*words, "--json", code=1))["answers"]
    assert [(t["request"], t["node"], t["already"]) for t in told] == [
        (2, "n0001", False), (1, "n0002", False),
    ]  # fmt: skip
    assert kernelpro(*words, code=1).count("answered before") == 2


def test_the_only_open_request_needs_no_number(runs, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(BROKEN)
    kernelpro("ask", "--runs", runs)
    told = json.loads(kernelpro("tell", "latest", mine, "--runs", runs, "--json", code=1))
    assert told["request"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tell", "latest", "one", "mine.py"), "'one' is not the number of a request"),
        (("tell", "latest", "1", "2", "mine.py"), "one file for each request"),
        (("tell", "latest", "1", "a.py", "1", "b.py"), "A request has one answer"),
        (("tell", "latest", "1", "a.py", "2", "b.py", "--title", "t"), "# Title"),
        (("tell", "latest"), "Give a CANDIDATE, or --end"),
        (("ask", "latest", "--json", "--markdown"), "Choose --json or --markdown"),
        (("start", "x.py", "--model", "openai:gpt"), "kernelpro optimize --model openai:gpt"),
    ],
)
def test_wrong_words_are_explained(words, said):
    with pytest.raises(UserError, match=said):
        kernelpro(*words)
