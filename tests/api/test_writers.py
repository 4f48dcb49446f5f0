"""Writers as callers name them, made what a later process in another folder finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loop.simulated import PROBLEM, prepare

from kernelpro.api.writers import writer_name, writer_options
from kernelpro.errors import UserError
from kernelpro.loop.run import create_run
from kernelpro.proposers.replay import ReplayWriter
from kernelpro.schema.config import RunConfig


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
    assert writer_options({"price": "1/2"}, None) == {"price": "1/2"}
    assert writer_options(None, {"librarian": "ollama:x"}) == {"code_root": str(tmp_path)}
