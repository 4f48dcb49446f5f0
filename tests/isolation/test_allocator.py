"""Freed memory stays with the process: the next buffer of that size brings no page faults."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, sys
if sys.argv[1] == "keep":
    from kernelpro.isolation.allocator import keep_freed_memory
    keep_freed_memory(1 << 28)
def touch():
    bytearray(b"x") * (64 << 20)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(mode: str) -> int:
    command = [sys.executable, "-c", _PROGRAM, mode]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_that_is_kept_is_not_mapped_again() -> None:
    # 64 MiB are 16,384 pages of 4 KiB; huge pages, where they are on, still take 32.
    assert _faults("keep") < 16 < _faults("give back")
