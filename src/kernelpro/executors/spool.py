"""The controller's end of a spool: publishes jobs, counts results, and misses silent workers.

Works for workers that share the folder, and for those it is carried to and back from by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, Protocol

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.accounts import Accounts
from kernelpro.executors.base import (
    Builds,
    Capacity,
    Health,
    Job,
    JobResult,
    Place,
    Timed,
    WorkerHealth,
)
from kernelpro.executors.envelope import Rejected, unseal
from kernelpro.executors.fair import FairQueue, Waiting
from kernelpro.executors.spool_folder import FULL, LEASE_S, Claim, JobFile, SpoolFolder
from kernelpro.schema.codec import from_jsonable

POLL_S = 0.05
SLOW_POLL_S = 1.0
"""Between looks for silent workers and missing jobs."""
SETTLE_S = 5.0
"""How long a damaged file may still be in the making (a file system that shows a rename before
its content)."""
AHEAD = 2
"""Jobs published per live worker: few, so that fair share and order stay the controller's."""


class Launcher(Protocol):
    """Starts workers on the spool and keeps them coming."""

    def mend(self, needed: bool) -> list[str]:
        """Start what is missing if there is work; what a person should look at."""
        ...

    def close(self) -> None:
        """End the workers it started."""
        ...


class _Seen(NamedTuple):
    said: str
    at: float
    """This process's monotonic clock when it was first seen: nobody else's clock counts."""


def spool_executor(
    argument: str = "", *, cache_root: Path, lease_s: float | str = LEASE_S
) -> SpoolExecutor:
    """``spool:DIR``; start workers with ``kernelpro worker --spool DIR``. ``lease_s=0``: the
    folder is carried to the workers by hand, so silence means nothing."""
    if not argument:
        raise UserError("A spool needs a folder: --executor spool:DIR")
    return SpoolExecutor(argument, lease_s=float(lease_s))


class SpoolExecutor:
    """See :class:`Executor`. One per folder at a time."""

    overlaps = True
    builds: Builds = "none"

    def __init__(
        self, root: Path | str, *, lease_s: float = LEASE_S, name: str = "spool",
        launcher: Launcher | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.accounts = Accounts()
        self.folder = SpoolFolder(root)
        self.folder.create(lease_s=lease_s or LEASE_S)
        self._only_controller = _lock(self.folder.root)
        self._lease_s = float(self.folder.settings()["lease_s"]) if lease_s else float("inf")
        self._launcher = launcher
        self._queue = FairQueue()
        self._jobs: dict[str, Waiting] = {}
        """Open jobs by id."""
        self._order = 0
        self._last_share: str | None = None
        """Whose job was published last."""
        self._published: dict[str, float] = {}
        """Open jobs that are out there, and when they were last seen anywhere."""
        self._workers: dict[str, _Seen] = {}
        self._gone: set[str] = set()
        """Workers that were given up; they may come back."""
        self._doubtful: dict[str, float] = {}
        self._problems: deque[str] = deque(maxlen=50)
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._adopt()
        self._thread = threading.Thread(target=self._run, name=f"spool-{name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Timed]:
        """See :class:`Executor`. A result that an earlier controller counted is used again."""
        future, text, new = self.accounts.open(job)
        if not new:
            return future
        with self._lock:
            if self._stopping.is_set():
                self.accounts.interrupt()
                return future
            kept = self.folder.kept(job.id)
            if kept is not None and self.accounts.deliver(kept).verdict == "counted":
                return future
            waiting = Waiting(job, text, 1)
            self._jobs[job.id] = waiting
            if job.id not in self._published:
                self._queue.put(waiting)
        return future

    def capacity(self) -> Capacity:
        """See :class:`Executor`."""
        with self._lock:
            busy = len({claim.worker for claim in self.folder.claims()})
            waiting = len(self._queue) + len(self.folder.waiting())
            return Capacity(workers=len(self._workers), busy=busy, waiting=waiting)

    def health(self) -> Health:
        """See :class:`Executor`."""
        with self._lock:
            workers = tuple(_worker_health(n, seen) for n, seen in sorted(self._workers.items()))
            problems = tuple(self._problems)
        return self.accounts.health(workers, problems)

    def release(self, share: str) -> None:
        """See :class:`Executor`."""
        with self._lock:
            self._queue.forget(share)
            self.folder.forget(f"{share}-")

    def close(self) -> None:
        """See :class:`Executor`. Jobs that nobody has yet are taken back."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join()
        with self._lock:
            for file in self.folder.waiting():
                if file.job_id in self._jobs:
                    self.folder.withdraw(file)
        if self._launcher is not None:
            self._launcher.close()
        self.accounts.interrupt()
        os.close(self._only_controller)

    # Below: the executor's own thread, under its lock.

    def _adopt(self) -> None:
        """What an earlier controller left: results are kept, and what is being worked on may be
        asked for again; what waits is taken back, because only what is asked for is wanted."""
        now = time.monotonic()
        for path in self.folder.arrived():
            with contextlib.suppress(OSError, Rejected):
                result = unseal(JobResult, path.read_text("utf-8"))
                self.folder.keep(path, result.job_id)
        for file in self.folder.waiting():
            self.folder.withdraw(file)
            self._order = max(self._order, file.order)
        for claim in self.folder.claims():
            self._published[claim.file.job_id] = now
            self._order = max(self._order, claim.file.order)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            if not self._stopping.is_set():  # a fault of this program: nobody must wait for ever
                self.accounts.abandon(f"the thread of the executor {self.name} has ended")

    def _work(self) -> None:
        slow_due = 0.0
        while not self._stopping.wait(POLL_S):
            try:
                with self._lock:
                    self._collect()
                    if time.monotonic() >= slow_due:
                        slow_due = time.monotonic() + SLOW_POLL_S
                        self._look_around()
                    self._publish()
            except OSError as error:  # a server that is away comes back
                self._note(f"the spool {self.folder.root} does not answer: {error}")
                self._stopping.wait(SLOW_POLL_S)

    def _collect(self) -> None:
        """Count what has arrived."""
        for path in self.folder.arrived():
            try:
                text = path.read_text("utf-8", errors="replace")
            except OSError:  # gone, or not readable yet: it is listed again
                continue
            if not self._settled(path, text):
                continue
            delivery = self.accounts.deliver(text)
            job_id = delivery.job_id
            adopted = job_id in self._published and job_id not in self._jobs
            if job_id is not None and (delivery.verdict == "counted" or adopted):
                self.folder.keep(path, job_id)
            elif delivery.verdict in ("corrupt", "foreign"):
                self.folder.reject(path, delivery.reason)
                self._note(f"{path.name} was rejected: {delivery.reason}")
            else:
                path.unlink(missing_ok=True)
            if job_id in self._jobs and delivery.verdict in ("counted", "failed", "retry"):
                seconds = time.monotonic() - self._published.get(job_id, time.monotonic())
                self._queue.served(self._jobs[job_id].job, seconds)
                self._after(job_id, retry=delivery.verdict == "retry")

    def _settled(self, path: Path, text: str) -> bool:
        """False while a damaged file may still be in the making."""
        try:
            unseal(JobResult, text)
        except Rejected:
            first_seen = self._doubtful.setdefault(path.name, time.monotonic())
            if time.monotonic() - first_seen < SETTLE_S:
                return False
        self._doubtful.pop(path.name, None)
        return True

    def _after(self, job_id: str, *, retry: bool) -> None:
        """A job's attempt has come back."""
        waiting = self._jobs[job_id]
        self._published.pop(job_id, None)
        for file in self.folder.waiting():
            if file.job_id == job_id:  # carried by hand, or given back meanwhile
                self.folder.withdraw(file)
        if retry:
            self._again(waiting)
        elif job_id not in self.accounts.open_ids():
            del self._jobs[job_id]

    def _look_around(self) -> None:
        """Who is silent, and what is missing."""
        now = time.monotonic()
        beats, claims = self.folder.beats(), self.folder.claims()
        holders = {claim.worker for claim in claims}
        for worker, said in beats.items():
            if worker not in self._workers or self._workers[worker].said != said:
                self._workers[worker] = _Seen(said, now)
                self._gone.discard(worker)
        for worker in holders - self._workers.keys() - self._gone:
            self._workers[worker] = _Seen("", now)
        for worker, seen in list(self._workers.items()):
            if now - seen.at > self._lease_s:
                self._note(f"worker {worker} has been silent for {self._lease_s:g} s: given up")
                self._gone.add(worker)
                self.folder.leave(worker)
                del self._workers[worker]
            elif worker not in beats and worker not in holders:
                del self._workers[worker]  # it left in good order
        for claim in claims:
            if claim.worker in self._gone:
                self._reclaim(claim)
        self._look_for_missing(now, {claim.file.job_id for claim in claims})
        if self._launcher is not None:
            for problem in self._launcher.mend(bool(self._jobs)):
                self._note(problem)

    def _look_for_missing(self, now: float, claimed: set[str]) -> None:
        """Publish jobs again that have been in no folder for as long as a lease."""
        there = claimed | {file.job_id for file in self.folder.waiting()}
        for job_id, last_seen in list(self._published.items()):
            if job_id in there:
                self._published[job_id] = now
            elif now - last_seen > self._lease_s:
                del self._published[job_id]
                if (waiting := self._jobs.get(job_id)) is not None:
                    self._note(f"{job_id} is in no folder any more: published again")
                    self._again(waiting)

    def _reclaim(self, claim: Claim) -> None:
        job_id = claim.file.job_id
        self._published.pop(job_id, None)
        self.folder.settle(claim)
        waiting = self._jobs.get(job_id)
        if waiting is not None and self.accounts.lost(job_id, f"worker {claim.worker} is gone"):
            self._again(waiting)
        elif waiting is not None:
            del self._jobs[job_id]

    def _again(self, waiting: Waiting) -> None:
        again = waiting._replace(attempt=waiting.attempt + 1)
        self._jobs[waiting.job.id] = again
        self._queue.put(again, front=True)

    def _publish(self) -> None:
        """Give out a little more than the workers that can be seen have in hand, by their device's
        model; everything, if none can be seen, a run's jobs one after another as far as that is
        fair: whoever comes works them in this order, and a change of problem costs it seconds."""
        if not self._workers:
            while len(self._queue) and self._publish_next(None):
                pass
            return
        waiting = Counter(
            self._jobs[file.job_id].job.model
            for file in self.folder.waiting() if file.job_id in self._jobs
        )  # fmt: skip
        for model, count in Counter(_model(seen) for seen in self._workers.values()).items():
            for _ in range(AHEAD * count - waiting[model] - waiting[None]):
                if not self._publish_next(model):
                    break

    def _publish_next(self, model: str | None) -> bool:
        """Publish the next job that fits ``model``; False if there is none, or no space."""
        waiting = self._queue.take(model, None if self._workers else self._last_share)
        if waiting is None:
            return False
        job_id = waiting.job.id
        if job_id not in self._jobs or self._jobs[job_id].attempt != waiting.attempt:
            return True  # answered meanwhile, by an attempt that was believed lost
        self._order += 1
        try:
            self.folder.publish(JobFile(self._order, job_id, waiting.attempt), waiting.text)
        except OSError as error:
            self._queue.put(waiting, front=True)
            if error.errno not in FULL:
                raise
            self._note(f"jobs wait for space in {self.folder.root}: {error}")
            return False
        self._published[job_id] = time.monotonic()
        self._last_share = waiting.job.share
        return True

    def _note(self, problem: str) -> None:
        if not self._problems or self._problems[-1] != problem:
            self._problems.append(problem)


def _worker_health(name: str, seen: _Seen) -> WorkerHealth:
    try:
        said = json.loads(seen.said)
        place, job = from_jsonable(Place, said["place"]), str(said["job"])
    except (ValueError, KeyError, TypeError) as error:
        return WorkerHealth(name, "lost", None, detail=f"it says nothing readable: {error!r}")
    return WorkerHealth(name, "busy" if job else "idle", place, job)


def _model(seen: _Seen) -> str | None:
    place = _worker_health("", seen).place
    return place.model if place else None


def _lock(root: Path) -> int:
    """Dies with the process; ``MachineError`` if another controller has the spool."""
    descriptor = os.open(root / "controller.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise MachineError(
            f"Another controller is using the spool {root}; wait for it, or use another folder"
        ) from None
    return descriptor
