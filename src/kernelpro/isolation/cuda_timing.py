"""Times calls on an NVIDIA GPU: cold L2, device events and the host clock around a full sync.

Needs torch with CUDA; imported only in a process that owns a GPU. Event and synchronise functions
are bound from torch's C layer when the timer is made, before candidate source runs.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from time import perf_counter_ns as _clock
from typing import Any

import torch

from kernelpro.isolation.cuda_hold import Hold
from kernelpro.isolation.timing import POISON_BYTE, Timed

L2_FLUSH_FACTOR = 2
"""Flush writes this many times the L2 size (EVAL_PITFALLS 11): an LRU-like cache keeps nothing."""
LEAD_CYCLES = 400_000
"""Chosen. The GPU is held this long (some 200 us) before a queued call, longer than an honest
forward takes to issue its launches; where the host needs more, the events hold its gaps, as they
should."""
POISON_BYTES_GPU = 1 << 30
"""Most memory filled before a block. Chosen: under a millisecond at HBM speed."""
_CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6
"""From the CUDA driver API's enumeration ``CUlimit``."""


class CudaTimer:
    """Cold-L2 timing of one call on one GPU."""

    def __init__(self, device: torch.device) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.set_device(device)
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", build_target(device))
        self._device = device
        self._stream = torch.cuda.current_stream(device)
        self._set_stream = torch.cuda.set_stream
        event = torch._C._CudaEventBase
        self._record, self._elapsed = event.record, event.elapsed_time
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]
        self._wait = torch._C._cuda_synchronize
        size = int(torch.cuda.get_device_properties(device).L2_cache_size)
        self._flush = torch.empty(L2_FLUSH_FACTOR * size, dtype=torch.uint8, device=device)
        self._fill = torch.Tensor.fill_
        self._hold = Hold(device)
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._round = 0

    def time(self, call: Callable[..., Any], arguments: Sequence[Any], *, idle: bool) -> Timed:
        """Flush L2, then time the call by events on the default stream and by the host clock
        around a device-wide synchronise, which covers every stream.

        Unless ``idle``, all of the GPU is held while the call is issued: the start event then
        waits for the hold and not for the host, and nothing can run beside it.
        """
        self._set_stream(self._stream)
        self._allow_no_persisting_lines()
        self._wait()
        queued, first, last = self._events
        self._flush_l2()
        self._wait()
        start = _clock()
        if not idle:
            self._record(queued, self._stream)
            self._hold(self._stream, LEAD_CYCLES)
        self._record(first, self._stream)
        result = call(*arguments)
        issued = _clock()
        self._record(last, self._stream)
        self._wait()
        end = _clock()
        device_us = float(self._elapsed(first, last)) * 1e3
        lead_us = 0.0 if idle else float(self._elapsed(queued, first)) * 1e3
        return result, {
            "host_us": (end - start) / 1e3 - lead_us,
            "device_us": device_us,
            "issue_us": (issued - start) / 1e3,
        }

    def _allow_no_persisting_lines(self) -> None:
        """Undo persisting-L2 carve-outs, which a flush would not evict."""
        self._driver.cuCtxResetPersistingL2Cache()
        self._driver.cuCtxSetLimit(_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(0))

    def _flush_l2(self) -> None:
        self._round = (self._round + 1) % 256
        self._fill(self._flush, self._round)

    def poison(self, sizes: Sequence[int]) -> None:
        """Fill the caching allocator's free blocks, which is where outputs come from."""
        free = sorted(
            (
                int(block["size"])
                for segment in torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
                for block in segment["blocks"]
                if block["state"] == "inactive"
            ),
            reverse=True,
        )
        held, budget = [], POISON_BYTES_GPU
        for size in free:
            if size <= budget:
                budget -= size
                buffer = torch.empty(size, dtype=torch.uint8, device=self._device)
                held.append(self._fill(buffer, POISON_BYTE))
        self._wait()

    def synchronize(self) -> None:
        """Wait for every stream; raises a pending (sticky) CUDA error."""
        self._wait()

    def memory(self) -> dict[str, int]:
        """Peak memory of torch's allocator, and what the whole GPU has in use."""
        free, total = torch.cuda.mem_get_info(self._device)
        return {
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(self._device),
            "device_used_bytes": total - free,
        }


def build_target(device: torch.device) -> str:
    """What torch extensions should compile for: this GPU alone, with its own instructions (``a``,
    from compute capability 9.0)."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}{'a' if major >= 9 else ''}"
