"""What a candidate must not change in its process: global flags; and what it leaves running.

Settings are read before candidate source runs; what differs afterwards goes into
``Block.flags``. Must not judge: some changes are legal (a thread pool), the referee decides.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Flag:
    """One global setting that changes speed or rounding."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], Any]


def _attribute(name: str, owner: Any, attribute: str) -> Flag:
    return Flag(
        name, lambda: getattr(owner, attribute), lambda value: setattr(owner, attribute, value)
    )


def _denormals_flushed() -> bool:
    smallest = float.fromhex("0x0.0000000000001p-1022")
    return smallest * 2.0 == 0.0


_LIBM = ctypes.CDLL("libm.so.6")


def _rounding_mode() -> int:
    return int(_LIBM.fegetround())


def _cores() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


FLAGS = (
    Flag("float32_matmul_precision", torch.get_float32_matmul_precision,
         torch.set_float32_matmul_precision),
    _attribute("cuda.matmul.allow_tf32", torch.backends.cuda.matmul, "allow_tf32"),
    _attribute("cudnn.allow_tf32", torch.backends.cudnn, "allow_tf32"),
    _attribute("cudnn.enabled", torch.backends.cudnn, "enabled"),
    _attribute("cudnn.benchmark", torch.backends.cudnn, "benchmark"),
    _attribute("cudnn.deterministic", torch.backends.cudnn, "deterministic"),
    _attribute("cuda.matmul.allow_fp16_reduced_precision_reduction", torch.backends.cuda.matmul,
               "allow_fp16_reduced_precision_reduction"),
    _attribute("cuda.matmul.allow_bf16_reduced_precision_reduction", torch.backends.cuda.matmul,
               "allow_bf16_reduced_precision_reduction"),
    Flag("mkldnn.enabled", torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    # Not torch.use_deterministic_algorithms, which imports the compiler.
    Flag("deterministic_algorithms", torch._C._get_deterministic_algorithms,
         lambda value: torch._C._set_deterministic_algorithms(value, warn_only=False)),
    Flag("default_dtype", torch.get_default_dtype, torch.set_default_dtype),
    Flag("default_device", lambda: str(torch.get_default_device()), torch.set_default_device),
    Flag("num_threads", torch.get_num_threads, torch.set_num_threads),
    Flag("autocast_cpu", lambda: torch.is_autocast_enabled("cpu"),
         lambda value: torch.set_autocast_enabled("cpu", value)),
    Flag("autocast_cuda", lambda: torch.is_autocast_enabled("cuda"),
         lambda value: torch.set_autocast_enabled("cuda", value)),
    Flag("flush_denormal", _denormals_flushed, torch.set_flush_denormal),
    Flag("rounding_mode", _rounding_mode, _LIBM.fesetround),
    Flag("cpu_affinity", _cores,
         lambda listed: os.sched_setaffinity(0, [int(core) for core in listed.split(",")])),
)  # fmt: skip


def read_flags() -> dict[str, Any]:
    """Every flag as a JSON value; a flag that raises is ``"unreadable: ..."``."""
    return {flag.name: _json_value(_read(flag)) for flag in FLAGS}


def _read(flag: Flag) -> Any:
    try:
        return flag.get()
    except RuntimeError as error:
        # torch >= 2.9 refuses to answer after its old and new TF32 settings were mixed.
        return f"unreadable: {str(error).splitlines()[0][:200]}"


def _json_value(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)


class FlagPolicy:
    """The referee's settings, applied before every block; equal for candidate and baseline."""

    def __init__(self, *, threads: int, tf32: bool) -> None:
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.set_num_threads(threads)
        self._values = [(flag, flag.get()) for flag in FLAGS]
        self._expected = read_flags()

    def apply(self) -> None:
        """Put back every flag that differs. One that cannot be is seen by :meth:`changed`."""
        for flag, value in self._values:
            if _read(flag) != value:
                try:
                    flag.set(value)
                except (RuntimeError, OSError):
                    continue

    def changed(self) -> dict[str, list[Any]]:
        """Flag -> [expected, found], for every flag that differs."""
        found = read_flags()
        return {
            name: [value, found[name]]
            for name, value in self._expected.items()
            if found[name] != value
        }


def count_threads() -> int:
    """Threads of this process, native ones included."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def count_python_threads() -> int:
    """Threads that run Python code, those started below ``threading`` included."""
    return max(threading.active_count(), len(sys._current_frames()))


def count_unknown_threads() -> int:
    """Threads that run Python code and that ``threading`` does not know of."""
    known = {thread.ident for thread in threading.enumerate()}
    return len(sys._current_frames().keys() - known)


def other_processes() -> list[int]:
    """Living processes that this one or its descendants started: all others of an own process
    namespace, else its children."""
    own = os.getpid()
    if os.getppid() == 1:
        listed = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
        found = [pid for pid in listed if pid not in (1, own)]
    else:
        lists = [_text(path) for path in Path("/proc/self/task").glob("*/children")]
        found = [int(word) for text in lists for word in text.split()]
    return [pid for pid in found if _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2][1:2] != "Z"]


class Background:
    """CPU time that Python threads and other processes of a candidate take between two blocks."""

    def __init__(self) -> None:
        self._before = self._now_us()

    def mark(self) -> None:
        """A block has ended."""
        self._before = self._now_us()

    def since_last_us(self) -> float:
        """CPU time since then, of those that were there then."""
        now = self._now_us()
        return sum(now[key] - value for key, value in self._before.items() if key in now)

    @staticmethod
    def _now_us() -> dict[tuple[str, int], float]:
        own = threading.get_native_id()
        tasks = [t.native_id for t in threading.enumerate() if t.native_id not in (None, own)]
        found = {("thread", i): f"/proc/self/task/{i}/schedstat" for i in tasks if i is not None}
        found |= {("process", pid): f"/proc/{pid}/schedstat" for pid in other_processes()}
        times = {key: _text(Path(path)).split() for key, path in found.items()}
        return {key: int(words[0]) / 1e3 for key, words in times.items() if words}


def _text(path: Path) -> str:
    """A file of ``/proc``, empty where it is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def overriding_modes() -> int:
    """Active torch function and dispatch modes: each can make an operator lazy or false."""
    return int(torch._C._len_torch_dispatch_stack()) + int(torch._C._len_torch_function_stack())
