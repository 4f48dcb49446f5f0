"""The executor of one machine: a worker process per device, and builders on the processor's cores.

A worker that dies takes nothing with it but its attempt; it is started again and the job repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import IO

from kernelpro.errors import UserError
from kernelpro.executors.base import Lost, Place, Pool
from kernelpro.executors.crew import Crew, Slot
from kernelpro.hardware.base import devices as device_kinds
from kernelpro.hardware.base import resolve_device
from kernelpro.isolation.pool import visible
from kernelpro.schema.codec import from_jsonable

MAX_BUILDERS = 4
"""Chosen: more compilers than this rarely have work beside one GPU."""
COMPLAINT_BYTES = 2000

_BOOT = "import sys; sys.path[:] = {path!r}; from kernelpro.executors.pipe import main; main()"


def local_executor(
    argument: str = "", *, cache_root: Path, workers: int | str | None = None,
    builders: int | str | None = None,
) -> Crew:  # fmt: skip
    """``local`` = every usable GPU, else the CPU; ``local:cuda:0+cuda:1`` or ``local:cpu`` names
    devices. ``workers``: so many of the devices; ``builders``: processes that build ahead."""
    devices = _devices(argument)
    if workers is not None:
        if not 1 <= int(workers) <= len(devices):
            raise UserError(f"workers={workers}: this machine has {len(devices)} device(s) to use")
        devices = devices[: int(workers)]
    on_cpu = "cpu" in devices
    if builders is None:
        # On a CPU device builds would disturb the timings.
        builders = 0 if on_cpu else min(MAX_BUILDERS, max(1, len(os.sched_getaffinity(0)) // 2))
    return local_crew(devices, builders=int(builders), cache_root=cache_root, overlaps=not on_cpu)


def local_crew(
    devices: list[str], *, builders: int = 0, cache_root: Path, overlaps: bool
) -> Crew:  # fmt: skip
    """One worker for each of ``devices``, which may name one several times (simulations)."""
    slots: list[Slot] = [
        LocalSlot(f"{device}#{n}", device, "device", cache_root) for n, device in enumerate(devices)
    ]
    slots += [LocalSlot(f"builder#{n}", "cpu", "cpu", cache_root) for n in range(builders)]
    return Crew("local", slots, overlaps=overlaps, builds="shared" if builders else "none")


def _devices(argument: str) -> list[str]:
    if argument:
        return [resolve_device(name) for name in argument.split("+")]
    count = device_kinds.load("cuda")().count()
    return [f"cuda:{index}" for index in range(count)] or ["cpu"]


class LocalSlot:
    """A worker process that takes jobs on its stdin; see ``crew.Slot``."""

    def __init__(self, name: str, device: str, pool: Pool, cache_root: Path) -> None:
        self.name = name
        self.pool: Pool = pool
        self._device = device
        self._cache_root = cache_root
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._guard = threading.Lock()
        self._opening: Future[Place] | None = None
        self._answer: Future[str] | None = None

    def open(self) -> Future[Place]:
        """Start the process; ready when it has said hello."""
        self.kill()
        device, visible_devices = visible(self._device)
        environment = dict(os.environ)
        if visible_devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible_devices
        command = [sys.executable, "-c", _BOOT.format(path=[*sys.path])]
        options = [device, "local", self.name, str(self._cache_root)]
        ready: Future[Place] = Future()
        try:
            process = subprocess.Popen(
                [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._errors, env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            ready.set_exception(Lost(f"no process can be started: {error}"))
            return ready
        self._process, self._opening = process, ready
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return ready

    def start(self, text: str, attempt: int) -> Future[str]:
        """Write the job; the listener completes the future."""
        answer: Future[str] = Future()
        with self._guard:
            self._answer = answer
        process = self._process
        assert process is not None
        line = json.dumps({"attempt": attempt, "job": text}).encode() + b"\n"
        # In a thread: a job is larger than a pipe, and a stopped worker would hold up the crew.
        threading.Thread(target=self._write, args=(process, line), daemon=True).start()
        return answer

    def kill(self) -> None:
        """End the process; those it started end when it hangs up."""
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def _write(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except (OSError, ValueError):  # it died before it had the job
            process.wait()
            self._ended(process)

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            with self._guard:
                opening, self._opening = self._opening, None
                answer = None if opening else self._answer
                self._answer = None if answer else self._answer
            if opening is not None:
                opening.set_result(from_jsonable(Place, message["place"]))
            elif answer is not None:
                answer.set_result(message["result"])
        process.wait()
        self._ended(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        with self._guard:
            if process is not self._process:
                return
            pending = [f for f in (self._opening, self._answer) if f is not None]
            self._opening = self._answer = None
        for future in pending:
            future.set_exception(Lost(self._obituary(process)))

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        code = process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        size = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), COMPLAINT_BYTES, max(0, size - COMPLAINT_BYTES))
        said = tail.decode(errors="replace").strip()
        return f"the worker process ended with {how}" + (f"; it said: {said}" if said else "")
