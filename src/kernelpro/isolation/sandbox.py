"""What confines a subject: each layer is used where the kernel has it, and named in the record.

Applied in the subject's process before candidate source runs, so compilers it starts are inside
as well. Must not be relied on for truth: the referee distrusts a confined process too. No layer
protects a GPU from a kernel that hangs it; that takes a deadline and a health probe.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelpro.inline.nvcc import CUTLASS_VARIABLES
from kernelpro.isolation import landlock, seccomp
from kernelpro.schema.config import SandboxMode

STRICT_NEEDS = ("landlock", "no_network", "seccomp", "no_new_privs", "no_capabilities", "rlimits")
"""Layers without which mode ``strict`` refuses to run a candidate."""

SYSTEM_READABLE = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/proc", "/sys",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/passwd",
    "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/os-release", "/etc/OpenCL",
)  # fmt: skip
"""Toolchains, libraries and machine facts. ``/etc`` by name: it also holds keys."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
               "/dev/nvidia-caps", "/tmp/nvidia-mps")  # fmt: skip
MAX_OPEN_FILES = 4096
ROOT = Path("/")

_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR = 38, 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """What one subject may touch."""

    mode: SandboxMode
    writable: tuple[str, ...]
    gpu: bool
    memory_bytes: int | None
    max_processes: int
    max_file_bytes: int
    cpu_seconds: int
    """Of one process, all its threads together."""

    def to_json(self) -> dict[str, Any]:
        """As JSON; inverse of :func:`policy_from_json`."""
        return asdict(self)


def policy_from_json(data: dict[str, Any]) -> SandboxPolicy:
    """The policy that the referee sent."""
    return SandboxPolicy(**{**data, "writable": tuple(data["writable"])})


@dataclass(slots=True)
class Layers:
    """What is in force, and what is not and why."""

    active: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def lacking_for_strict(self) -> list[str]:
        """Layers that mode ``strict`` needs and this machine has not."""
        return [layer for layer in STRICT_NEEDS if layer not in self.active]


def enter(policy: SandboxPolicy, layers: Layers) -> None:
    """Confine this process for good, adding to ``layers``."""
    _prefer_as_oom_victim()
    if policy.mode == "off":
        return
    _limit_resources(policy, layers)
    libc = ctypes.CDLL(None, use_errno=True)
    _note(layers, "no_new_privs", libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl")
    _note(layers, "no_capabilities", _drop_capabilities(libc), "capset")
    _restrict_files(policy, layers)
    _filter_calls(layers)
    if {"network_namespace", "seccomp"} & set(layers.active):
        layers.active.append("no_network")
    else:
        layers.missing["no_network"] = "needs a network namespace or a system-call filter"


def _note(layers: Layers, layer: str, active: bool, reason: str) -> None:
    if active:
        layers.active.append(layer)
    else:
        layers.missing[layer] = reason


def _prefer_as_oom_victim() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_resources(policy: SandboxPolicy, layers: Layers) -> None:
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: policy.max_file_bytes,
        resource.RLIMIT_CPU: policy.cpu_seconds,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
    }
    for kind, value in limits.items():
        _lower(kind, value)
    layers.active.append("rlimits")
    if "process_limit" not in layers.active:
        if _is_root_outside():
            layers.missing["process_limit"] = "the kernel exempts root from RLIMIT_NPROC"
        else:
            _lower(resource.RLIMIT_NPROC, policy.max_processes + _own_tasks())
            layers.active.append("process_limit")
    if policy.gpu:
        layers.missing["memory_limit"] = "CUDA reserves far more address space than it uses"
    elif policy.memory_bytes is None:
        layers.missing["memory_limit"] = "no limit was asked for"
    else:
        _lower(resource.RLIMIT_AS, policy.memory_bytes + _address_space_bytes())
        layers.active.append("memory_limit")


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _is_root_outside() -> bool:
    """True for root, and for root of a user namespace that stands for root outside."""
    outside = Path("/proc/self/uid_map").read_text().split()[1]
    return os.getuid() == 0 and outside == "0"


def _own_tasks() -> int:
    """Threads of every visible process of this user: RLIMIT_NPROC counts those too."""
    tasks, uid = 0, os.getuid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == uid:
                    tasks += sum(1 for _ in (entry / "task").iterdir())
    return tasks


def _address_space_bytes() -> int:
    """What torch has mapped already; the limit is for what comes on top."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _drop_capabilities(libc: ctypes.CDLL) -> bool:
    """Give up every capability, of root too, for this process and what it starts."""
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR, 0, 0, 0)
    for capability in range(64):
        # Refused without CAP_SETPCAP; then no_new_privs keeps the set from growing.
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    return bool(libc.capset(header, struct.pack("=6I", *[0] * 6)) == 0)


def _restrict_files(policy: SandboxPolicy, layers: Layers) -> None:
    if landlock.abi() == 0:
        layers.missing["landlock"] = "this kernel has no Landlock, or it is switched off"
        return
    writable = list(policy.writable)
    if "private_shm" in layers.active:
        writable.append("/dev/shm")
    devices = [*DEVICES, *(gpu_devices() if policy.gpu else ())]
    if policy.gpu:
        # The driver names its threads through /proc and gives up ("OS call failed") where it
        # may not (seen with driver 580). The process's own files: nothing is widened.
        writable.append(f"/proc/{os.getpid()}/task")
    try:
        layers.active += landlock.restrict(
            readable=(*SYSTEM_READABLE, *environment_readable()), writable=writable,
            devices=devices,
        )  # fmt: skip
    except OSError as error:
        layers.missing["landlock"] = str(error)


def environment_readable() -> list[str]:
    """Where this interpreter, its packages and the tools on its search paths live."""
    found = [sys.prefix, sys.base_prefix, *sys.path]
    for variable in ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", *CUTLASS_VARIABLES):
        found += os.environ.get(variable, "").split(os.pathsep)
    # A search path that names the root or a relative folder must not open everything.
    return [path for path in dict.fromkeys(found) if path.startswith("/") and Path(path) != ROOT]


def gpu_devices() -> list[str]:
    """Device nodes a CUDA process opens."""
    numbered = [str(path) for path in Path("/dev").glob("nvidia[0-9]*")]
    return [*GPU_DEVICES, *numbered]


def _filter_calls(layers: Layers) -> None:
    reason = seccomp.unavailable()
    if reason is None:
        try:
            seccomp.install()
            layers.active.append("seccomp")
            return
        except OSError as error:
            reason = str(error)
    layers.missing["seccomp"] = reason
