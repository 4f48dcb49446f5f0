"""A job for ``one_call``, which ncu and compute-sanitizer wrap: its folder and environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelpro.isolation.scratch import INHERITED, job_environment, make_scratch, remove_scratch

_HOME = Path(__file__).parents[2]
"""Folder that holds the package ``kernelpro``, for the program's import path."""


class OneCallJob:
    """A private folder; ``command`` with ``environment`` may be started before :meth:`give`."""

    def __init__(self, **environment: str) -> None:
        """environment: set on top of the whitelist."""
        self.scratch = make_scratch()
        kept = {name: os.environ[name] for name in (*INHERITED, "CUDA_VISIBLE_DEVICES")
                if name in os.environ}  # fmt: skip
        # What depends on the build folder is set when the job is known.
        self.environment = {
            **kept, **job_environment(self.scratch, self.scratch), "PYTHONPATH": str(_HOME),
            **environment,
        }  # fmt: skip
        self.command = [
            sys.executable, "-m", "kernelpro.isolation.one_call",
            str(self.scratch / "job.json"), str(os.getpid()),
        ]  # fmt: skip

    def give(self, source: str, build_root: Path, job: Mapping[str, Any]) -> None:
        """The candidate, and what to call it on: ``problem``, ``device``, ``sandbox``."""
        (self.scratch / "candidate.py").write_text(source, encoding="utf-8")
        body = {
            **job,
            "scratch": str(self.scratch),
            "build_root": str(build_root),
            "environment": job_environment(self.scratch, build_root),
        }
        draft = self.scratch / "job.tmp"
        draft.write_text(json.dumps(body), encoding="utf-8")
        draft.rename(self.scratch / "job.json")

    def remove(self) -> None:
        """Remove the folder."""
        remove_scratch(self.scratch)
