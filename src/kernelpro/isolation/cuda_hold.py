"""A kernel that holds every multiprocessor of a GPU for a while.

Calls issued meanwhile are queued: what then runs starts when the hold ends, on whatever stream it
was put, and events around it hold no launch latency. Bound before candidate source runs, through
a handle of the driver's library that nobody else has.
"""

from __future__ import annotations

import ctypes
from time import perf_counter_ns as _clock

import torch

BLOCKS_PER_UNIT = 2
"""Of half a multiprocessor's threads each: no other block finds room beside them."""
ARRIVAL_NS = 5_000_000
"""Chosen. How long to wait for the blocks to stand; longer only if something else has the GPU, and
then the call is timed all the same."""
_PORTABLE_AND_MAPPED = 3
"""``CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`` of cuda.h."""

_PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry hold(.param .u64 arrivals, .param .u64 cycles, .param .u32 token)
{
    .reg .pred %outside, %waiting;
    .reg .u32 %thread, %block, %mark;
    .reg .u64 %start, %now, %limit, %place, %offset;
    mov.u64 %start, %clock64;
    ld.param.u64 %limit, [cycles];
    mov.u32 %thread, %tid.x;
    setp.ne.u32 %outside, %thread, 0;
    @%outside bra SPIN;
    ld.param.u64 %place, [arrivals];
    ld.param.u32 %mark, [token];
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %offset, %block, 4;
    add.u64 %place, %place, %offset;
    st.volatile.global.u32 [%place], %mark;
    membar.sys;
SPIN:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %start;
    setp.lt.u64 %waiting, %now, %limit;
    @%waiting bra SPIN;
    ret;
}
\0"""


class Hold:
    """The kernel, loaded into the current context."""

    def __init__(self, device: torch.device) -> None:
        """Loads the kernel. ``RuntimeError`` naming the driver's function that fails."""
        self._library = ctypes.CDLL("libcuda.so.1")
        properties = torch.cuda.get_device_properties(device)
        self._blocks = BLOCKS_PER_UNIT * properties.multi_processor_count
        self._threads = properties.max_threads_per_multi_processor // BLOCKS_PER_UNIT
        module, self._kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("cuModuleLoadData", ctypes.byref(module), _PTX)
        self._do("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"hold")
        arrivals = ctypes.c_void_p()
        self._bytes = 4 * self._blocks
        self._do(
            "cuMemHostAlloc", ctypes.byref(arrivals), ctypes.c_size_t(self._bytes),
            _PORTABLE_AND_MAPPED,
        )  # fmt: skip
        self._place = arrivals.value or 0
        ctypes.memset(self._place, 0, self._bytes)
        self._token = 0

    def __call__(self, stream: torch.cuda.Stream, cycles: int) -> None:
        """Hold the device for ``cycles`` of its clock, from when this returns: by then every block
        stands. Everything issued before must have ended."""
        self._token = self._token % 0xFFFF + 1
        values = (
            ctypes.c_uint64(self._place), ctypes.c_uint64(cycles), ctypes.c_uint32(self._token),
        )  # fmt: skip
        pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        self._do(
            "cuLaunchKernel", self._kernel, self._blocks, 1, 1, self._threads, 1, 1, 0,
            ctypes.c_void_p(stream.cuda_stream), pointers, None,
        )  # fmt: skip
        standing = self._token.to_bytes(4, "little") * self._blocks
        deadline = _clock() + ARRIVAL_NS
        while ctypes.string_at(self._place, self._bytes) != standing and _clock() < deadline:
            pass

    def _do(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returned CUresult {code}")
