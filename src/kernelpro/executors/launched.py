"""Spools whose workers are started for the user: as Slurm jobs through submitit, or over ssh.

A worker is one long job that keeps its device and what it has warm, not a job per evaluation. The
folder must be visible on both sides under one path.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelpro._optional import require
from kernelpro.errors import UserError
from kernelpro.executors.spool import SpoolExecutor
from kernelpro.executors.spool_folder import LEASE_S
from kernelpro.executors.spool_worker import serve

QUICK_END_S = 60.0
MAX_QUICK_ENDS = 3
"""Workers in a row that ended within ``QUICK_END_S``, after which no more are started (chosen)."""


def slurm_executor(
    argument: str = "", *, cache_root: Path, workers: int | str = 1, device: str = "auto",
    cluster: str = "slurm", minutes: int | str = 240, partition: str | None = None,
    account: str | None = None, gpus: int | str = 1, cpus: int | str = 8,
    lease_s: float | str = LEASE_S,
) -> SpoolExecutor:  # fmt: skip
    """``slurm:DIR``: ``workers`` jobs of ``minutes`` each, started again while there is work.

    ``DIR`` is on a file system that the compute nodes share. ``cluster=local`` runs the same jobs
    as processes on this machine.
    """
    if not argument:
        raise UserError("Slurm workers need a folder on a shared disk: --executor slurm:DIR")
    submitit = require("submitit", extra="slurm", purpose="The Slurm executor")
    folder = Path(argument).resolve()
    parameters: dict[str, Any] = {
        "name": "kernelpro-worker", "timeout_min": int(minutes), "cpus_per_task": int(cpus),
        "gpus_per_node": int(gpus), "slurm_partition": partition, "slurm_account": account,
    }  # fmt: skip
    launcher = SlurmLauncher(
        submitit.AutoExecutor(folder=folder / "slurm", cluster=cluster),
        {name: value for name, value in parameters.items() if value is not None},
        int(workers), folder, device, cache_root,
    )  # fmt: skip
    return SpoolExecutor(folder, lease_s=float(lease_s), name="slurm", launcher=launcher)


def ssh_executor(
    argument: str = "", *, cache_root: Path, hosts: str = "", device: str = "auto",
    python: str = "python3", lease_s: float | str = LEASE_S,
) -> SpoolExecutor:  # fmt: skip
    """``ssh:DIR,hosts=a+b``: a worker on each host, started with ``ssh`` and ``python`` there."""
    names = [name for name in hosts.split("+") if name]
    if not argument or not names:
        raise UserError("ssh workers need a shared folder and hosts: --executor ssh:DIR,hosts=a+b")
    folder = Path(argument).resolve()
    words = [python, "-m", "kernelpro", "worker", "--spool", str(folder), "--device", device]
    launcher = SshLauncher(names, words)
    return SpoolExecutor(folder, lease_s=float(lease_s), name="ssh", launcher=launcher)


class QuickEnds:
    """Notices workers that end as soon as they start."""

    def __init__(self) -> None:
        self._in_a_row = 0

    @property
    def too_many(self) -> bool:
        """True once starting more is pointless."""
        return self._in_a_row >= MAX_QUICK_ENDS

    def ended(self, started_at: float) -> None:
        """A worker that was started at ``started_at`` (monotonic) is gone."""
        quick = time.monotonic() - started_at < QUICK_END_S
        self._in_a_row = self._in_a_row + 1 if quick else 0


class SlurmLauncher:
    """Workers as batch jobs; see ``spool.Launcher``."""

    def __init__(
        self, executor: Any, parameters: dict[str, Any], workers: int, folder: Path, device: str,
        cache_root: Path,
    ) -> None:  # fmt: skip
        executor.update_parameters(**parameters)
        self._executor = executor
        self._workers = workers
        self._work = (str(folder), device, str(cache_root))
        self._jobs: list[tuple[Any, float]] = []
        self._quick = QuickEnds()

    def mend(self, needed: bool) -> list[str]:
        """See ``spool.Launcher``."""
        problems = []
        for job, started_at in [item for item in self._jobs if item[0].done()]:
            self._jobs.remove((job, started_at))
            error = job.exception()
            if error is not None:
                self._quick.ended(started_at)
                said = str(error).strip().splitlines()[-1:] or ["no reason given"]
                problems.append(f"Slurm job {job.job_id} ended: {said[0]}")
        if needed and not self._quick.too_many:
            while len(self._jobs) < self._workers:
                job = self._executor.submit(batch_worker, *self._work)
                self._jobs.append((job, time.monotonic()))
        return problems

    def close(self) -> None:
        """Cancel the batch jobs."""
        for job, _ in self._jobs:
            job.cancel(check=False)
        self._jobs.clear()


def batch_worker(spool: str, device: str, cache_root: str) -> int:
    """What a batch job runs: a worker, until it is cancelled. How many jobs it did."""
    return serve(spool, device=device, cache_root=Path(cache_root), executor="slurm").jobs


class SshLauncher:
    """Workers as remote commands; see ``spool.Launcher``."""

    def __init__(self, hosts: Sequence[str], words: Sequence[str]) -> None:
        # Ends with the connection: with a terminal, hanging up reaches the worker.
        command = shlex.join(words)
        self._commands = {
            host: ["ssh", "-tt", "-o", "BatchMode=yes", host, command] for host in hosts
        }
        self._processes: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self._quick = QuickEnds()

    def mend(self, needed: bool) -> list[str]:
        """See ``spool.Launcher``."""
        problems = []
        for host, (process, started_at) in list(self._processes.items()):
            if process.poll() is not None:
                del self._processes[host]
                self._quick.ended(started_at)
                problems.append(f"the worker on {host} ended with status {process.returncode}")
        if needed and not self._quick.too_many:
            for host in self._commands.keys() - self._processes.keys():
                process = subprocess.Popen(
                    self._commands[host], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                    stderr=sys.stderr, start_new_session=True,
                )  # fmt: skip
                self._processes[host] = process, time.monotonic()
        return problems

    def close(self) -> None:
        """Hang up."""
        for process, _ in self._processes.values():
            process.terminate()
        for process, _ in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        self._processes.clear()
