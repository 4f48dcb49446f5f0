"""Which functions a referee's harness relies on are still the ones they were.

A snapshot is taken before candidate source runs (EVAL_PITFALLS 4, 34). What differs afterwards is
reported by name. Must not judge, and is no proof: whoever controls the process can make this lie,
which is why the referee's own clock and digests decide.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
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


_WATCHED: list[tuple[Any, tuple[str, ...]]] = list(WATCHED.items())
SETTLED = ("_model", "_call", "_kept", "_prints", "_noted")
"""Attributes of the harness that change as it works."""
BACKENDS = ("CPU:", "CUDA:", "AutogradCPU:", "AutogradCUDA:", "Composite", "ADInplaceOrView:")
OPERATORS = (
    "aten::empty.memory_format", "aten::empty_strided", "aten::empty_like", "aten::fill_.Scalar",
    "aten::copy_", "aten::clone", "aten::_to_copy", "aten::contiguous", "aten::detach",
    "aten::view", "aten::reshape", "aten::as_strided", "aten::sum", "aten::sum.dim_IntList",
    "aten::cat", "aten::arange.start_step", "aten::mul.Tensor", "aten::zeros", "aten::eq.Scalar",
    "aten::all", "aten::index.Tensor", "aten::take", "aten::slice.Tensor",
    "aten::_local_scalar_dense",
)  # fmt: skip
"""What the harness itself calls in torch: one registered anew could work when it is asked."""


class Identities:
    """Which watched functions, and which parts of the harness, are still the objects they were."""

    def __init__(self, modules: Sequence[ModuleType], objects: Sequence[Any]) -> None:
        """modules: every global and every attribute of their classes is watched. objects: their
        attributes and classes."""
        self._before = [
            (owner, name, getattr(owner, name), getattr(getattr(owner, name), "__code__", None))
            for owner, names in _WATCHED
            for name in names
        ]
        self._tables: list[tuple[Mapping[str, Any], dict[str, Any]]] = [
            (vars(module), dict(vars(module))) for module in modules
        ]
        classes = [
            value
            for module in modules
            for value in vars(module).values()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        self._tables += [(vars(kind), dict(vars(kind))) for kind in classes]
        values = [value for _, table in self._tables for value in table.values()]
        self._codes = [(f, f.__code__) for f in values if isinstance(f, FunctionType)]
        self._objects = [(item, type(item), _attributes(item)) for item in objects]
        self._operators = _registrations()
        self._registered = _python_registrations()
        self._builtins = dict(vars(builtins))
        self._handlers = _signal_handlers()
        self._audit_hooks = AuditHooks()

    def changed(self) -> list[str]:
        """Dotted names that now resolve to something else, or run other code."""
        names = []
        for owner, name, function, code in self._before:
            now = getattr(owner, name, None)
            if now is not function or getattr(now, "__code__", None) is not code:
                names.append(
                    f"{getattr(owner, '__module__', '')}.{owner.__name__}.{name}".strip(".")
                )
        for table, before in self._tables:
            place = before.get("__name__") or before.get("__qualname__") or before.get("__module__")
            names += [f"{place}.{key}" for key in _differing(table, before)]
        names += [f.__qualname__ for f, code in self._codes if f.__code__ is not code]
        for item, kind, attributes in self._objects:
            if type(item) is not kind:
                names.append(f"the class of {kind.__name__}")
            now = _attributes(item)
            shadowing = [key for key in now if key not in attributes and hasattr(kind, key)]
            names += [f"{kind.__name__}.{key}" for key in _differing(now, attributes) + shadowing]
        names += [f"torch.Tensor.{name}" for name in _shadowed_by_tensor()]
        names += [f"builtins.{name}" for name in _differing(vars(builtins), self._builtins)]
        names += sorted(_python_registrations() - self._registered)
        names += [
            f"signal.signal({number.name})"
            for number, handler in _signal_handlers().items()
            if self._handlers.get(number) is not handler
        ]
        names += self._audit_hooks.added
        return names + _hooks() + _changed_operators(self._operators)


def _differing(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    return [key for key, value in before.items() if now.get(key, now) is not value]


def _attributes(item: Any) -> dict[str, Any]:
    values = getattr(item, "__dict__", {})
    return {
        key: value
        for key, value in values.items()
        if key not in SETTLED and not isinstance(value, int | float)
    }


class AuditHooks:
    """Notes hooks that are added to the interpreter's audit events, which are raised wherever the
    harness opens, lists or maps something. They cannot be listed or removed, so the one way to know
    of them is to be there first."""

    def __init__(self) -> None:
        self.added: list[str] = []
        sys.addaudithook(self._seen)

    def _seen(self, event: str, _: Any) -> None:
        if event == "sys.addaudithook":
            self.added = ["sys.addaudithook"]


def _signal_handlers() -> dict[signal.Signals, Any]:
    """Python functions that run between any two instructions of the harness."""
    found = {number: signal.getsignal(number) for number in signal.valid_signals()
             if isinstance(number, signal.Signals)}  # fmt: skip
    return {number: handler for number, handler in found.items() if callable(handler)}


_TENSOR = dict(vars(torch.Tensor))


def _shadowed_by_tensor() -> list[str]:
    """Methods of every tensor that were replaced, or put in front of the ones in C."""
    now = vars(torch.Tensor)
    return [
        name
        for name, value in now.items()
        if _TENSOR.get(name, value) is not value
        or (name not in _TENSOR and hasattr(torch._C.TensorBase, name))
    ]


def _python_registrations() -> set[str]:
    """Kernels that Python code has registered for torch's own operators on real devices."""
    return {key for key in torch.library._impls
            if key.startswith("aten/") and key.endswith(("/CPU", "/CUDA", "/AutogradCPU",
                "/AutogradCUDA", "/CompositeExplicitAutograd", "/CompositeImplicitAutograd"))
            }  # fmt: skip


def _hooks() -> list[str]:
    """Hooks that run candidate code inside whatever the harness does."""
    found: dict[str, Any] = {
        "sys.settrace": sys.gettrace(), "sys.setprofile": sys.getprofile(),
        "gc.callbacks": [f for f in gc.callbacks if not _is_torchs(f)],
    }  # fmt: skip
    if hasattr(sys, "monitoring"):
        found["sys.monitoring"] = [n for n in range(6) if sys.monitoring.get_tool(n)]
    return [name for name, value in found.items() if value]


def _is_torchs(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).split(".")[0] == "torch"


def _registrations() -> dict[str, list[str]]:
    """Operator -> where its kernels for real devices are registered."""
    found = {}
    for name in OPERATORS:
        try:
            text = torch._C._dispatch_dump(name)
        except RuntimeError:
            # Not in this version of torch.
            continue
        found[name] = [line for line in text.splitlines() if line.startswith(BACKENDS)]
    return found


def _changed_operators(before: dict[str, list[str]]) -> list[str]:
    now = _registrations()
    return [name for name, lines in before.items() if now.get(name) != lines]
