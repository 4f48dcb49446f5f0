"""A chat model as the writer, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.llm.chat_server import Fail, Say, chat_server
from tests.proposers.requests import REFERENCE, SOURCE
from typer.testing import CliRunner

from kernelpro.cli.main import app
from kernelpro.errors import UserError


def kernelpro(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "playbok"), "Did you mean 'playbook'"),
        (("--model", "antropic:claude"), "Did you mean 'anthropic'"),
        (("--model", "anthropic:claude-sonnet-4-6"), "ANTHROPIC_API_KEY"),
        (("--model", "compatible:x@http://host/v1", "--cost-usd", 1), "price of compatible:x@"),
        (("--model", "compatible:x@http://host/v1", "--price", "3"), "INPUT/OUTPUT"),
        (("--model", "ollama:x", "--model-repair", "none"), "cannot be switched off"),
        (("--model", "ollama:x", "--prompt-tokens", 5), "prompt_tokens >= 500"),
        (("--model", "ollama:x", "--tokens", 0), "tokens must be greater than 0"),
        (("--model", "replay:"), "Say what to replay"),
        (("--model", "replay:nonesuch"), "no run 'nonesuch'"),
    ],
)
def test_wrong_settings_are_explained_before_anything_runs(options, said, tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    problem = tmp_path / "p.py"
    problem.write_text(REFERENCE)
    words = ("optimize", problem, *options, "--device", "cpu", "--quiet", "--runs", tmp_path)
    with pytest.raises(UserError) as caught:
        kernelpro(*words)
    assert said in str(caught.value)
    assert not list(tmp_path.glob("*/run.sqlite"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_the_command_line_to_the_report(tmp_path: Path):
    problem, runs = tmp_path / "twice_relu.py", tmp_path / "runs"
    problem.write_text(REFERENCE)
    script = (
        Say('{"class": "compute", "why": "w", "plan": ["fuse"], "risks": []}'),
        Fail(429, "slow down", {"retry-after": "0"}),
        Say(f"Title: one loop\n```python\n{SOURCE}```"),
        Say('{"notes": [{"category": "learning", "text": "one pass is enough"}]}'),
    )
    words = ("optimize", problem, "--device", "cpu", "--json", "--quiet", "--runs", runs)
    with chat_server(*script) as server:
        result = json.loads(
            kernelpro(*words, "--model", server.model(), "--evaluations", 1, "--tokens", 200_000)
        )
        assert "not compute-bound" in server.prompt(2)
    assert result["statuses"] == {"ok": 1}
    assert {u["role"] for u in result["usage"]} == {"analyst", "coder", "memory"}
    talk = kernelpro("runs", "talk", "latest", "--node", "n0001", "--runs", runs)
    assert "one pass is enough" in talk
    report = (Path(result["folder"]) / "report.html").read_text("utf-8")
    assert "analyst" in report
