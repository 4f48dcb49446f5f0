"""Who is next: jobs wait per share, and the share that has had the least service goes first."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kernelpro.executors.base import Job

AFFINITY_S = 30.0
"""How far a worker may favour the share it served last (chosen: a change of problem costs it the
reference runs and the baseline's process, some seconds; this bounds the unfairness)."""


class Waiting(NamedTuple):
    """A job in the queue."""

    job: Job
    text: str
    attempt: int


class FairQueue:
    """Not thread-safe: its executor's own thread or lock guards it."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Waiting]] = {}
        self._served_s: dict[str, float] = {}
        self._mean_s = 1.0
        """What a job is expected to take: charged when it starts, corrected when it ends."""
        self._charged_s: dict[str, float] = {}

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    def put(self, waiting: Waiting, *, front: bool = False) -> None:
        """Queue a job; ``front``: one that was lost goes before its share's others."""
        share = waiting.job.share
        if share not in self._waiting:
            # A newcomer starts level with the least served: no credit for not having been there.
            others = [self._served_s[s] for s in self._waiting if s in self._served_s]
            least = min(others, default=0.0)
            self._served_s[share] = max(self._served_s.get(share, 0.0), least)
            self._waiting[share] = deque()
        if front:
            self._waiting[share].appendleft(waiting)
        else:
            self._waiting[share].append(waiting)

    def take(self, model: str | None = None, last_share: str | None = None) -> Waiting | None:
        """The next job for a worker with a device of ``model`` (None = any) that served
        ``last_share`` before; None if no job fits."""
        fitting = [
            share for share, queue in self._waiting.items()
            if model is None or queue[0].job.model in (None, model)
        ]  # fmt: skip
        if not fitting:
            return None
        share = min(fitting, key=self._served_s.__getitem__)
        if last_share in fitting and (
            self._served_s[last_share] - self._served_s[share] <= AFFINITY_S
        ):
            share = last_share
        queue = self._waiting[share]
        waiting = queue.popleft()
        if not queue:
            del self._waiting[share]
        self._served_s[share] += self._mean_s
        self._charged_s[waiting.job.id] = self._mean_s
        return waiting

    def served(self, job: Job, seconds: float) -> None:
        """``job``, taken before, has kept a worker for ``seconds``."""
        charged = self._charged_s.pop(job.id, 0.0)
        if job.share in self._served_s:
            self._served_s[job.share] += seconds - charged
        self._mean_s += 0.1 * (seconds - self._mean_s)

    def forget(self, share: str) -> None:
        """The share is over."""
        self._served_s.pop(share, None)
        if share in self._waiting:
            self._served_s[share] = 0.0

    def drain(self) -> list[Waiting]:
        """Everything that waits, taken out."""
        left = [waiting for queue in self._waiting.values() for waiting in queue]
        self._waiting.clear()
        return left
