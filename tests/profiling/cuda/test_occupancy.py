"""The occupancy calculation against figures that ncu and the programming guide give."""

from __future__ import annotations

import pytest

from kernelpro.profiling.cuda.occupancy import occupancy


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks", "percent"),
    [
        ((9, 0), 256, 32, 0, 8, 100.0),
        ((9, 0), 128, 214, 69632, 2, 12.5),
        ((9, 0), 1024, 40, 0, 1, 50.0),
        ((9, 0), 32, 16, 0, 32, 50.0),
        ((9, 0), 128, 16, 196608, 1, 6.25),
        ((8, 0), 256, 64, 0, 4, 50.0),
        ((8, 6), 256, 40, 0, 6, 100.0),
        ((8, 9), 1024, 32, 0, 1, 66.7),
    ],
)
def test_known_cases(
    capability: tuple[int, int], threads: int, registers: int, shared: int, blocks: int,
    percent: float,
) -> None:  # fmt: skip
    found = occupancy(capability, threads=threads, registers=registers, shared_bytes=shared)
    assert found is not None
    assert found.blocks == blocks and found.percent == pytest.approx(percent, abs=0.05)


def test_unknown_chip_is_not_guessed() -> None:
    assert occupancy((3, 5), threads=128, registers=32, shared_bytes=0) is None
