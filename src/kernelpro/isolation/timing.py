"""Times calls of a module inside the subject's process, and fills recycled memory on a CPU.

Clock functions are bound when this module is imported, before candidate source runs. The numbers
are what the process claims; the referee holds them against its own wall clock.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns as _clock
from typing import Any, Protocol

import torch

from kernelpro.isolation.allocator import FreeMemory, keep_freed_memory

POISON_BYTES = 32 << 20
"""Most memory filled before a block. Chosen: under 10 ms on a slow core. The referee also asks for
new values, so an answer left in memory beyond this would have to fit them by chance."""
POISON_SPARES, POISON_SPARE_BYTES = 256, 8 << 20
"""Chosen: as many spare buffers of each size as are filled within about a millisecond."""
POISON_BYTE = 0xFF
"""Repeated, it is NaN in every float format and -1 in signed integers."""


Timed = tuple[Any, dict[str, float | None]]
"""What a call returned, and its ``host_us`` and ``device_us``."""


class Timer(Protocol):
    """How one kind of device times a call."""

    def time(self, call: Callable[..., Any], arguments: Sequence[Any], *, idle: bool) -> Timed:
        """Call once, timed; ``idle`` as in ``Call``."""
        ...

    def poison(self, sizes: Sequence[int]) -> None:
        """Overwrite free memory, so that a recycled buffer of ``sizes`` bytes holds no answer."""
        ...

    def cool(self) -> None:
        """Empty the device's caches, as they are when a call is timed."""
        ...

    def synchronize(self) -> None:
        """Wait for all work on the device; raises the device's pending error."""
        ...

    def memory(self) -> dict[str, int]:
        """Peak memory so far, in bytes."""
        ...


SPARE_OUTPUTS = 4
"""Chosen. Room for intermediate results of a call, in outputs."""
RESERVE_BYTES, PAGE_BYTES = 1 << 30, 4096
"""Chosen. Memory made ready for the largest block, a byte per page; blocks are bounded to half."""


class CpuTimer:
    """The monotonic clock around the call."""

    def __init__(self) -> None:
        # Page faults would drown the kernel under test. Same setting for candidate and baseline.
        keep_freed_memory()
        self._memory = FreeMemory()

    def time(self, call: Callable[..., Any], arguments: Sequence[Any], *, idle: bool) -> Timed:
        """Call once between two readings of the monotonic clock."""
        start = _clock()
        result = call(*arguments)
        end = _clock()
        return result, {"host_us": (end - start) / 1e3, "device_us": None}

    def poison(self, sizes: Sequence[int]) -> None:
        """Allocate, fill and free buffers like the outputs to come; of small ones more than will
        be asked for, since the allocator may keep the last answer at any of several places."""
        budget = POISON_BYTES
        beyond: list[int] = []
        for size, count in self._wanted(sizes):
            for _ in range(count):
                if size <= budget:
                    budget -= size
                    self._memory.take(size, POISON_BYTE)
                else:
                    beyond.append(size)
        self._touch(beyond)
        self._memory.give_back()

    @staticmethod
    def _wanted(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(bytes, how many): the outputs, then spares."""
        for size in sizes:
            yield size, 1
        for size in set(sizes):
            yield size, min(POISON_SPARES, POISON_SPARE_BYTES // max(1, size)) + SPARE_OUTPUTS

    @staticmethod
    def _touch(sizes: Sequence[int]) -> None:
        """Memory this process may never have had: its page faults must not fall into timed calls.
        The baseline's process, which lives longer, has had them."""
        held, reserve = [], RESERVE_BYTES
        for size in sizes:
            if size <= reserve:
                reserve -= size
                held.append(torch.empty(size, dtype=torch.uint8))
                held[-1][::PAGE_BYTES].fill_(POISON_BYTE)

    def cool(self) -> None:
        """A CPU's calls are timed with what caches hold."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def memory(self) -> dict[str, int]:
        """Peak resident memory of this process."""
        return {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def make_timer(device: torch.device) -> Timer:
    """The timer of ``device``."""
    if device.type == "cuda":
        from kernelpro.isolation.cuda_timing import CudaTimer

        return CudaTimer(device)
    return CpuTimer()
