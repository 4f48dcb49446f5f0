"""A checkout's tasks are found, chosen and dealt out; generations are found by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.kernelbench_samples import CHECKOUT

from kernelpro.bench.kernelbench_import import Generations
from kernelpro.bench.kernelbench_tasks import (
    TaskKey,
    find_tasks,
    parse_keys,
    parse_levels,
    shard,
)
from kernelpro.errors import UserError


def keys(**given: object) -> list[str]:
    return [str(task.key) for task in find_tasks(CHECKOUT, **given)]  # type: ignore[arg-type]


def test_all_tasks_by_level_and_number() -> None:
    assert keys() == ["L1/1", "L1/2", "L2/1", "L3/1", "L3/2", "L3/3"]
    assert keys(levels=[2]) == ["L2/1"]
    # The folder with the levels may be named as well.
    assert len(find_tasks(CHECKOUT / "KernelBench")) == 6


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("2", ["L1/2", "L3/2"]),
        ("L1/2", ["L1/2"]),
        ("2-3", ["L1/2", "L3/2", "L3/3"]),
        ("L3/1,1", ["L1/1", "L2/1", "L3/1"]),
    ],
)
def test_some_tasks(wanted: str, found: list[str]) -> None:
    assert keys(wanted=wanted) == found


@pytest.mark.parametrize("wanted", ["9", "L1/9", "x", "7-8", "1,,2"])
def test_what_names_no_task_is_named(wanted: str) -> None:
    with pytest.raises(UserError, match="--tasks"):
        keys(wanted=wanted)


def test_not_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="git clone"):
        find_tasks(tmp_path)


def test_shards_are_a_partition() -> None:
    tasks = find_tasks(CHECKOUT)
    dealt = [shard(tasks, f"{i}/4") for i in range(1, 5)]
    assert sorted((t for part in dealt for t in part), key=lambda t: t.key) == tasks
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2"])
def test_bad_shards(text: str) -> None:
    with pytest.raises(UserError, match="i/n"):
        shard(find_tasks(CHECKOUT), text)


def test_levels_and_keys_as_text() -> None:
    assert parse_levels("3,1") == [1, 3]
    assert parse_keys("L1/19, 2:9 and 3-44") == [TaskKey(1, 19), TaskKey(2, 9), TaskKey(3, 44)]
    for text in ("4", "", "one", "0,1"):
        with pytest.raises(UserError, match="--level"):
            parse_levels(text)


def test_problem_says_which_level_it_is_from() -> None:
    problem = find_tasks(CHECKOUT, [2])[0].load("half")
    assert problem.name == "level2_1_Linear_GELU_Scale"
    assert problem.origin == "KernelBench/level2/1_Linear_GELU_Scale.py"
    assert problem.precision == "half"


def test_generations_by_file_name(tmp_path: Path) -> None:
    for name in ("level_1_problem_19_sample_0_kernel.py", "level_1_problem_19_sample_3_kernel.py",
                 "level_2_problem_1_sample_0_kernel.py", "notes_kernel.py"):  # fmt: skip
        (tmp_path / name).write_text(name)
    found = Generations.read(tmp_path)
    assert found.samples(TaskKey(1, 19)) == {
        0: "level_1_problem_19_sample_0_kernel.py", 3: "level_1_problem_19_sample_3_kernel.py"
    }  # fmt: skip
    assert found.samples(TaskKey(3, 1)) == {}
    assert found.name == tmp_path.name


def test_folder_without_generations(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sample_0_kernel"):
        Generations.read(tmp_path)
