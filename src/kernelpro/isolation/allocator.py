"""Makes the C library keep memory that was freed, for the next buffer of that size.

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
