"""Jobs that pretend to work, and results as a worker would hand them in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelpro.executors.base import Job, JobError, JobResult, Place, Workplace
from kernelpro.executors.envelope import digest_of, seal
from kernelpro.executors.perform import perform

PLACE = Place(executor="test", worker="w", host="here", pid=1, device="cpu", model="M", uuid="U")


def job(name: str = "r-1", *, share: str = "r", model: str | None = None, **payload: Any) -> Job:
    return Job(id=name, kind="simulated_work", payload=payload, share=share, model=model)


def answer(
    asked: Job, *, attempt: int = 1, worker: str = "w", value: Any = None,
    error: JobError | None = None, digest: str | None = None,
) -> str:  # fmt: skip
    place = Place(executor="test", worker=worker, host="here", pid=1, device="cpu")
    return seal(
        JobResult(
            job_id=asked.id, digest=digest or digest_of(seal(asked)), attempt=attempt, place=place,
            seconds=0.1, at="2026-01-01T00:00:00", value=value, error=error,
        )
    )  # fmt: skip


def done(asked: Job, tmp_path: Path = Path("/nonexistent")) -> str:
    return perform(seal(asked), 1, Workplace(place=PLACE, cache_root=tmp_path))
