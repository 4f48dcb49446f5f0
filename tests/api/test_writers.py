"""Writers as callers name them, made what a later process in another folder finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loop.simulated import PROBLEM, prepare

from kernelpro.api.aim import resolve_aim
from kernelpro.api.limits import budget_of
from kernelpro.api.writers import writer_name, writer_options
from kernelpro.errors import UserError
from kernelpro.hardware import resolve_device
from kernelpro.loop.budget import check_budget
from kernelpro.loop.run import create_run
from kernelpro.proposers.replay import ReplayWriter
from kernelpro.schema.config import EvaluationConfig, RunConfig


def test_a_replayed_run_is_named_by_path(tmp_path: Path):
    config = RunConfig(device="cpu")
    folder = create_run(PROBLEM, config, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare)
    for name in ("latest", folder.name, folder.name[:18], str(folder)):
        assert writer_name(f"replay:{name}", tmp_path) == f"replay:{folder.resolve()}"
    export = tmp_path / "talk.jsonl"
    export.write_text("{}")
    assert writer_name(f"replay:{export}", None) == f"replay:{export.resolve()}"
    with pytest.raises(UserError, match="Line 1 is not the header"):
        ReplayWriter(str(export))


def test_other_writers_keep_their_names():
    assert writer_name("playbook", None) == "playbook"
    assert writer_name("ollama:qwen3-coder:30b", None) == "ollama:qwen3-coder:30b"
    with pytest.raises(UserError, match="kernelpro start"):
        writer_name("external", None)


def test_a_librarian_gets_a_tree(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("KERNELPRO_CODE_ROOT", str(tmp_path))
    assert writer_options({"price": "1/2"}, None, "anthropic:x") == {"price": "1/2"}
    assert writer_options(None, {"librarian": "ollama:x"}, "anthropic:x") == {
        "code_root": str(tmp_path)
    }


@pytest.mark.parametrize("writer", ["playbook", "playbook:plain", "replay:/somewhere"])
def test_models_of_a_writer_that_asks_none_are_refused(writer):
    with pytest.raises(UserError, match="asks no model, so price, repair would"):
        writer_options({"price": "1/2"}, {"repair": "openai:x"}, writer)
    assert writer_options(None, None, writer) == {}


def test_a_misspelt_or_worded_limit_is_named():
    with pytest.raises(UserError, match="no setting 'evaluatons'; the limits of a run"):
        budget_of({"evaluatons": 3})
    with pytest.raises(UserError, match="evaluations must be a number, got '3'"):
        check_budget(budget_of({"evaluations": "3"}))


def test_what_names_no_device_and_no_objective_is_refused():
    with pytest.raises(UserError, match="named by text"):
        resolve_device(None)
    with pytest.raises(UserError, match="Unknown objective 'speed'"):
        resolve_aim("speed", None, EvaluationConfig(), "cpu")
