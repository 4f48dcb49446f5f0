"""Workers that are started for the user: as batch jobs, and over ssh."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelpro._optional import present
from kernelpro.executors import launched
from kernelpro.executors.base import open_executor
from kernelpro.executors.spool import SpoolExecutor

from .work import job


@contextlib.contextmanager
def opened(spec: str, tmp_path: Path) -> Iterator[SpoolExecutor]:
    executor = open_executor(spec, cache_root=tmp_path)
    assert isinstance(executor, SpoolExecutor)
    try:
        yield executor
    finally:
        executor.close()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called ``ssh`` that stays on this machine, with a log of what it was asked."""
    log = tmp_path / "asked"
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {log}\n'
        'while [ "$1" != "${1#-}" ]; do [ "$1" = -o ] && shift; shift; done\n'
        "host=$1; shift\n"
        f'[ "$host" = down ] && exit 255\n'
        'exec sh -c "exec $*"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def test_a_worker_on_every_host_started_over_ssh(tmp_path: Path, ssh: Path) -> None:
    spec = f"ssh:{tmp_path}/spool,hosts=gpu1+gpu2,device=cpu,python={sys.executable},lease_s=2"
    with opened(spec, tmp_path) as executor:
        futures = [executor.submit(job(f"r-{n}", seconds=0.05, answer=n)) for n in range(30)]
        assert [f.result(60).result.value for f in futures] == list(range(30))
        pids = {f.result().result.place.pid for f in futures}
        asked = ssh.read_text().splitlines()
    assert {line.split()[3] for line in asked} == {"gpu1", "gpu2"}
    assert all("-m kernelpro worker --spool" in line for line in asked)
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "workers end with their executor"
        time.sleep(0.05)


def test_a_host_that_is_down_is_named_and_the_others_work(tmp_path: Path, ssh: Path) -> None:
    spec = f"ssh:{tmp_path}/spool,hosts=down+gpu2,device=cpu,python={sys.executable},lease_s=2"
    with opened(spec, tmp_path) as executor:
        assert executor.submit(job(answer=1)).result(60).result.value == 1
        deadline = time.monotonic() + 30
        while "the worker on down ended with status 255" not in executor.health().problems:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(not present("submitit"), reason="needs kernelpro[slurm]")
def test_batch_jobs_are_workers_and_are_started_again(tmp_path: Path) -> None:
    """submitit's own local cluster runs the jobs that Slurm would."""
    spec = f"slurm:{tmp_path}/spool,cluster=local,device=cpu,gpus=0,cpus=1,lease_s=2"
    with opened(spec, tmp_path) as executor:
        first = executor.submit(job("r-0")).result(120)
        assert first.result.place.executor == "slurm"
        futures = [executor.submit(job(f"r-{n}", seconds=0.2, answer=n)) for n in range(1, 9)]
        os.kill(first.result.place.pid, signal.SIGKILL)
        assert [f.result(120).result.value for f in futures] == list(range(1, 9))
        assert {f.result().result.place.pid for f in futures} != {first.result.place.pid}
        assert any("Slurm job" in problem for problem in executor.health().problems)


def test_workers_that_end_at_once_are_not_started_for_ever() -> None:
    quick = launched.QuickEnds()
    for _ in range(launched.MAX_QUICK_ENDS):
        assert not quick.too_many
        quick.ended(time.monotonic())
    assert quick.too_many
    quick.ended(time.monotonic() - 2 * launched.QUICK_END_S)
    assert not quick.too_many
