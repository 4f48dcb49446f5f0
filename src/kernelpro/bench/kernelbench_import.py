"""Generations of any system in KernelBench's own layout, for our referee to score.

``level_<L>_problem_<P>_sample_<S>_kernel.py``, as KernelBench's generation scripts leave them in
a run folder; ``S`` counts the samples of one problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelpro.bench.kernelbench_tasks import TaskKey
from kernelpro.errors import UserError

_FILE = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")


@dataclass(frozen=True, slots=True)
class Generations:
    """The files of one generation run."""

    name: str
    files: Mapping[TaskKey, Mapping[int, Path]]
    """Task -> sample number -> file."""

    @classmethod
    def read(cls, folder: Path) -> Generations:
        """List the files under ``folder``; ``UserError`` if there is none."""
        found: dict[TaskKey, dict[int, Path]] = {}
        for path in sorted(folder.rglob("*_kernel.py")):
            if match := _FILE.fullmatch(path.name):
                level, number, sample = (int(part) for part in match.groups())
                found.setdefault(TaskKey(level, number), {})[sample] = path
        if not found:
            raise UserError(
                f"{folder} holds no generations; they are files named "
                "level_1_problem_19_sample_0_kernel.py, as KernelBench's scripts write them"
            )
        return cls(folder.resolve().name, found)

    def samples(self, key: TaskKey) -> dict[int, str]:
        """Sources of one task by sample number; text that is not UTF-8 is read as it is shown."""
        return {
            number: path.read_text(encoding="utf-8", errors="replace")
            for number, path in self.files.get(key, {}).items()
        }
