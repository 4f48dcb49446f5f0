"""Starts zygotes inside bubblewrap where this kernel lets only a set-uid program make namespaces.

Where the keeper can make namespaces itself, it makes one set per subject and bubblewrap is not
needed. Inside bubblewrap all subjects of a zygote share one: no network, own processes and IPC
towards the machine, but not towards each other.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys

from kernelpro.isolation.namespaces import NAMES

INSIDE = "KERNELPRO_INSIDE_BUBBLEWRAP"
"""Environment variable of a zygote that runs inside."""
LAYERS = ("bubblewrap", "network_namespace", "ipc_namespace")
"""What it brings to a subject: processes are shared with the other subjects."""
TIMEOUT_S = 20.0
_ARGUMENTS = (
    "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--tmpfs", "/dev/shm",
    "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent",
)  # fmt: skip
"""Files stay as they are: which of them a subject may reach is Landlock's to say."""
_PROBE = "from kernelpro.isolation import namespaces; print(namespaces.enter() or '')"


@functools.cache
def wrapper() -> tuple[str, ...]:
    """What to put before a zygote's command; empty where namespaces need no help, or where there
    is no bubblewrap that works."""
    program = shutil.which("bwrap")
    if program is None or not namespaces_refused():
        return ()
    command = (program, *_ARGUMENTS)
    return command if _succeeds([*command, "true"]) else ()


def namespaces_refused() -> bool:
    """True if a process of this user may not make the namespaces a subject gets."""
    code = f"import sys; sys.path[:] += {sys.path!r}; {_PROBE}"
    done = _run([sys.executable, "-I", "-c", code])
    return done is None or done.returncode != 0 or bool(done.stdout.strip())


def missing_inside() -> dict[str, str]:
    """Layers that a subject inside bubblewrap has not, and why."""
    shared = "the process that forks candidates is inside bubblewrap: they share its namespaces"
    return {name: shared for name in NAMES if name not in LAYERS}


def _succeeds(command: list[str]) -> bool:
    done = _run(command)
    return done is not None and done.returncode == 0


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
