"""A folder between a controller and its workers, and everything that can go wrong with it."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelpro.errors import MachineError, UserError
from kernelpro.executors import spool_folder
from kernelpro.executors.spool import SpoolExecutor
from kernelpro.executors.spool_folder import Claim, JobFile, SpoolFolder
from kernelpro.executors.spool_worker import WorkOptions, serve

from .work import answer, job

LEASE_S = 1.0
_WORKER = (
    "import sys; from pathlib import Path; "
    "from kernelpro.executors.spool_worker import serve, WorkOptions; "
    "serve(sys.argv[1], device='cpu', cache_root=Path(sys.argv[2]), name=sys.argv[3] or None, "
    "options=WorkOptions(idle_s=60), say=lambda text: print(text, file=sys.stderr, flush=True))"
)


@contextlib.contextmanager
def spool(tmp_path: Path, *, lease_s: float = LEASE_S) -> Iterator[SpoolExecutor]:
    executor = SpoolExecutor(tmp_path / "spool", lease_s=lease_s)
    try:
        yield executor
    finally:
        executor.close()


@contextlib.contextmanager
def workers(
    tmp_path: Path, count: int, *, before: list[str] | None = None, code: str = _WORKER,
    names: str = "",
) -> Iterator[list[subprocess.Popen[bytes]]]:  # fmt: skip
    """Worker processes, each perhaps ``before`` a command that puts it somewhere else."""
    words = [*(before or []), sys.executable, "-c", code, str(tmp_path / "spool"), str(tmp_path)]
    started = [
        subprocess.Popen([*words, f"{names}{n}" if names else ""], stderr=subprocess.DEVNULL)
        for n in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def in_thread(tmp_path: Path, **options: Any) -> int:
    """Be a worker until the spool is empty; how many jobs were done."""
    return serve(
        tmp_path / "spool", device="cpu", cache_root=tmp_path, options=WorkOptions(drain=True),
        **options,
    ).jobs  # fmt: skip


def test_concurrent_workers_one_killed_one_stopped_lose_nothing_and_do_nothing_twice(
    tmp_path: Path,
) -> None:
    with spool(tmp_path) as executor, workers(tmp_path, 3) as processes:
        futures = [
            executor.submit(job(f"r-{n}", seconds=0.02, answer=n, share=str(n % 2)))
            for n in range(80)
        ]
        until(lambda: sum(f.done() for f in futures) > 10)
        processes[0].kill()
        processes[1].send_signal(signal.SIGSTOP)
        until(lambda: sum(f.done() for f in futures) >= 76)
        processes[1].send_signal(signal.SIGCONT)
        assert [f.result(60).result.value for f in futures] == list(range(80))
        health = executor.health()
    assert health.deliveries["counted"] == 80
    assert set(health.deliveries) <= {"counted", "duplicate"}


@pytest.mark.slow
def test_workers_in_namespaces_of_their_own_share_the_folder(tmp_path: Path) -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--uts", "--ipc"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine permits no user namespaces")
    with spool(tmp_path) as executor, workers(tmp_path, 2, before=unshare) as processes:
        futures = [executor.submit(job(f"r-{n}", seconds=0.02, answer=n)) for n in range(40)]
        until(lambda: sum(f.done() for f in futures) > 5)
        # unshare dies, and with it the namespace and the worker that is process 1 in it.
        processes[0].kill()
        assert [f.result(60).result.value for f in futures] == list(range(40))
        pids = {f.result().result.place.pid for f in futures}
    assert pids <= {1, 2}, "each counts its own processes"


def test_a_full_disk_of_a_worker_delays_its_result_and_loses_nothing(tmp_path: Path) -> None:
    with spool(tmp_path, lease_s=30) as executor, workers(tmp_path, 1) as (process,):
        executor.submit(job("r-0")).result(60)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        future = executor.submit(job("r-1", answer="kept"))
        until(lambda: executor.capacity().busy == 1)
        time.sleep(0.3)
        assert not future.done()
        assert list((tmp_path / "spool" / "results").iterdir()) == [], "nothing half written"
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert future.result(60).result.value == "kept"
        assert future.result().result.attempt == 1, "the work was not done again"


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


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    script = 'mount -t tmpfs -o size=256k spool "$0" && exec "$@"'
    target = tmp_path / "disk"
    target.mkdir()
    if subprocess.run([*mount, script, target, "true"], check=False,
                      capture_output=True).returncode:  # fmt: skip
        pytest.skip("this machine permits no mounts in user namespaces")
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tests.executors.test_spool import in_thread, job, until\n"
        "from kernelpro.executors.spool import SpoolExecutor\n"
        "import threading\n"
        "root = Path(sys.argv[1])\n"
        "executor = SpoolExecutor(root / 'spool', lease_s=30)\n"
        "futures = [executor.submit(job(f'r-{n}', answer='x' * 20_000)) for n in range(4)]\n"
        "until(lambda: len(executor.folder.waiting()) >= 2)\n"
        "filler = root / 'filler'\n"
        "try:\n"
        "    with filler.open('wb') as file:\n"
        "        while True:\n"
        "            file.write(b'x' * 4096); file.flush()\n"
        "except OSError:\n"
        "    print('full')\n"
        "worker = threading.Thread(target=in_thread, args=(root,), daemon=True)\n"
        "worker.start()\n"
        "time.sleep(0.5)\n"
        "print(sum(f.done() for f in futures), 'done')\n"
        "filler.unlink()\n"
        "until(lambda: all(f.done() for f in futures) or not worker.is_alive())\n"
        "in_thread(root)\n"
        "print({len(f.result(30).result.value) for f in futures}, executor.accounts.verdicts)\n"
        "executor.close()\n"
    )
    done = subprocess.run(
        [*mount, script, target, sys.executable, "-c", code, target], capture_output=True,
        text=True, timeout=120, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "full"
    assert lines[-1] == "{20000} Counter({'counted': 4})"


@pytest.mark.slow
def test_clocks_may_say_what_they_like(tmp_path: Path) -> None:
    wrong = (
        "import os, sys, time, datetime\n"
        "from kernelpro.executors import spool_folder, perform\n"
        "write = spool_folder.write_whole\n"
        "def skewed(path, text, **options):\n"
        "    write(path, text, **options)\n"
        "    os.utime(path, (0, 0))\n"
        "spool_folder.write_whole = skewed\n"
        "time.time = lambda: 5e9\n"
    ) + _WORKER.replace("import sys; ", "")
    with spool(tmp_path) as executor, workers(tmp_path, 1, code=wrong):
        futures = [executor.submit(job(f"r-{n}", seconds=0.4, answer=n)) for n in range(6)]
        assert [f.result(60).result.value for f in futures] == list(range(6))
        record = futures[-1].result().record()
        assert executor.health().problems == (), "a lease longer than a beat, whatever the date"
    assert abs(record["received_at"] - time.time()) < 60, "the controller's clock"
    assert {f.result().result.attempt for f in futures} == {1}


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


def test_a_worker_that_is_told_to_end_gives_its_job_back(tmp_path: Path) -> None:
    with spool(tmp_path, lease_s=60) as executor, workers(tmp_path, 1) as (process,):
        future = executor.submit(job(seconds=30.0, answer=1))
        until(lambda: executor.folder.claims())
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        until(executor.folder.waiting)
        assert executor.folder.claims() == []
        assert not future.done()


def test_a_folder_that_is_no_spool(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no spool"):
        in_thread(tmp_path)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "spool.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="another version"):
        in_thread(tmp_path)
    (tmp_path / "spool" / "spool.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        in_thread(tmp_path)


class TestRenames:
    """One rename decides; what a network file system may do to it changes nothing."""

    def claimable(self, tmp_path: Path) -> tuple[SpoolFolder, JobFile]:
        folder = SpoolFolder(tmp_path / "spool")
        folder.create()
        file = JobFile(1, "r-1", 1)
        folder.publish(file, "text")
        return folder, file

    def test_one_of_many_workers_gets_a_job(self, tmp_path: Path) -> None:
        folder, _ = self.claimable(tmp_path)
        files = [JobFile(n, f"r-{n}", 1) for n in range(2, 40)]
        for file in files:
            folder.publish(file, "text")
        claims: list[Claim] = []

        def take(worker: str) -> None:
            for file in files:
                claim = folder.claim(file, worker)
                if claim is not None:
                    claims.append(claim)

        threads = [threading.Thread(target=take, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(c.file for c in claims) == files
        assert sorted(folder.claims()) == sorted(claims)

    def test_a_rename_whose_reply_was_lost_was_done(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, file = self.claimable(tmp_path)
        rename = Path.rename

        def asked_twice(self: Path, target: Path) -> Path:
            rename(self, target)
            return rename(self, target)  # NFS: the server did it, its reply got lost

        monkeypatch.setattr(Path, "rename", asked_twice)
        assert folder.claim(file, "w") == Claim(file, "w")
        assert folder.claim(file, "w2") is None

    def test_a_listing_that_is_out_of_date_is_harmless(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with spool(tmp_path) as executor:
            future = executor.submit(job(answer=1))
            until(executor.folder.waiting)
            (file,) = executor.folder.waiting()
            stale = [*SpoolFolder(tmp_path / "spool").waiting(), JobFile(7, "r-gone", 1)]
            monkeypatch.setattr(SpoolFolder, "waiting", lambda self: stale)
            other = SpoolFolder(tmp_path / "spool")
            assert other.claim(file, "quicker") is not None
            assert in_thread(tmp_path) == 0
            monkeypatch.undo()
            assert not future.done()

    def test_a_result_that_shows_before_its_content_is_waited_for(self, tmp_path: Path) -> None:
        with spool(tmp_path) as executor:
            future = executor.submit(job(answer=1))
            until(executor.folder.waiting)
            text = answer(job(answer=1), value=1)
            path = tmp_path / "spool" / "results" / "slow.result"
            path.write_text(text[: len(text) // 2])
            time.sleep(0.3)
            assert executor.health().deliveries == {}
            path.write_text(text)
            assert future.result(60).result.value == 1

    def test_writing_is_whole_or_not_at_all(self, tmp_path: Path) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                spool_folder.write_whole(tmp_path / "file", "x" * 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert os.listdir(tmp_path) == []
