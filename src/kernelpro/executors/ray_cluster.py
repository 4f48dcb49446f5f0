"""The executor of a Ray cluster: an actor per GPU, builds as tasks on processor cores.

Ray places and starts; counting, fairness and repeats are the crew's. An actor reserves a whole GPU,
so nothing else that Ray starts shares it. A node that is lost takes only attempts with it.
"""

from __future__ import annotations

import gc
import os
import socket
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from kernelpro._optional import require
from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import Lost, Place, Pool, Workplace, place_of
from kernelpro.executors.crew import Crew, Slot
from kernelpro.executors.perform import perform
from kernelpro.hardware.base import probe
from kernelpro.schema.codec import from_jsonable, to_jsonable

NEAREST = "auto"
"""Address of the cluster this machine belongs to."""
HERE = "local"
"""Address of a new cluster on this machine alone."""
KNOCK_S = 10.0


def ray_executor(
    argument: str = "", *, cache_root: Path, workers: int | str | None = None,
    device: str = "cuda", builders: int | str | None = None, gpus: float | str = 1,
) -> Crew:  # fmt: skip
    """``ray:ADDRESS`` (default: this machine's cluster; ``ray:local`` starts one here).

    ``workers``: actors, each with ``gpus`` of Ray's GPUs (default: one for every GPU the cluster
    has); more than there is room for wait for nodes to join. ``device=cpu``: what an actor works
    on; Ray's GPUs then only say how many. ``builders``: build tasks at a time, a core each.
    """
    ray = require("ray", extra="ray", purpose="The Ray executor")
    connected_here = _connect(ray, argument or NEAREST)
    count = int(workers) if workers is not None else int(ray.cluster_resources().get("GPU", 0))
    if count < 1:
        raise UserError(
            "The Ray cluster has no GPU. Add nodes with GPUs, or say how many actors to start on "
            "processors: --executor ray,device=cpu,gpus=0,workers=2"
        )
    if builders is None:
        builders = 0 if device == "cpu" else count
    slots: list[Slot] = [
        ActorSlot(ray, f"actor#{n}", device, float(gpus), cache_root) for n in range(count)
    ]
    slots += [TaskSlot(ray, f"task#{n}", cache_root) for n in range(int(builders))]
    return Crew(
        "ray", slots, overlaps=True, builds="carried" if int(builders) else "none",
        on_close=partial(_disconnect, ray) if connected_here else lambda: None,
    )  # fmt: skip


class Performer:
    """Runs inside Ray: one worker's place and what it keeps warm."""

    def __init__(self, executor: str, worker: str, device: str, cache_root: str) -> None:
        place = place_of(probe(device), executor=executor, worker=worker)
        self._workplace = Workplace(place=place, cache_root=Path(cache_root))
        # Ray makes every worker collect garbage when the cluster is short of something.
        gc.freeze()

    def hello(self) -> Any:
        """Its place, as JSON."""
        return to_jsonable(self._workplace.place)

    def perform(self, text: str, attempt: int) -> str:
        """The sealed result of a sealed job."""
        return perform(text, attempt, self._workplace)


class ActorSlot:
    """An actor with a GPU of its own; see ``crew.Slot``."""

    pool: Pool = "device"

    def __init__(self, ray: Any, name: str, device: str, gpus: float, cache_root: Path) -> None:
        self.name = name
        self._ray = ray
        self._device = device
        self._gpus = gpus
        self._cache_root = cache_root
        self._actor: Any = None

    def open(self) -> Future[Place]:
        """A new actor; ready when the cluster had room and it said hello."""
        self.kill()
        kind = self._ray.remote(Performer)
        # No restarts by Ray: the crew must know which attempt was lost.
        self._actor = kind.options(
            num_gpus=self._gpus, num_cpus=1, max_restarts=0, max_task_retries=0
        ).remote("ray", self.name, self._device, str(self._cache_root))
        ready: Future[Place] = Future()
        _then(self._actor.hello.remote(), ready, partial(from_jsonable, Place))
        return ready

    def start(self, text: str, attempt: int) -> Future[str]:
        """See ``crew.Slot``."""
        answer: Future[str] = Future()
        _then(self._actor.perform.remote(text, attempt), answer, str)
        return answer

    def kill(self) -> None:
        """See ``crew.Slot``."""
        if self._actor is not None and self._ray.is_initialized():
            self._ray.kill(self._actor, no_restart=True)
        self._actor = None


class TaskSlot:
    """One task at a time on a core anywhere; see ``crew.Slot``."""

    pool: Pool = "cpu"

    def __init__(self, ray: Any, name: str, cache_root: Path) -> None:
        self.name = name
        self._cache_root = cache_root
        self._ray = ray
        self._task = ray.remote(_perform_once).options(num_cpus=1, max_retries=0)
        self._running: Any = None

    def open(self) -> Future[Place]:
        """Ready at once: Ray finds a place for each task."""
        ready: Future[Place] = Future()
        ready.set_result(
            Place(executor="ray", worker=self.name, host="anywhere", pid=0, device="cpu")
        )
        return ready

    def start(self, text: str, attempt: int) -> Future[str]:
        """See ``crew.Slot``."""
        answer: Future[str] = Future()
        self._running = self._task.remote(text, attempt, self.name, str(self._cache_root))
        _then(self._running, answer, str)
        return answer

    def kill(self) -> None:
        """See ``crew.Slot``."""
        if self._running is not None and self._ray.is_initialized():
            self._ray.cancel(self._running, force=True)
        self._running = None


def _perform_once(text: str, attempt: int, worker: str, cache_root: str) -> str:
    place = place_of(probe("cpu"), executor="ray", worker=worker)
    workplace = Workplace(place=place, cache_root=Path(cache_root))
    try:
        return perform(text, attempt, workplace)
    finally:
        workplace.close()


def _then(reference: Any, answer: Future[Any], convert: Any) -> None:
    """Complete ``answer`` with what Ray's reference comes to; its errors mean a lost worker."""

    def finish(done: Future[Any]) -> None:
        error = done.exception()
        if error is not None:
            answer.set_exception(Lost(f"{type(error).__name__}: {str(error).strip()}"))
        else:
            answer.set_result(convert(done.result()))

    reference.future().add_done_callback(finish)


def _connect(ray: Any, address: str) -> bool:
    """Join the cluster; True if this call did, False if the program had joined one before."""
    if ray.is_initialized():
        return False
    _knock(address)
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": "ERROR",
        "configure_logging": False,
    }
    if "PYTHONPATH" in os.environ:
        # Workers import what this process imports; without it they start from Ray's warm ones.
        options["runtime_env"] = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
    try:
        if address == HERE:
            # Ray makes its workers yield to everybody; what times must not.
            os.environ.setdefault("RAY_worker_niceness", "0")
            ray.init(include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _nobody(address, error) from error
    return True


def _knock(address: str) -> None:
    """``MachineError`` at once where nothing listens: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
        except OSError as error:
            raise _nobody(address, error) from error


def _nobody(address: str, error: Exception) -> MachineError:
    return MachineError(
        f"No Ray cluster answers at {address!r} ({error}). Start one with: ray start --head"
    )


def _disconnect(ray: Any) -> None:
    if ray.is_initialized():
        ray.shutdown()
