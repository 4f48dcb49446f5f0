"""Exactly-once accounting: which jobs are open, and what to make of each result that arrives.

The first intact answer to a job counts; whatever comes after it, or answers no job of ours, is
named and set aside. Knows no transport.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from typing import NamedTuple

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import (
    MAX_ATTEMPTS,
    Delivery,
    Health,
    Job,
    JobResult,
    Timed,
    WorkerHealth,
)
from kernelpro.executors.envelope import Rejected, digest_of, seal, unseal

KEPT = 200
"""Deliveries that did not count, kept with their reasons."""


class _Open(NamedTuple):
    job: Job
    text: str
    digest: str
    future: Future[Timed]
    submitted_at: float


class Accounts:
    """Open and closed jobs of one executor. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._closed: dict[str, str] = {}
        """Job id -> digest of its job."""
        self._losses: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.set_aside: deque[Delivery] = deque(maxlen=KEPT)

    def open(self, job: Job) -> tuple[Future[Timed], str, bool]:
        """(future, sealed job, is new); ``UserError`` if the id names other work that is open."""
        text = seal(job)
        digest = digest_of(text)
        with self._lock:
            known = self._open.get(job.id)
            if known is None:
                future: Future[Timed] = Future()
                self._open[job.id] = _Open(job, text, digest, future, time.time())
                self._closed.pop(job.id, None)
                return future, text, True
            if known.digest != digest:
                raise UserError(f"Two different jobs are called {job.id!r}")
            return known.future, text, False

    def text(self, job_id: str) -> str | None:
        """The sealed job, None unless it is open."""
        with self._lock:
            known = self._open.get(job_id)
        return known.text if known else None

    def open_ids(self) -> tuple[str, ...]:
        """Jobs without a result, in the order they were submitted."""
        with self._lock:
            return tuple(self._open)

    def deliver(self, text: str) -> Delivery:
        """Take in a result; completes the job's future if it is the first intact one."""
        try:
            result = unseal(JobResult, text)
        except Rejected as fault:
            return self._noted(Delivery("corrupt", None, str(fault)))
        with self._lock:
            known = self._open.get(result.job_id)
            before = self._closed.get(result.job_id)
            wanted = known.digest if known else before
            if wanted is None:
                delivery = Delivery("foreign", result.job_id, f"no job {result.job_id!r} was given")
            elif wanted != result.digest:
                reason = f"it answers another version of job {result.job_id!r}"
                delivery = Delivery("foreign", result.job_id, reason)
            elif known is None:
                reason = f"attempt {result.attempt} from {result.place.worker} came after the job"
                delivery = Delivery("duplicate", result.job_id, f"{reason} was counted")
            else:
                delivery = self._answer(known, result)
        if delivery.verdict in ("counted", "failed") and known is not None:
            _complete(known, result)
        return self._noted(delivery)

    def lost(self, job_id: str, reason: str) -> bool:
        """A worker went away with the job. True = try again; False = it is given up."""
        with self._lock:
            known = self._open.get(job_id)
            if known is None:
                return False
            self._losses[job_id] += 1
            if self._losses[job_id] < MAX_ATTEMPTS:
                return True
            self._close(known)
        message = f"{job_id} was given up after {MAX_ATTEMPTS} lost workers; the last: {reason}"
        known.future.set_exception(MachineError(message))
        self._noted(Delivery("failed", job_id, message))
        return False

    def fail(self, job_id: str, error: BaseException) -> None:
        """End an open job with ``error``."""
        with self._lock:
            known = self._open.get(job_id)
            if known is not None:
                self._close(known)
        if known is not None and not known.future.done():
            known.future.set_exception(error)

    def health(self, workers: tuple[WorkerHealth, ...], problems: tuple[str, ...]) -> Health:
        """The executor's health, with what was delivered to it."""
        with self._lock:
            return Health(workers, problems, dict(self.verdicts), tuple(self.set_aside))

    def interrupt(self) -> None:
        """End every open job as interrupted."""
        for job_id in self.open_ids():
            self.fail(job_id, KeyboardInterrupt())

    def abandon(self, reason: str) -> None:
        """End every open job with ``MachineError``."""
        for job_id in self.open_ids():
            self.fail(job_id, MachineError(f"{job_id} will not be done: {reason}"))

    def _answer(self, known: _Open, result: JobResult) -> Delivery:
        if result.error is None:
            self._close(known)
            return Delivery("counted", result.job_id, "")
        if result.error.kind == "machine":
            self._losses[result.job_id] += 1
            if self._losses[result.job_id] < MAX_ATTEMPTS:
                return Delivery("retry", result.job_id, result.error.message)
        self._close(known)
        return Delivery("failed", result.job_id, result.error.message)

    def _close(self, known: _Open) -> None:
        del self._open[known.job.id]
        self._closed[known.job.id] = known.digest
        self._losses.pop(known.job.id, None)

    def _noted(self, delivery: Delivery) -> Delivery:
        with self._lock:
            self.verdicts[delivery.verdict] += 1
            if delivery.verdict != "counted":
                self.set_aside.append(delivery)
        return delivery


def _complete(known: _Open, result: JobResult) -> None:
    if result.error is None:
        known.future.set_result(Timed(result, known.submitted_at, time.time()))
        return
    where = f"{result.place.worker} on {result.place.host}"
    if result.error.kind == "user":
        known.future.set_exception(UserError(result.error.message))
    else:
        known.future.set_exception(MachineError(f"{result.error.message} (worker {where})"))
