"""What of the sandbox works on this machine, for ``doctor`` and the documentation."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernelpro.isolation.base import SubjectJob
from kernelpro.isolation.sandbox import Layers
from kernelpro.isolation.worker import WorkerSubject


def available_layers(device: str = "cpu") -> Layers:
    """Start an empty subject in mode ``best-effort`` and report its layers: those in force, and
    those missing with the reason. Takes the time of importing torch, once."""
    with tempfile.TemporaryDirectory(prefix="kernelpro-probe-") as folder:
        job = SubjectJob(
            source="", entry="", device=device, init_args=(), construction_seed=0,
            build_root=Path(folder), threads=1,
        )  # fmt: skip
        subject = WorkerSubject(job)
        subject.close()
        return subject.layers
