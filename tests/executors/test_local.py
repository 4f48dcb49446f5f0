"""Worker processes of this machine, killed at random."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import open_executor
from kernelpro.executors.local import local_crew, local_executor

from .work import job


def test_workers_killed_at_random_lose_nothing(tmp_path: Path) -> None:
    crew = local_crew(["cpu", "cpu"], cache_root=tmp_path, overlaps=True)
    futures = [crew.submit(job(f"r-{n}", seconds=0.01, answer=n)) for n in range(60)]
    futures[0].result(60)
    stop, kills, draw = threading.Event(), [], random.Random(3)

    def kill_now_and_then() -> None:
        while not stop.wait(draw.uniform(0.05, 0.2)) and len(kills) < 4:
            busy = [w.place.pid for w in crew.health().workers if w.place and w.state == "busy"]
            if busy:
                kills.append(draw.choice(busy))
                os.kill(kills[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    while not kills:  # where jobs are quicker than the killer
        futures.append(crew.submit(job(f"r-{len(futures)}", seconds=0.01, answer=len(futures))))
        futures[-1].result(60)
    count = len(futures)
    assert [f.result(60).result.value for f in futures] == list(range(count))
    stop.set()
    killer.join()
    health = crew.health()
    crew.close()
    assert health.deliveries == {"counted": count}


def test_a_worker_that_died_idle_is_replaced_when_it_is_needed(tmp_path: Path) -> None:
    crew = local_crew(["cpu"], cache_root=tmp_path, overlaps=True)
    pid = crew.submit(job("r-1")).result(60).result.place.pid
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert crew.submit(job("r-2", answer=2)).result(60).result.place.pid != pid
    crew.close()


def test_a_stopped_worker_is_noticed_even_with_a_job_larger_than_a_pipe(tmp_path: Path) -> None:
    crew = local_crew(["cpu", "cpu"], cache_root=tmp_path, overlaps=True)
    pid = crew.submit(job("r-1")).result(60).result.place.pid
    os.kill(pid, signal.SIGSTOP)
    big = [crew.submit(job(f"r-big{n}", note="x" * 500_000, answer=n)) for n in range(4)]
    # Whichever of them the stopped worker has, the others are done by its colleague.
    deadline = time.monotonic() + 60
    while sum(f.done() for f in big) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sum(f.done() for f in big) >= 3
    os.kill(pid, signal.SIGKILL)
    assert [f.result(60).result.value for f in big] == list(range(4))
    crew.close()


def test_workers_end_with_their_controller(tmp_path: Path) -> None:
    crew = local_crew(["cpu"], cache_root=tmp_path, overlaps=True)
    pid = crew.submit(job("r-1")).result(60).result.place.pid
    crew.close()
    assert not Path(f"/proc/{pid}").exists()


def test_what_a_worker_said_before_it_died_is_told(tmp_path: Path) -> None:
    crew = local_crew(["cuda:7"], cache_root=tmp_path, overlaps=True)
    with pytest.raises(MachineError, match=r"No worker of local starts.*No device 'cuda:0'"):
        crew.submit(job("r-1")).result(60)
    crew.close()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", "Unknown executor 'nowhere'"),
        ("local,workers=9", "has 1 device"),
        ("local,speed=2", "cannot take its options"),
        ("local,workers", "not of the form name=value"),
        ("local:tpu", "No device 'tpu'"),
        ("spool", "needs a folder"),
        ("slurm", "need a folder on a shared disk"),
        ("ssh:x", "need a shared folder and hosts"),
    ],
)
def test_a_wrong_specification_is_the_users_error(spec: str, message: str, tmp_path: Path) -> None:
    if spec == "local,workers=9":
        spec = "local:cpu,workers=9"
    with pytest.raises(UserError, match=message):
        open_executor(spec, cache_root=tmp_path)


@pytest.mark.gpu
def test_every_gpu_has_a_worker_that_sees_no_other(tmp_path: Path) -> None:
    import torch

    count = torch.cuda.device_count()
    crew = local_executor("", cache_root=tmp_path)
    assert crew.overlaps
    assert crew.builds == "shared"
    futures = [crew.submit(job(f"r-{n}", seconds=0.5)) for n in range(3 * count)]
    places = [f.result(300).result.place for f in futures]
    assert {p.device for p in places} == {"cuda:0"}, "each counts its own"
    assert len({p.uuid for p in places}) == count
    crew.close()
