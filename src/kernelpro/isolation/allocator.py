"""Makes the C library keep memory that was freed, for the next buffer of that size; and fills it.

By default glibc maps every large buffer anew and gives it back when it is freed; the page faults
(about 0.25 us per KiB written) then cost more than most work on the buffer. Must not touch how
Python or torch allocate.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
MOST_BYTES = (1 << 31) - 1
"""The most that can be asked for: ``mallopt`` takes an int."""


def keep_freed_memory(most_bytes: int = MOST_BYTES) -> None:
    """Keep up to ``most_bytes`` of free memory at the heap's end, in this process, from now on.

    Does nothing where the C library is not glibc.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, most_bytes)


class FreeMemory:
    """Fills the places where buffers of some sizes will be put next.

    They are asked for as torch's CPU allocator does it, and nothing else is allocated meanwhile: a
    tensor's own hundred bytes, put at the start of a place that has just become free, make it too
    small for the buffer, and the old values stay behind them.
    """

    ALIGNMENT = 64
    """Of torch's CPU allocator (c10/core/alignment.h)."""
    PLACES = 4096
    """Chosen: most buffers at a time."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._place, self._fill, self._free = libc.posix_memalign, libc.memset, libc.free
        self._fill.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        self._fill.restype = ctypes.c_void_p
        self._places = (ctypes.c_void_p * self.PLACES)()
        self._taken = 0

    def take(self, size: int, byte: int) -> None:
        """Hold one buffer of ``size`` bytes, full of ``byte``; nothing if there is no more."""
        here = ctypes.byref(self._places, self._taken * ctypes.sizeof(ctypes.c_void_p))
        if self._taken == self.PLACES or self._place(
            here, ctypes.c_size_t(self.ALIGNMENT), ctypes.c_size_t(size)
        ):
            return
        self._fill(self._places[self._taken], byte, size)
        self._taken += 1

    def give_back(self) -> None:
        """Free all that is held."""
        for number in range(self._taken):
            self._free(ctypes.c_void_p(self._places[number]))
        self._taken = 0
