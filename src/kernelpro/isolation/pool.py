"""Zygotes as the referee sees them: one per device and thread count, restarted when one dies."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from kernelpro.errors import MachineError, UserError
from kernelpro.isolation import bubblewrap
from kernelpro.isolation.scratch import zygote_environment
from kernelpro.isolation.zygote import MAX_REQUEST_BYTES, READY

START_TIMEOUT_S = 180.0
"""Importing torch from a cold network disk takes minutes on some clusters."""

COMPLAINT_BYTES = 2000

_BOOT = (
    "import sys; sys.path[:] += {paths!r}; "
    "from kernelpro.isolation.zygote import main; main({descriptor})"
)


class Zygote:
    """One warm process and the socket it takes requests on."""

    def __init__(self, *, threads: int, visible_device: str | None) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        code = _BOOT.format(paths=import_roots(), descriptor=theirs.fileno())
        # -I: no PYTHON* variables, no user site, no current folder on the import path.
        wrapper = bubblewrap.wrapper()
        environment = zygote_environment(threads=threads, visible_device=visible_device)
        if wrapper:
            environment[bubblewrap.INSIDE] = "1"
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-I", "-c", code],
            env=environment,
            cwd="/", stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
            pass_fds=[theirs.fileno()], start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._wait_ready()

    def _wait_ready(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if poll.poll(START_TIMEOUT_S * 1e3) and self._socket.recv(64) == READY:
            return
        self.close()
        raise MachineError(
            f"The process that imports torch did not start within {START_TIMEOUT_S:.0f} s "
            f"({sys.executable}): {self.complaints() or 'it printed nothing'}. Try: "
            f"{sys.executable} -c 'import torch'"
        )

    def complaints(self) -> str:
        """What the zygote and its keepers wrote to stderr."""
        size = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), COMPLAINT_BYTES, max(0, size - COMPLAINT_BYTES))
        return tail.decode(errors="replace").strip()

    @property
    def alive(self) -> bool:
        """False once the process has ended."""
        return self._process.poll() is None

    def spawn(self, request: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Fork a keeper and its subject; ``OSError`` if the zygote is gone."""
        data = json.dumps(request).encode()
        if len(data) > MAX_REQUEST_BYTES:
            raise UserError(f"Paths of a subject take {len(data)} bytes; shorten the cache path")
        socket.send_fds(self._socket, [data], list(descriptors))

    def close(self) -> None:
        """End the process. Subjects it forked live on until their referee hangs up."""
        self._socket.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def import_roots() -> list[str]:
    """Folders that hold kernelpro and torch, wherever the referee found them."""
    roots = []
    for name in ("kernelpro", "torch"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise MachineError(f"The package {name!r} cannot be found by {sys.executable}")
        roots.append(str(Path(spec.origin).resolve().parent.parent))
    return list(dict.fromkeys(roots))


class ZygotePool:
    """Zygotes by device and thread count. Safe to use from several threads."""

    def __init__(self) -> None:
        self._zygotes: dict[tuple[str | None, int], Zygote] = {}
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def spawn(
        self, request: dict[str, Any], descriptors: Sequence[int], *, threads: int,
        visible_device: str | None,
    ) -> Zygote:  # fmt: skip
        """Start a subject from the right zygote, starting or replacing that one if needed."""
        key = (visible_device, threads)
        with self._lock:
            self._forget_after_fork()
            zygote = self._zygotes.get(key)
            if zygote is not None and zygote.alive:
                with contextlib.suppress(OSError):
                    zygote.spawn(request, descriptors)
                    return zygote
            if zygote is not None:
                zygote.close()
            zygote = Zygote(threads=threads, visible_device=visible_device)
            self._zygotes[key] = zygote
            zygote.spawn(request, descriptors)
            return zygote

    def close(self) -> None:
        """End every zygote."""
        with self._lock:
            self._forget_after_fork()
            for zygote in self._zygotes.values():
                zygote.close()
            self._zygotes.clear()

    def _forget_after_fork(self) -> None:
        """A forked copy of the referee must not use, or end, its parent's zygotes."""
        if os.getpid() != self._owner:
            self._zygotes.clear()
            self._owner = os.getpid()


def visible(device: str) -> tuple[str, str | None]:
    """The device as the subject sees it, and its CUDA_VISIBLE_DEVICES: one GPU, renumbered 0."""
    if device == "cpu":
        return "cpu", None
    kind, _, index = device.partition(":")
    if kind != "cuda" or not (index or "0").isdigit():
        raise UserError(f"Unknown device {device!r}; use cpu or cuda:N")
    outer = os.environ.get("CUDA_VISIBLE_DEVICES")
    if outer is None:
        return "cuda:0", index or "0"
    listed = [part.strip() for part in outer.split(",") if part.strip()]
    if int(index or "0") >= len(listed):
        raise UserError(f"{device} is not among CUDA_VISIBLE_DEVICES={outer!r}")
    return "cuda:0", listed[int(index or "0")]


POOL = ZygotePool()
atexit.register(POOL.close)
