"""The worker at the other end of a spool: takes jobs from the folder, puts results into it.

Needs no connection to the controller but the folder. Whatever happens to it, the job it had is done
by another; whatever happens to the disk, a finished result waits until it can be written.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kernelpro.executors.base import Job, Place, Workplace, place_of
from kernelpro.executors.envelope import Rejected, unseal
from kernelpro.executors.perform import perform
from kernelpro.executors.spool_folder import FULL, Claim, JobFile, SpoolFolder
from kernelpro.hardware.base import probe, resolve_device
from kernelpro.isolation.pool import visible
from kernelpro.schema.codec import to_jsonable

POLL_S = (0.02, 0.5)
"""First and longest pause between looks into an empty folder."""
BEATS_PER_LEASE = 6
FULL_PAUSE_S = 1.0
"""Pause before a result is written again to a disk that was full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """When a worker ends; by default only when it is told to."""

    drain: bool = False
    """End as soon as there is no job for it."""
    max_jobs: int | None = None
    idle_s: float | None = None
    """End after this long without a job."""


class Served(NamedTuple):
    """What a worker did."""

    worker: str
    jobs: int
    device: str


def serve(
    spool: Path | str, *, device: str = "auto", cache_root: Path, name: str | None = None,
    results: Path | str | None = None, executor: str = "spool", options: WorkOptions | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Served:  # fmt: skip
    """Work on the spool's jobs. ``results``: write results to another folder, to be carried back.

    The folder is made a spool if it is none, except to ``drain`` it: then ``UserError``.
    ``MachineError`` if the device does not work. Ctrl-C gives the job in hand back and ends.
    """
    folder = SpoolFolder(spool, results=results)
    if options is not None and options.drain:
        folder.settings()
    # Workers may come before their controller; and empty folders are lost where a spool is carried
    # as a list of files.
    folder.create()
    lease_s = float(folder.settings()["lease_s"])
    name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    place = place_of(probe(_only_device(device)), executor=executor, worker=name)
    worker = _Worker(folder, place, cache_root, options or WorkOptions(), say)
    say(f"worker {name} on {place.model} ({place.device}) takes jobs from {folder.root}")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # how batch systems say "end"
    heart = _Heart(worker, lease_s / BEATS_PER_LEASE)
    try:
        worker.run()
    finally:
        heart.stop()
        worker.end()
    return Served(name, worker.jobs, place.device)


class _Worker:
    def __init__(
        self, folder: SpoolFolder, place: Place, cache_root: Path, options: WorkOptions,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.folder = folder
        self.place = place
        self.jobs = 0
        self.claim: Claim | None = None
        self.deadline: float | None = None
        """Monotonic time from which the job in hand counts as hung."""
        self._workplace = Workplace(place=place, cache_root=cache_root)
        self._options = options
        self.say = say
        self._unfit: set[JobFile] = set()

    def run(self) -> None:
        """Until the options say so, or it is interrupted."""
        idle_since, pause = time.monotonic(), POLL_S[0]
        while self._options.max_jobs is None or self.jobs < self._options.max_jobs:
            if (taken := self._take()) is not None:
                self._do(*taken)
                idle_since, pause = time.monotonic(), POLL_S[0]
                continue
            idle_s = time.monotonic() - idle_since
            if self._options.drain or (
                self._options.idle_s is not None and idle_s >= self._options.idle_s
            ):
                return
            time.sleep(pause)
            pause = min(2 * pause, POLL_S[1])

    def end(self) -> None:
        """Give the job in hand back, and leave."""
        if self.claim is not None:
            self.folder.give_back(self.claim, attempt=self.claim.file.attempt)
            self.claim = None
        self._workplace.close()
        self.folder.leave(self.place.worker)

    def _take(self) -> tuple[Claim, Job, str] | None:
        """Claim the first waiting job that fits this device."""
        waiting = self.folder.waiting()
        self._unfit &= set(waiting)
        for file in waiting:
            if file in self._unfit or (text := self.folder.read_job(file)) is None:
                continue
            try:
                job = unseal(Job, text)
            except Rejected as reason:
                # The controller misses it and publishes it again.
                self.folder.reject(self.folder.root / "jobs" / file.name, str(reason))
                self.say(f"rejected {file.job_id}: {reason}")
                continue
            if job.model not in (None, self.place.model):
                self._unfit.add(file)
                continue
            self.claim = self.folder.claim(file, self.place.worker)
            if self.claim is not None:
                return self.claim, job, text
        return None

    def _do(self, claim: Claim, job: Job, text: str) -> None:
        self.say(f"{job.kind} {job.id} (attempt {claim.file.attempt})")
        self.deadline = time.monotonic() + job.timeout_s
        result = perform(text, claim.file.attempt, self._workplace)
        self.deadline = None
        self._deliver(claim, result)
        self.claim = None
        self.folder.settle(claim)
        self.jobs += 1

    def _deliver(self, claim: Claim, result: str) -> None:
        """Write the result; a full disk is waited for, since the work is done."""
        while True:
            try:
                self.folder.deliver(claim, result)
                return
            except OSError as error:
                if error.errno not in FULL:
                    raise
                self.say(f"the result of {claim.file.job_id} waits for space: {error}")
                time.sleep(FULL_PAUSE_S)


class _Heart:
    """Says in a thread that the worker is alive, and on what, until its job is overdue."""

    def __init__(self, worker: _Worker, interval_s: float) -> None:
        self._worker = worker
        self._interval_s = interval_s
        self._stopped = threading.Event()
        self._beat(0)
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No beat comes after this."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        count = 0
        while not self._stopped.wait(self._interval_s):
            deadline = self._worker.deadline
            if deadline is None or time.monotonic() < deadline:
                count += 1
                self._beat(count)

    def _beat(self, count: int) -> None:
        claim = self._worker.claim
        state = {
            "beat": count, "place": to_jsonable(self._worker.place),
            "job": claim.file.job_id if claim else "",
        }  # fmt: skip
        try:
            self._worker.folder.beat(self._worker.place.worker, state)
        except OSError as error:
            # A full disk, or a server that is away: the next beat tries again.
            self._worker.say(f"cannot say that I am alive: {error}")


def _only_device(device: str) -> str:
    """Hide every other GPU from this process; the device's name from here on."""
    inner, visible_devices = visible(resolve_device(device))
    if visible_devices is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible_devices
    return inner
