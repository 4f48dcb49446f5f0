"""What a candidate must not change in its process: functions, global flags, threads, children.

Snapshots are taken before candidate source runs; what differs afterwards goes into
``Block.flags``. Must not judge: some changes are legal (a thread pool), the referee decides.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

WATCHED = {
    time: ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns",
           "process_time", "process_time_ns", "sleep"),
    os: ("read", "write", "pread", "preadv", "pwrite", "_exit", "fork"),
    gc: ("collect", "disable", "enable"),
    json: ("dumps", "loads"),
    torch: ("empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "full", "rand",
            "randn", "allclose", "isclose", "equal", "no_grad", "tensor",
            "set_num_threads", "get_num_threads", "compile"),
    torch.testing: ("assert_close",),
    torch.cuda: ("synchronize", "Event", "current_stream", "Stream", "memory_allocated"),
    torch.cuda.Event: ("record", "elapsed_time", "synchronize", "query"),
    torch.Tensor: ("data_ptr", "copy_", "contiguous", "cpu", "cuda", "to", "detach", "clone",
                   "untyped_storage", "stride", "element_size", "__eq__", "fill_"),
    torch.nn.Module: ("__call__", "_call_impl", "load_state_dict", "state_dict", "to",
                      "named_parameters", "named_buffers"),
}  # fmt: skip
"""Functions a patched referee would depend on (EVAL_PITFALLS 4, 34): object -> attributes.
Not torch.manual_seed: torch.compile replaces it itself, and nothing here calls it afterwards."""


class Identities:
    """Which watched functions are still the objects they were."""

    def __init__(self, extra: dict[Any, tuple[str, ...]]) -> None:
        watched = {**WATCHED, **extra}
        self._before = [
            (owner, name, getattr(owner, name), getattr(getattr(owner, name), "__code__", None))
            for owner, names in watched.items()
            for name in names
        ]

    def changed(self) -> list[str]:
        """Dotted names that now resolve to something else, or run other code."""
        names = []
        for owner, name, function, code in self._before:
            now = getattr(owner, name, None)
            if now is not function or getattr(now, "__code__", None) is not code:
                names.append(
                    f"{getattr(owner, '__module__', '')}.{owner.__name__}.{name}".strip(".")
                )
        return names


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
                except RuntimeError:
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
    """Threads that Python knows of."""
    return threading.active_count()


def count_children() -> int | None:
    """Child processes, zombies included; None where the kernel does not list them."""
    try:
        lists = [p.read_text() for p in Path("/proc/self/task").glob("*/children")]
    except OSError:
        return None
    return sum(len(text.split()) for text in lists) if lists else None


def overriding_modes() -> int:
    """Active torch function and dispatch modes: each can make an operator lazy or false."""
    return int(torch._C._len_torch_dispatch_stack()) + int(torch._C._len_torch_function_stack())
