"""The controller's end of a spool: its own faults, silent workers, damaged and foreign files."""

from __future__ import annotations

import resource
import shutil
import time
from pathlib import Path

import pytest

from kernelpro.errors import MachineError
from kernelpro.executors.spool import SpoolExecutor
from kernelpro.executors.spool_folder import SpoolFolder
from kernelpro.executors.spool_worker import WorkOptions, serve

from .spooled import LEASE_S, in_thread, spool, until
from .work import answer, job


def test_a_full_disk_of_the_controller_delays_its_jobs_and_loses_nothing(tmp_path: Path) -> None:
    with spool(tmp_path) as executor:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
        try:
            futures = [executor.submit(job(f"r-{n}", answer=n)) for n in range(5)]
            until(lambda: any("wait for space" in p for p in executor.health().problems))
            assert executor.folder.waiting() == []
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        until(lambda: len(executor.folder.waiting()) == 5)
        in_thread(tmp_path)
        assert [f.result(60).result.value for f in futures] == list(range(5))


def test_a_silent_workers_job_goes_to_another_and_its_late_result_is_set_aside(
    tmp_path: Path,
) -> None:
    with spool(tmp_path) as executor:
        future = executor.submit(job(answer=1))
        until(executor.folder.waiting)
        folder = SpoolFolder(tmp_path / "spool")
        (file,) = folder.waiting()
        text = folder.read_job(file)
        claim = folder.claim(file, "silent")
        assert claim is not None
        assert text is not None
        until(lambda: [f.attempt for f in executor.folder.waiting()] == [2])
        in_thread(tmp_path, name="other")
        assert future.result(60).result.place.worker == "other"
        folder.deliver(claim, answer(job(answer=1), worker="silent", value="late"))
        until(lambda: executor.health().deliveries.get("duplicate") == 1)
        assert future.result().result.value == 1
        assert any("silent for 1 s" in p for p in executor.health().problems)


def test_corrupt_and_foreign_files_are_set_aside_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelpro.executors.spool.SETTLE_S", 0.1)
    with spool(tmp_path) as executor:
        future = executor.submit(job(answer=1))
        until(executor.folder.waiting)
        results = tmp_path / "spool" / "results"
        (results / "cut.result").write_text(answer(job(answer=1), value=1)[:-9])
        (results / "holiday.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a result")
        (results / "other.result").write_text(answer(job("s-9"), value=1))
        (results / "old.result").write_text(answer(job(answer=0), value=0))
        until(
            lambda: sum(executor.accounts.verdicts.values()) >= 4 and not executor.folder.arrived()
        )
        reasons = {
            path.name.split(".")[0]: path.read_text()
            for path in (tmp_path / "spool" / "rejected").glob("*.reason")
        }
        assert "cut short or changed" in reasons["cut"]
        assert "does not begin with 'kernelpro-result-1'" in reasons["holiday"]
        assert "no job 's-9' was given" in reasons["other"]
        assert "another version of job 'r-1'" in reasons["old"]
        assert not future.done()
        in_thread(tmp_path)
        assert future.result(60).result.value == 1


def test_a_damaged_job_is_set_aside_and_published_again(tmp_path: Path) -> None:
    with spool(tmp_path) as executor:
        future = executor.submit(job(answer=1))
        until(executor.folder.waiting)
        (file,) = executor.folder.waiting()
        path = tmp_path / "spool" / "jobs" / file.name
        path.write_text(path.read_text()[:-5])
        assert in_thread(tmp_path) == 0
        assert any((tmp_path / "spool" / "rejected").glob("*.reason"))
        until(executor.folder.waiting)
        assert in_thread(tmp_path) == 1
        assert future.result(60).result.value == 1


def test_results_carried_back_by_hand_count(tmp_path: Path) -> None:
    """An air gap: the folder is copied there, the results are copied back."""
    with spool(tmp_path, lease_s=0) as executor:
        futures = [executor.submit(job(f"r-{n}", answer=n)) for n in range(4)]
        until(lambda: len(executor.folder.waiting()) == 4)
        there = tmp_path / "there"
        shutil.copytree(tmp_path / "spool", there / "spool")
        for folder in (there / "spool").iterdir():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()  # what is carried as a list of files loses its empty folders
        back = tmp_path / "back"
        served = serve(
            there / "spool", device="cpu", cache_root=tmp_path, results=back,
            options=WorkOptions(drain=True),
        )  # fmt: skip
        assert served.jobs == len(list(back.iterdir())) == 4
        time.sleep(2 * LEASE_S)
        assert executor.health().problems == (), "silence means nothing here"
        for result in back.iterdir():
            shutil.copy(result, tmp_path / "spool" / "results")
        assert [f.result(60).result.value for f in futures] == list(range(4))
        # Jobs that are done are not left to be done again.
        until(lambda: executor.folder.waiting() == [])


def test_a_new_controller_finds_what_the_old_one_paid_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with spool(tmp_path) as executor:
        first = executor.submit(job("r-1", answer=1, log=str(log), note="r-1"))
        in_thread_when_ready(executor, tmp_path)
        first.result(60)
        second = executor.submit(job("r-2", answer=2, log=str(log), note="r-2"))
        executor.submit(job("r-3", answer=3))
        until(lambda: len(executor.folder.waiting()) == 2)
        # r-2 is being worked on when the controller ends; r-3 waits and is taken back.
        file = next(f for f in executor.folder.waiting() if f.job_id == "r-2")
        claim = executor.folder.claim(file, "worker")
        executor.folder.beat("worker", {"beat": 1})
    assert isinstance(second.exception(), KeyboardInterrupt)
    assert claim is not None
    folder = SpoolFolder(tmp_path / "spool")
    assert folder.waiting() == []
    folder.deliver(claim, answer(job("r-2", answer=2, log=str(log), note="r-2"), value=2))
    with spool(tmp_path) as executor:
        again = [
            executor.submit(job(f"r-{n}", answer=n, log=str(log), note=f"r-{n}")) for n in (1, 2)
        ]
        assert [f.result(60).result.value for f in again] == [1, 2]
        assert log.read_text().split()[0::2] == ["r-1"], "neither was done again"
        until(lambda: executor.folder.arrived() == [])
        executor.release("r")
        assert list((tmp_path / "spool" / "counted").iterdir()) == []


def in_thread_when_ready(executor: SpoolExecutor, tmp_path: Path) -> None:
    until(executor.folder.waiting)
    in_thread(tmp_path)


def test_one_controller_at_a_time(tmp_path: Path) -> None:
    with spool(tmp_path), pytest.raises(MachineError, match="Another controller"):
        SpoolExecutor(tmp_path / "spool")


def test_a_run_waits_for_its_device_model_while_others_go_on(tmp_path: Path) -> None:
    with spool(tmp_path) as executor:
        waiting = executor.submit(job("r-1", share="r", model="H200"))
        going_on = executor.submit(job("s-1", share="s", answer=1))
        until(lambda: len(executor.folder.waiting()) == 2)
        assert in_thread(tmp_path) == 1
        assert going_on.result(60).result.value == 1
        assert not waiting.done()
