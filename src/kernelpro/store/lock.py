"""One writer per run folder: an advisory lock that dies with its process.

The kernel drops the lock when the process ends, however it ends, so a stale lock cannot exist; the
text in the file only serves the error message.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
import weakref
from pathlib import Path

from kernelpro.errors import StoreError

_ATTEMPTS = 10
_PAUSE_S = 0.05
"""Half a second in all: outlasts a look by :func:`is_locked`, not another controller."""


class RunLock:
    """Held from construction to :meth:`release`; ``StoreError`` if another process holds it."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        for attempt in range(_ATTEMPTS):
            if _try_lock(self._fd):
                break
            if attempt == _ATTEMPTS - 1:
                owner = os.pread(self._fd, 200, 0).decode("utf-8", "replace").strip()
                os.close(self._fd)
                raise StoreError(
                    f"The run in {path.parent} is being written by another controller "
                    f"({owner or 'unknown process'}). Wait for it or stop it first"
                )
            time.sleep(_PAUSE_S)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        _HELD.add(self)

    def release(self) -> None:
        """Let the next writer in; safe to call twice."""
        _HELD.discard(self)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_locked(path: Path) -> bool:
    """True if some process holds the lock right now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(fd)
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


_HELD: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    # A forked worker would share the lock and keep it when the controller is killed.
    for lock in list(_HELD):
        lock.release()


os.register_at_fork(after_in_child=_forget_in_child)
