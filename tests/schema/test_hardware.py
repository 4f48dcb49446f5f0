"""Copy bandwidth follows the size of the data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.schema.hardware import Peaks

TABLE = {str(1 << 20): 200.0, str(1 << 22): 100.0, str(1 << 30): 20.0}
PEAKS = Peaks(copy_gb_s=20.0, flops={}, source="measured", copy_gb_s_by_bytes=TABLE)


@pytest.mark.parametrize(
    ("working_set", "gb_s"),
    [(1, 200.0), (1 << 20, 200.0), (1 << 21, 150.0), (1 << 22, 100.0), (1 << 26, 60.0),
     (1 << 30, 20.0), (1 << 40, 20.0)],
)  # fmt: skip
def test_between_measured_sizes_it_is_linear_in_the_logarithm(
    working_set: int, gb_s: float
) -> None:
    assert PEAKS.copy_gb_s_at(working_set) == pytest.approx(gb_s)


@given(st.integers(1, 1 << 40))
def test_it_stays_within_what_was_measured(working_set: int) -> None:
    assert 20.0 <= PEAKS.copy_gb_s_at(working_set) <= 200.0


def test_without_a_table_there_is_one_figure() -> None:
    assert Peaks(copy_gb_s=7.0, flops={}, source="measured").copy_gb_s_at(1 << 20) == 7.0
