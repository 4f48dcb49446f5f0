"""The tasks of a KernelBench checkout: find them by level and number, deal them out in shards.

Reads the checkout's folder layout (``KernelBench/level<L>/<number>_<name>.py``) and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelpro.errors import UserError
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.problem import Precision, Problem

LEVELS = (1, 2, 3)
"""Levels that are scored. (Level 4 takes models from the network.)"""
_FILE = re.compile(r"(\d+)_(.+)\.py")
_KEY = re.compile(r"L?(\d+)[/.:-](\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class TaskKey:
    """Level and number: what a task is called wherever KernelBench is spoken."""

    level: int
    number: int

    __pydantic_config__ = CONFIG

    def __str__(self) -> str:
        return f"L{self.level}/{self.number}"


@dataclass(frozen=True, slots=True)
class Task:
    """One reference file of the checkout."""

    key: TaskKey
    name: str
    """The file's name without its ending, as KernelBench lists it: ``19_ReLU``."""
    path: Path

    def load(self, precision: Precision = "strict") -> Problem:
        """The problem, named by level so that run folders say which 19 it is."""
        return problem_from_source(
            self.path.read_text(encoding="utf-8-sig"),
            name=f"level{self.key.level}_{self.name}",
            origin=f"KernelBench/level{self.key.level}/{self.path.name}",
            kind="file",
            precision=precision,
        )


def find_tasks(root: Path, levels: Sequence[int] = LEVELS, wanted: str = "") -> list[Task]:
    """The tasks of ``levels``, by level and number; ``UserError`` if the checkout has none.

    ``wanted``: ``"19,23-25"`` (numbers, on every chosen level) or ``"L1/19,L2/9"``; empty = all.
    """
    folder = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    found: list[Task] = []
    for level in levels:
        here = folder / f"level{level}"
        if not here.is_dir():
            raise UserError(
                f"{root} holds no level{level} folder; --root names a checkout of KernelBench "
                "(git clone https://github.com/ScalingIntelligence/KernelBench)"
            )
        found += _in_folder(here, level)
    tasks = sorted(found, key=lambda task: task.key)
    return _chosen(tasks, wanted) if wanted else tasks


def shard(tasks: Sequence[Task], text: str) -> list[Task]:
    """Part ``i/n`` of ``tasks``, dealt like cards, so that every shard gets every kind of task."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise UserError(f"--shard must be i/n with 1 <= i <= n, for example 2/4, not {text!r}")
    return list(tasks[index - 1 :: count])


def parse_levels(text: str) -> list[int]:
    """``"1,2,3"`` as numbers; ``UserError`` for anything else."""
    try:
        levels = sorted({int(part) for part in text.split(",")})
    except ValueError:
        levels = []
    if not levels or set(levels) - set(LEVELS):
        raise UserError(f"--level takes numbers from {LEVELS}, for example 1,2, not {text!r}")
    return levels


def parse_keys(text: str) -> list[TaskKey]:
    """``"L1/19 L2/9"`` (any separator) as keys."""
    return [TaskKey(int(m[1]), int(m[2])) for m in _KEY.finditer(text)]


def _in_folder(folder: Path, level: int) -> Iterable[Task]:
    for path in folder.glob("*.py"):
        if match := _FILE.fullmatch(path.name):
            yield Task(TaskKey(level, int(match[1])), path.stem, path)


def _chosen(tasks: Sequence[Task], wanted: str) -> list[Task]:
    chosen: list[Task] = []
    for part in wanted.split(","):
        named = [task for task in tasks if _matches(task.key, part.strip())]
        if not named:
            raise UserError(
                f"--tasks: nothing on the chosen levels is {part.strip()!r}; give numbers (19), "
                "ranges (23-25) or level/number (L1/19)"
            )
        chosen += [task for task in named if task not in chosen]
    return sorted(chosen, key=lambda task: task.key)


def _matches(key: TaskKey, part: str) -> bool:
    if keyed := re.fullmatch(r"L(\d+)/(\d+)", part, re.IGNORECASE):
        return key == TaskKey(int(keyed[1]), int(keyed[2]))
    if span := re.fullmatch(r"(\d+)-(\d+)", part):
        return int(span[1]) <= key.number <= int(span[2])
    return part.isdigit() and key.number == int(part)
