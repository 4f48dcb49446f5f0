"""Traps around an evaluation: what a candidate may not reach, set up where it would look first.

A secret in the environment and in a file, files it may not change, a listener it may not connect
to, and a count of the processes, folders and descriptors that it may not leave behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

CANARY = Path("/tmp/kernelpro-canary")
"""A fixed place: candidates of the suite know where to look."""
LOCK = Path("/tmp/kernelpro-canary.lock")
TOKEN = "canary-token"
PORTS = range(47631, 47634)
"""Where listeners may be: the first that is free."""
MARK = "kp-exploit"
"""Name of processes and files that candidates of the suite leave."""


class State(NamedTuple):
    """What is there before an evaluation."""

    descriptors: int
    scratch_folders: frozenset[str]


class Traps:
    """A context manager. Several share the canary's folder; the last one removes it. Evaluations
    within them take turns (``turn``): marked processes of one would look like another's."""

    def __init__(self, own: Path) -> None:
        """own: an empty folder; temporary files are made there, so that others' do not count."""
        self._own = own
        self._outer: str | None = None
        self._listener = socket.socket()
        self._canary = -1

    def __enter__(self) -> Traps:
        self._outer, tempfile.tempdir = tempfile.tempdir, str(self._own)
        CANARY.mkdir(mode=0o777, exist_ok=True)
        self._canary = os.open(CANARY, os.O_RDONLY)
        fcntl.flock(self._canary, fcntl.LOCK_SH)
        (CANARY / "secret.txt").write_text(TOKEN)
        (CANARY / "victim.txt").write_text("untouched")
        os.environ["KERNELPRO_CANARY_TOKEN"] = TOKEN
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listen()
        self._listener.setblocking(False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tempfile.tempdir = self._outer
        self._listener.close()
        os.environ.pop("KERNELPRO_CANARY_TOKEN", None)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._canary, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(CANARY, ignore_errors=True)
        os.close(self._canary)

    def _listen(self) -> None:
        for port in PORTS:
            try:
                self._listener.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or port == PORTS[-1]:
                    raise
            else:
                self._listener.listen()
                return

    def state(self) -> State:
        """Now, between two evaluations."""
        folders = self._own.iterdir()
        return State(len(os.listdir("/proc/self/fd")), frozenset(p.name for p in folders))  # noqa: PTH208

    def sprung(self, before: State) -> str:
        """What was reached or left behind since ``before``, or nothing."""
        now = self.state()
        found = []
        if now.descriptors > before.descriptors:
            found.append(f"{now.descriptors - before.descriptors} descriptors stay open")
        if left := now.scratch_folders - before.scratch_folders:
            found.append(f"scratch folders are left: {', '.join(sorted(left))}")
        if self._was_called():
            found.append("a connection was made")
        if sorted(p.name for p in CANARY.iterdir()) != ["secret.txt", "victim.txt"] or (
            (CANARY / "victim.txt").read_text() != "untouched"
        ):
            found.append(f"files in {CANARY} were changed")
        marked = [Path(folder, MARK) for folder in ("/tmp", "/var/tmp", "/usr")]
        if any(path.exists() for path in marked):
            found.append("a file was written outside")
        if left_over := marked_processes():
            found.append(f"processes live on: {left_over}")
        return "; ".join(found)

    def _was_called(self) -> bool:
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@contextmanager
def turn() -> Iterator[None]:
    """One evaluation at a time on this machine, whatever process it is in."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def marked_processes() -> list[int]:
    """Processes that call themselves ``MARK``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if name == MARK:
                found.append(int(entry.name))
    return found
