"""The keeper: one trusted process per subject that starts it, reports its death, and sweeps up.

Forked from the zygote; outlives neither the subject nor the referee. When the referee hangs up
(or is killed: same event) everything the subject started dies, sessions of its own included.
Must not run candidate code.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import time
from pathlib import Path
from typing import Any, NoReturn

from kernelpro.isolation import bubblewrap, child, namespaces
from kernelpro.isolation.frames import encode_frame
from kernelpro.isolation.sandbox import Layers
from kernelpro.isolation.scratch import remove_scratch

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
REAP_INTERVAL_MS = 1000
SWEEP_DEADLINE_S = 10.0
"""A process stuck in a driver call cannot be killed; after this the keeper reports it instead."""


def main(request: dict[str, Any], descriptors: list[int], *, no_namespaces: str | None) -> NoReturn:
    """Run one subject to its end. ``descriptors``: control, then those of
    ``child.Descriptors``.
    ``no_namespaces``: why this machine permits none, if it does not."""
    control, *rest = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    layers = _enter_namespaces(request["sandbox"], no_namespaces)
    adopt_orphans()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(control)
        os.setsid()
        process_control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        child.main(child.Descriptors(*rest), request, layers)
    process_control(_PR_SET_DUMPABLE, 0)
    for descriptor in rest:
        os.close(descriptor)
    _keep(pid, socket.socket(fileno=control), Path(request["scratch"]))
    os._exit(0)


def _enter_namespaces(policy: dict[str, Any], reason: str | None) -> Layers:
    """Go on as process 1 of new namespaces where the kernel allows it and the policy wants it."""
    layers = Layers(active=["process_group", "clean_environment"])
    if policy["mode"] == "off":
        return layers
    if bubblewrap.INSIDE in os.environ:
        layers.active += bubblewrap.LAYERS
        layers.missing |= bubblewrap.missing_inside()
        return layers
    reason = reason or namespaces.enter()
    if reason is not None:
        for name in namespaces.NAMES:
            layers.missing[name] = reason
        return layers
    if os.fork() != 0:
        os._exit(0)
    layers.active += namespaces.furnish(layers.missing)
    if "private_proc" in layers.active and namespaces.limit_processes(policy["max_processes"]):
        layers.active.append("process_limit")
    return layers


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    process_control(_PR_SET_CHILD_SUBREAPER, 1)


def process_control(option: int, value: int) -> int:
    """``prctl(option, value)``."""
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def _keep(pid: int, control: socket.socket, scratch: Path) -> None:
    """Wait until the subject dies or the referee hangs up; sweep; report a death; and once the
    referee has hung up (it may have been killed) remove the scratch folder."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control, select.POLLIN)
    while not (ready := {descriptor for descriptor, _ in poll.poll(REAP_INTERVAL_MS)}):
        _reap_orphans(pid)
    report: dict[str, Any] = {}
    if handle in ready:
        _, status, usage = os.wait4(pid, 0)
        report = {
            "exit": status,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "max_rss_bytes": usage.ru_maxrss * 1024,
        }
    report["survivors"] = _sweep()
    with contextlib.suppress(OSError):
        control.sendall(encode_frame(report))
        while control.recv(1):
            pass
    remove_scratch(scratch)


def _reap_orphans(subject: int) -> None:
    """Collect dead orphans that were handed to this process; the subject itself is left alone."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while (dead := os.waitid(os.P_ALL, 0, flags)) is not None and dead.si_pid != subject:
        os.waitpid(dead.si_pid, 0)


def _sweep() -> int:
    """Kill every descendant; how many could not be killed.

    As process 1 of a namespace one call reaches all of it. Otherwise orphans come to this
    process, their reaper, so killing its children until none is left reaches all of them.
    """
    deadline = time.monotonic() + SWEEP_DEADLINE_S
    while time.monotonic() < deadline:
        for pid in [-1] if os.getpid() == 1 else _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return 0
        time.sleep(0.002)
    return len(_children())


def _children() -> list[int]:
    """Direct children of this process, zombies included."""
    listed = Path("/proc/thread-self/children")
    if listed.exists():
        return [int(word) for word in listed.read_text().split()]
    own = os.getpid()
    return [pid for pid in _processes() if _parent_of(pid) == own]


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name is in parentheses and may contain anything.
    return int(stat.rpartition(")")[2].split()[1])
