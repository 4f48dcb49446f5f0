"""The worker's end of a spool: killed, stopped, on a full disk, with a wrong clock, told to end."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpro.errors import UserError

from .spooled import WORKER, in_thread, spool, until, workers
from .work import job


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
        "from tests.executors.spooled import in_thread, until\n"
        "from tests.executors.work import job\n"
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
    ) + WORKER.replace("import sys; ", "")
    # A date far away would end any lease at once; a busy machine does not end one of ten seconds.
    with spool(tmp_path, lease_s=10) as executor, workers(tmp_path, 1, code=wrong):
        futures = [executor.submit(job(f"r-{n}", seconds=0.4, answer=n)) for n in range(6)]
        assert [f.result(60).result.value for f in futures] == list(range(6))
        record = futures[-1].result().record()
        assert executor.health().problems == (), "a lease longer than a beat, whatever the date"
    assert abs(record["received_at"] - time.time()) < 60, "the controller's clock"
    assert {f.result().result.attempt for f in futures} == {1}


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
