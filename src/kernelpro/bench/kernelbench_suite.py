"""A suite folder: its configuration, one JSON file a task, the winners' sources, the run folders.

Every file is replaced in one step, and tasks have files of their own, so that shards on several
machines can fill one folder and a killed suite goes on where it was.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelpro.bench.kernelbench_record import DONE, SuiteConfig, TaskResult
from kernelpro.bench.kernelbench_tasks import Task, TaskKey
from kernelpro.errors import UserError
from kernelpro.schema.codec import dumps, loads

CONFIG_FILE = "suite.json"


class Suite:
    """One folder. Use :meth:`open_or_create`."""

    def __init__(self, folder: Path, config: SuiteConfig) -> None:
        self.folder = folder
        self.config = config
        self.runs = folder / "runs"
        self.tasks = folder / "tasks"
        self.sources = folder / "candidates"

    @classmethod
    def open_or_create(cls, folder: Path, config: SuiteConfig) -> Suite:
        """The suite in ``folder``; ``UserError`` if it was begun with other settings."""
        suite = cls(folder, config)
        if (folder / CONFIG_FILE).exists():
            _check_same(cls.open(folder).config, config, folder)
        else:
            for path in (suite.runs, suite.tasks, suite.sources):
                path.mkdir(parents=True, exist_ok=True)
            write_whole(folder / CONFIG_FILE, dumps(config, indent=2) + "\n")
        return suite

    @classmethod
    def open(cls, folder: Path) -> Suite:
        """An existing suite; ``UserError`` if ``folder`` holds none."""
        try:
            text = (folder / CONFIG_FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UserError(f"{folder} is not a suite: it has no {CONFIG_FILE}") from None
        try:
            return cls(folder, loads(SuiteConfig, text))
        except ValueError as error:
            raise UserError(f"{folder / CONFIG_FILE} is damaged: {error}") from error

    def result(self, key: TaskKey) -> TaskResult | None:
        """What is known of one task; ``UserError`` names a damaged file."""
        path = self._path(key)
        try:
            return loads(TaskResult, path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise UserError(f"{path} is damaged: {error}\nDelete it to run the task again") from (
                error
            )

    def results(self) -> Iterator[TaskResult]:
        """Every task begun so far, by level and number."""
        for path in sorted(self.tasks.glob("*.json")):
            level, number = (int(part) for part in path.stem.removeprefix("level").split("_"))
            result = self.result(TaskKey(level, number))
            if result is not None:
                yield result

    def save(self, result: TaskResult) -> None:
        """Replace the task's file."""
        self.tasks.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(result.key), dumps(result, indent=1) + "\n")

    def save_source(self, key: TaskKey, text: str) -> str:
        """Keep a winner's source; returns its path relative to the suite folder."""
        name = f"{_stem(key)}.py"
        self.sources.mkdir(parents=True, exist_ok=True)
        write_whole(self.sources / name, text)
        return f"{self.sources.name}/{name}"

    def pending(self, tasks: Sequence[Task], *, retry_failed: bool = False) -> list[Task]:
        """Tasks without a result that stands, in order."""
        return [task for task in tasks if self._is_pending(task, retry_failed)]

    def _is_pending(self, task: Task, retry_failed: bool) -> bool:
        known = self.result(task.key)
        if known is None or known.state == "started":
            return True
        return known.state not in DONE and retry_failed

    def _path(self, key: TaskKey) -> Path:
        return self.tasks / f"{_stem(key)}.json"


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step: a reader sees the old file or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _stem(key: TaskKey) -> str:
    return f"level{key.level}_{key.number:03d}"


def _check_same(old: SuiteConfig, new: SuiteConfig, folder: Path) -> None:
    changed = [
        f"{f.name} {getattr(old, f.name)!r} (now {getattr(new, f.name)!r})"
        for f in dataclasses.fields(SuiteConfig)
        if getattr(old, f.name) != getattr(new, f.name)
    ]
    if changed:
        raise UserError(
            f"The suite in {folder} was begun with {', '.join(changed)}. Results of two settings "
            "do not belong in one table: name another folder with --output"
        )
