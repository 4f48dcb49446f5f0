"""Runs a campaign: so many problems at a time, each in a thread, all on one executor.

A problem that fails, whatever way, is noted and the others go on. Killed at any moment, it goes on
from its index and the runs' own records; nothing that was recorded is measured again.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kernelpro.campaign.index import LIVE, CampaignIndex, Entry
from kernelpro.errors import KernelproError, StoreError
from kernelpro.executors.base import Executor
from kernelpro.loop.base import Listener
from kernelpro.loop.elsewhere import REAL, SIMULATED, JobKinds, assemble_with, prepare_with
from kernelpro.loop.interrupts import Interrupts
from kernelpro.loop.run import read_result, resume_run, start_run
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import RunConfig
from kernelpro.schema.problem import Problem
from kernelpro.schema.result import RunResult
from kernelpro.store.lock import RunLock
from kernelpro.store.sqlite import is_begun

KINDS: dict[str, JobKinds] = {"real": REAL, "simulated": SIMULATED}
ACTIVE_PER_WORKER = 2
"""Problems at work for each worker (chosen: while one run's writer thinks, another's candidate is
timed)."""
MAX_ACTIVE = 64
"""Threads of the controller."""
LOOK_S = 2.0
"""Between looks at the executor, for whoever watches."""
LIVE_WORKERS = 64
"""Workers named there, those in trouble first."""
LOCK = "campaign.lock"


class Unreadable(NamedTuple):
    """A problem that could not be loaded."""

    name: str
    reason: str


Hear = Callable[[Entry], None]


class Campaign:
    """A campaign folder that this process works on."""

    def __init__(self, folder: Path) -> None:
        """Open an existing one; ``StoreError`` if another controller is at work on it."""
        self.index = CampaignIndex(folder)
        try:
            self._lock = RunLock(folder / LOCK)
        except StoreError:
            self.index.close()
            raise

    @classmethod
    def create(
        cls, folder: Path, problems: Sequence[Problem | Unreadable], config: RunConfig, *,
        kinds: str = "real",
    ) -> Campaign:  # fmt: skip
        """A new campaign in ``folder``. Unreadable problems are noted as failed."""
        campaign_id = secrets.token_hex(3)
        rows: list[tuple[Entry, Problem | None]] = []
        for position, problem in enumerate(problems, start=1):
            slug = re.sub(r"[^a-z0-9]+", "-", problem.name.lower()).strip("-")[:40] or "problem"
            unread = problem if isinstance(problem, Unreadable) else None
            entry = Entry(
                position=position, name=problem.name,
                run_id=f"{campaign_id}-{position:04d}-{slug}",
                state="failed" if unread else "waiting", detail=unread.reason if unread else "",
            )  # fmt: skip
            rows.append((entry, problem if isinstance(problem, Problem) else None))
        CampaignIndex.create(folder, campaign_id, config, kinds, rows).close()
        return cls(folder)

    def run(
        self, executor: Executor, *, cache_root: Path, active: int | None = None,
        again: bool = False, on_result: Callable[[RunResult], None] = lambda result: None,
        hear: Hear = lambda entry: None, listeners: Sequence[Listener] = (),
    ) -> list[Entry]:  # fmt: skip
        """Work until every problem is finished or failed; returns how each stands.

        ``again``: failed runs that have begun are tried again. Listeners hear the events of all
        runs, each from its run's thread. Ctrl-C ends the runs cleanly; go on with a new call.
        """
        wanted = [
            entry for entry in self.index.entries()
            if entry.state in ("waiting", "running")
            or (again and entry.state == "failed" and is_begun(self.index.runs / entry.run_id))
        ]  # fmt: skip
        if active is None:
            active = min(MAX_ACTIVE, ACTIVE_PER_WORKER * max(1, len(executor.health().workers)))
        kinds = KINDS[self.index.kinds]
        work = _Work(self.index, executor, kinds, cache_root, on_result, hear, tuple(listeners))
        sitting = self.index.sit_down()
        pool = ThreadPoolExecutor(active, thread_name_prefix="run")
        try:
            with Interrupts().installed():
                self._follow({pool.submit(work.one, entry): entry for entry in wanted}, executor,
                             sitting)  # fmt: skip
        except KeyboardInterrupt:
            # Runs end as interrupted when their jobs do.
            pool.shutdown(wait=False, cancel_futures=True)
            executor.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            self._look(executor, sitting)
            for verdict, job_id, reason in executor.health().set_aside:
                self.index.set_aside(verdict, job_id, reason)
        return self.index.entries()

    def _follow(
        self, open_runs: dict[Future[None], Entry], executor: Executor, sitting: int
    ) -> None:
        """Until the last run has ended: note how each does, and now and then how the workers do."""
        look_at = 0.0
        while open_runs:
            if (pause := look_at - time.monotonic()) <= 0:
                self._look(executor, sitting)
                look_at = time.monotonic() + (pause := LOOK_S)
            done, _ = wait(open_runs, timeout=pause, return_when=FIRST_COMPLETED)
            for future in done:
                self._close_entry(open_runs.pop(future), future)

    def _look(self, executor: Executor, sitting: int) -> None:
        self.index.still_here(sitting)
        _write_live(self.index.folder, executor)

    def close(self) -> None:
        """Let another controller in."""
        self.index.close()
        self._lock.release()

    def _close_entry(self, entry: Entry, future: Future[None]) -> None:
        """Whatever a run's thread ended with stays with that run."""
        if future.cancelled():
            return
        error = future.exception()
        if error is None or isinstance(error, KeyboardInterrupt | CancelledError):
            return
        kind = "" if isinstance(error, KernelproError) else f"{type(error).__name__}: "
        self.index.note(entry.position, "failed", f"{kind}{error}",
                        evaluations=self._evaluations(entry))  # fmt: skip

    def _evaluations(self, entry: Entry) -> int:
        folder = self.index.runs / entry.run_id
        with contextlib.suppress(KernelproError):
            if is_begun(folder):
                return read_result(folder).evaluations
        return 0


@dataclass(frozen=True, slots=True)
class _Work:
    """What every run's thread needs."""

    index: CampaignIndex
    executor: Executor
    kinds: JobKinds
    cache_root: Path
    on_result: Callable[[RunResult], None]
    hear: Hear
    listeners: tuple[Listener, ...]

    def one(self, entry: Entry) -> None:
        """Start a problem's run, or go on with it, to its end."""
        index = self.index
        index.note(entry.position, "running")
        folder = index.runs / entry.run_id
        assemble = assemble_with(self.executor, self.kinds)
        if is_begun(folder):
            result = resume_run(folder, cache_root=self.cache_root, assemble=assemble,
                                listeners=self.listeners, same_device=False)  # fmt: skip
        else:
            result = start_run(
                index.problem(entry.position), index.config, run_id=entry.run_id,
                runs_root=index.runs, cache_root=self.cache_root, listeners=self.listeners,
                prepare=prepare_with(self.executor, self.kinds), assemble=assemble,
            )  # fmt: skip
        if result.stop_reason == "interrupted":
            return
        self.on_result(result)
        self.executor.release(entry.run_id)
        index.note(
            entry.position, "finished", result.detail, speedup=result.speedup,
            keep_eager=result.keep_eager, evaluations=result.evaluations,
        )  # fmt: skip
        self.hear(index.entries()[entry.position - 1])


def _write_live(folder: Path, executor: Executor) -> None:
    """For whoever looks from outside; a disk that is full or away must not end the campaign."""
    partial = folder / f"{LIVE}.new"
    with contextlib.suppress(OSError):
        health = executor.health()
        workers = sorted(health.workers, key=lambda worker: worker.state in ("busy", "idle"))
        state = {
            "at": time.time(), "executor": executor.name,
            "capacity": executor.capacity()._asdict(),
            "health": health._replace(workers=tuple(workers[:LIVE_WORKERS]))._asdict(),
        }  # fmt: skip
        partial.write_text(dumps(state), encoding="utf-8")
        partial.replace(folder / LIVE)
