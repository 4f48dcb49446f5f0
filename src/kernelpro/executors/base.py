"""The contract of every executor: jobs in, each job's result out exactly once, whoever dies.

Records that travel between machines, and the two registries: executors, and the handlers that
workers perform jobs with. Must not know what a job is about.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from kernelpro.errors import KernelproError, UserError
from kernelpro.registry import Registry
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.hardware import Device

Pool = Literal["device", "cpu"]
"""``device``: a worker that has its device to itself; ``cpu``: builds, beside the timings."""
Builds = Literal["none", "shared", "carried"]
"""Builds ahead: not at all, into a cache the workers share, or carried to them as files."""
MAX_ATTEMPTS = 5
"""Workers a job may lose before it is given up as the cause (chosen: a random loss of one worker
in ten takes a job down five times in a row once in 100,000)."""
JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What a job may be called: it is a file name in a spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work. Equal work has an equal id, so that a restarted controller finds it."""

    id: str
    kind: str
    """Name of its handler in ``HANDLERS``."""
    payload: dict[str, Any]
    """JSON, read by the handler only."""
    share: str = ""
    """Whose fair share it counts against: the run's id."""
    model: str | None = None
    """Device model it must run on (``device_model``); None = any."""
    pool: Pool = "device"
    timeout_s: float = 3600.0
    """After this long a worker counts as hung."""

    __pydantic_config__ = CONFIG

    def __post_init__(self) -> None:
        if not JOB_ID.fullmatch(self.id):
            raise ValueError(f"a job's id is letters, digits, '.', '_' and '-', not {self.id!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job ran, and on what."""

    executor: str
    worker: str
    host: str
    pid: int
    device: str
    """``cpu`` or ``cuda:N`` as the worker counts."""
    model: str = ""
    uuid: str = ""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job has no value: ``machine`` is worth another worker, the others are not."""

    kind: Literal["user", "machine", "internal"]
    message: str

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What a worker hands back."""

    job_id: str
    digest: str
    """Content hash of the job it answers."""
    attempt: int
    place: Place
    seconds: float
    """The worker's own duration of the job."""
    at: str
    """The worker's own clock when it finished; for people, never compared."""
    value: Any = None
    error: JobError | None = None

    __pydantic_config__ = CONFIG


class Timed(NamedTuple):
    """A counted result with the controller's times of it (seconds since the epoch)."""

    result: JobResult
    submitted_at: float
    received_at: float

    def record(self) -> dict[str, Any]:
        """Where and on what it ran, and when, for the record of the result."""
        return ran_on(
            self.result.place, job=self.result.job_id, attempt=self.result.attempt,
            seconds=self.result.seconds, submitted_at=self.submitted_at,
            received_at=self.received_at,
        )  # fmt: skip


def ran_on(
    place: Place, *, job: str = "", attempt: int, seconds: float, submitted_at: float,
    received_at: float,
) -> dict[str, Any]:  # fmt: skip
    """What the record of a result says about where, on what and when it was found.

    ``job``: its id; several outcomes may come from one. "" = no job, the controller's own process.
    ``submitted_at`` and ``received_at`` are the controller's clock, ``seconds`` the worker's;
    ``queued_s`` is what is left: waiting, travelling, and earlier attempts that were lost.
    """
    return {
        "executor": place.executor, "worker": place.worker, "host": place.host, "pid": place.pid,
        "device": place.device, "model": place.model, "uuid": place.uuid, "job": job,
        "attempt": attempt,
        "seconds": round(seconds, 4),
        "queued_s": round(max(0.0, received_at - submitted_at - seconds), 4),
        "submitted_at": round(submitted_at, 3), "received_at": round(received_at, 3),
    }  # fmt: skip


class Capacity(NamedTuple):
    """How much an executor can do, and how much it has to do, right now."""

    workers: int
    busy: int
    waiting: int
    """Jobs that wait for a device."""
    builders: int = 0
    builds_waiting: int = 0


class WorkerHealth(NamedTuple):
    """One worker as the executor sees it."""

    name: str
    state: str
    """``starting``, ``idle``, ``busy``, ``lost`` or ``broken``."""
    place: Place | None
    job: str = ""
    detail: str = ""


Verdict = Literal["counted", "failed", "retry", "duplicate", "foreign", "corrupt"]
"""``failed``: counted as an error of the job; ``retry``: its worker's trouble, try another one."""


class Delivery(NamedTuple):
    """What became of one result."""

    verdict: Verdict
    job_id: str | None
    reason: str


class Health(NamedTuple):
    """What works and what does not."""

    workers: tuple[WorkerHealth, ...]
    problems: tuple[str, ...] = ()
    """What a person should look at, newest last."""
    deliveries: dict[str, int] = {}  # noqa: RUF012  (never changed)
    """Results by verdict: ``counted``, ``duplicate``, ``foreign`` ..."""
    set_aside: tuple[Delivery, ...] = ()
    """The latest that did not count."""


class Executor(Protocol):
    """Runs jobs somewhere. Safe to use from several threads."""

    name: str
    overlaps: bool
    """False: its workers share this process's processor cores, so nothing else should work while
    they time."""
    builds: Builds

    def submit(self, job: Job) -> Future[Timed]:
        """Queue ``job``. The future ends with its result, counted once however often it arrives;
        with ``UserError`` or ``MachineError`` if it cannot be done; or, if the executor is closed
        first, with ``KeyboardInterrupt``. Submitting an open job again gives its future."""
        ...

    def capacity(self) -> Capacity:
        """Right now."""
        ...

    def health(self) -> Health:
        """Right now."""
        ...

    def release(self, share: str) -> None:
        """The run ``share`` is over: what is kept for its resumption may go."""
        ...

    def close(self) -> None:
        """End the workers it started. Jobs that are not done end as interrupted."""
        ...


class Lost(KernelproError):
    """A worker went away with its job; the job itself may be fine."""


@dataclass(slots=True)
class Workplace:
    """What a handler works with on a worker."""

    place: Place
    cache_root: Path
    warm: dict[str, Any] = field(default_factory=dict)
    """Whatever handlers keep between jobs; objects with ``close`` are closed at the end."""

    def close(self) -> None:
        """End what is kept."""
        for kept in self.warm.values():
            kept.close()
        self.warm.clear()


Handler = Callable[[dict[str, Any], Workplace], Any]
"""Performs a job's payload; returns records or JSON. Raises ``KernelproError``."""

EXECUTORS = Registry(
    "executor",
    {
        "local": "kernelpro.executors.local:local_executor",
        "ray": "kernelpro.executors.ray_cluster:ray_executor",
        "slurm": "kernelpro.executors.launched:slurm_executor",
        "spool": "kernelpro.executors.spool:spool_executor",
        "ssh": "kernelpro.executors.launched:ssh_executor",
    },
)
"""Factories ``(argument, *, cache_root, **options) -> Executor``."""

HANDLERS = Registry(
    "job",
    {
        "prepare": "kernelpro.loop.jobs:prepare_job",
        "build": "kernelpro.loop.jobs:build_job",
        "evaluate": "kernelpro.loop.jobs:evaluate_job",
        "remeasure": "kernelpro.loop.jobs:remeasure_job",
        "simulated_prepare": "kernelpro.testing.simulated_jobs:prepare_job",
        "simulated_evaluate": "kernelpro.testing.simulated_jobs:evaluate_job",
        "simulated_remeasure": "kernelpro.testing.simulated_jobs:remeasure_job",
        "simulated_work": "kernelpro.testing.simulated_jobs:work_job",
    },
)


def open_executor(spec: str, *, cache_root: Path) -> Executor:
    """The executor behind ``NAME[:ARGUMENT][,option=value...]``, e.g. ``spool:DIR,lease_s=30``.

    ``UserError`` for an unknown name or option.
    """
    head, *rest = spec.split(",")
    name, _, argument = head.partition(":")
    options = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"Executor option {part!r} is not of the form name=value (in {spec!r})")
        options[key.strip()] = value.strip()
    factory = EXECUTORS.load(name)
    try:
        executor: Executor = factory(argument, cache_root=cache_root, **options)
    except (TypeError, ValueError) as error:
        raise UserError(f"The executor {spec!r} cannot take its options: {error}") from error
    return executor


def device_model(device: Device) -> str:
    """What must be equal for two timings to be comparable: a GPU's name, a CPU's with its cores."""
    return f"{device.name}, {device.units} cores" if device.kind == "cpu" else device.name


def place_of(device: Device, *, executor: str, worker: str) -> Place:
    """This process on this machine, with ``device``."""
    return Place(
        executor=executor, worker=worker, host=socket.gethostname(), pid=os.getpid(),
        device=device.id, model=device_model(device), uuid=device.uuid,
    )  # fmt: skip
