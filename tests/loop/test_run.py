"""Run folders: their names, what is refused, and what belongs to this machine."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from kernelpro.errors import StoreError, UserError
from kernelpro.loop.assemble import check_same_device, strategy_of, writer_of
from kernelpro.loop.run import create_run, new_run_id, opened, read_result, resume_run
from kernelpro.schema.config import RunConfig
from kernelpro.store.sqlite import RunStore

from .simulated import DEVICE, PROBLEM, assembler, prepare

CONFIG = RunConfig(device="cpu")


def test_run_ids_sort_by_time_and_name_the_problem() -> None:
    first = new_run_id("RMS Norm (fused)!")
    assert re.fullmatch(r"\d{8}-\d{6}-rms-norm-fused-[0-9a-f]{4}", first)
    assert new_run_id("???").split("-")[2] == "problem"


def test_a_created_run_can_be_looked_at_before_it_starts(tmp_path: Path) -> None:
    folder = create_run(PROBLEM, CONFIG, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare)
    result = read_result(folder)
    assert (result.nodes, result.stop_reason, result.best) == (0, "interrupted", None)


def test_one_controller_per_run(tmp_path: Path) -> None:
    folder = create_run(PROBLEM, CONFIG, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare)
    with (
        opened(folder, cache_root=tmp_path, assemble=assembler()),
        pytest.raises(StoreError, match="another controller"),
    ):
        resume_run(folder, cache_root=tmp_path, assemble=assembler(), same_device=False)


def test_a_run_killed_while_created_is_named(tmp_path: Path) -> None:
    RunStore.create(tmp_path / "run").close()
    with pytest.raises(StoreError, match="killed while created"):
        resume_run(tmp_path / "run", cache_root=tmp_path)


def test_a_run_of_another_machine_is_refused(tmp_path: Path) -> None:
    started = prepare(PROBLEM, CONFIG, "r", tmp_path)
    with pytest.raises(UserError, match="Simulated CPU"):
        check_same_device(started)
    from kernelpro.hardware.base import probe

    check_same_device(dataclasses.replace(started, device=probe("cpu")))
    assert DEVICE.uuid == "sim"


def test_unknown_searches_options_and_writers_are_named() -> None:
    with pytest.raises(UserError, match=r"mtcs.*mcts"):
        strategy_of(dataclasses.replace(CONFIG, search="mtcs"))
    with pytest.raises(UserError, match=r"greedy.*depth"):
        strategy_of(dataclasses.replace(CONFIG, search="greedy", search_options={"depth": 3}))
    with pytest.raises(UserError, match="playbok"):
        writer_of(dataclasses.replace(CONFIG, writer="playbok"))
