"""The executors that come with kernelpro pass the suite that others are held to."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from kernelpro.executors.base import Executor, Job, Timed
from kernelpro.executors.crew import Crew
from kernelpro.executors.local import local_crew
from kernelpro.executors.spool import SpoolExecutor
from kernelpro.executors.spool_worker import WorkOptions, serve
from kernelpro.testing.executor_suite import check_executor
from kernelpro.testing.simulated_fleet import Fleet


def test_local(tmp_path: Path) -> None:
    check_executor(lambda: local_crew(["cpu"], cache_root=tmp_path, overlaps=True))


def test_a_crew_of_simulated_workers() -> None:
    fleet = Fleet(2, seconds=0.001)
    check_executor(lambda: Crew("simulated", fleet.slots, overlaps=True))
    fleet.close()


def test_spool(tmp_path: Path) -> None:
    executor = SpoolExecutor(tmp_path)
    worker = threading.Thread(
        target=serve, args=(tmp_path,),
        kwargs={"device": "cpu", "cache_root": tmp_path, "options": WorkOptions(max_jobs=19)},
    )  # fmt: skip
    worker.start()
    check_executor(lambda: executor)
    worker.join(60)
    assert not worker.is_alive(), "thirteen, an error, and five attempts at the last"


def test_an_executor_that_answers_the_wrong_job_is_caught() -> None:
    class Mixed(Crew):
        """Answers every job with the first one's result."""

        first: Future[Timed] | None = None

        def submit(self, job: Job) -> Future[Timed]:
            self.first = self.first or super().submit(job)
            return self.first

    fleet = Fleet(1, seconds=0.001)

    def opened() -> Executor:
        return Mixed("mixed", fleet.slots, overlaps=True)

    with pytest.raises(AssertionError, match="job 1 was answered 0"):
        check_executor(opened)
    fleet.close()
