"""Checks what a subject's replies claim before the referee uses it. Every refusal is a
``ValueError``, ``KeyError`` or ``TypeError``; nothing a process sends can do worse."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kernelpro.isolation.base import Operators, Sample, StateTensor

MAX_ITEMS = 100_000
MAX_TEXT = 16_000
MAX_OPERATORS = 1000


def items(value: Any) -> list[Any]:
    """``value`` as a list of bearable length."""
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise ValueError("expected a list")
    return value


def text(value: Any) -> str:
    """``value`` as text that any encoder accepts, cut to a bearable length."""
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value[:MAX_TEXT].encode("utf-8", "replace").decode()


def duration(value: Any) -> float:
    """A finite number >= 0."""
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ValueError("expected a duration")
    return float(value)


def sample(data: Any) -> Sample:
    """One claimed timing."""
    device_us, issue_us = data["device_us"], data.get("issue_us")
    return Sample(
        host_us=duration(data["host_us"]),
        device_us=None if device_us is None else duration(device_us),
        issue_us=None if issue_us is None else duration(issue_us),
    )


def operators(data: Any) -> Operators:
    """A claimed audit."""
    listed, kernels_us = data["operators_us"], data.get("kernels_us")
    if not isinstance(listed, dict) or len(listed) > MAX_OPERATORS:
        raise ValueError("expected operators")
    return Operators(
        call_us=duration(data["call_us"]),
        operators_us={text(name)[:100]: duration(us) for name, us in listed.items()},
        kernels_us=None if kernels_us is None else duration(kernels_us),
    )


def state_tensor(data: Any) -> StateTensor:
    """One declared parameter or buffer."""
    shape = items(data["shape"])
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("expected a shape")
    return StateTensor(
        name=text(data["name"]), shape=tuple(shape), dtype=text(data["dtype"]),
        buffer=bool(data["buffer"]),
    )  # fmt: skip


def digests(value: Any) -> list[int | None]:
    """Digests of one call's outputs; None for those without bytes."""
    if not all(item is None or type(item) is int for item in items(value)):
        raise ValueError("expected digests")
    return list(value)


def structure(value: Any, tensors: int, depth: int = 0) -> Any:
    """``value`` itself, if every ``{"t": i}`` in it names one of ``tensors`` tensors."""
    if depth > 64:
        raise ValueError("structure is nested too deeply")
    if isinstance(value, list):
        for part in value:
            structure(part, tensors, depth + 1)
    elif isinstance(value, dict):
        if "t" in value and not (type(value["t"]) is int and 0 <= value["t"] < tensors):
            raise ValueError("structure names a tensor that was not declared")
        for part in value.values():
            structure(part, tensors, depth + 1)
    return value


def physical_memory_bytes() -> int:
    """Memory of this machine: no honest value is larger."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo has no MemTotal")
