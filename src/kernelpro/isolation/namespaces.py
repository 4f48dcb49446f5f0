"""Own process table, network, IPC and mounts for a subject, where the kernel permits it.

Called by the keeper before the subject exists. As root the namespaces come directly; otherwise
through a user namespace, which many systems forbid: then the reason is recorded.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from pathlib import Path

_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_NEW_PIDS, _NEW_NET = 0x20000000, 0x40000000
_WANTED = _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | _NEW_NET
_NOSUID, _NODEV, _NOEXEC, _RECURSIVE, _PRIVATE = 2, 4, 8, 16384, 1 << 18
NAMES = ("pid_namespace", "network_namespace", "ipc_namespace")
"""Layers that :func:`enter` brings."""
PER_NAMESPACE_PID_MAX = (6, 14)
"""First kernel where writing pid_max inside a process namespace changes that namespace only."""


def enter() -> str | None:
    """Leave the shared namespaces; None, or why not.

    The process namespace holds the *next* child of this process, which becomes its process 1.
    Raises ``OSError`` half-way: inside a user namespace that cannot be furnished with this user.
    """
    uid, gid = os.getuid(), os.getgid()
    if _libc().unshare(_WANTED) == 0:
        return None
    if _libc().unshare(_WANTED | _NEW_USER) != 0:
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return None


def probe() -> str | None:
    """Why :func:`enter` would not work here, or None; found out by a process that is given up."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            reason = enter()
        except OSError as error:
            reason = f"user namespace: {error}"
        os.write(writer, (reason or "").encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode() or None


def furnish(missing: dict[str, str]) -> list[str]:
    """As process 1 of a new namespace: private ``/proc`` and ``/dev/shm``. Returns the layers in
    force; those that failed go into ``missing`` with their reason."""
    active = list(NAMES)
    shared = _mount(None, "/", None, _RECURSIVE | _PRIVATE, None)
    steps = {
        "private_proc": ("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC, None),
        "private_shm": ("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777"),
    }
    for layer, arguments in steps.items():
        # While mounts are shared, a new one would appear outside as well.
        reason = _mount(*arguments) if shared is None else shared
        if reason is None:
            active.append(layer)
        else:
            missing[layer] = reason
    return active


def limit_processes(count: int) -> bool:
    """Bound the tasks of this process namespace (needs a private ``/proc``); False if the kernel
    would change the whole machine's bound instead, or refuses."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if release is None or tuple(map(int, release.groups())) < PER_NAMESPACE_PID_MAX:
        return False
    try:
        Path("/proc/sys/kernel/pid_max").write_text(str(count))
    except OSError:
        return False
    return True


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None
) -> str | None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    if _libc().mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) == 0:
        return None
    return f"mount {target}: {os.strerror(ctypes.get_errno())}"


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
