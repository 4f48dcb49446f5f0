"""Form and values: every kind of mismatch is found, with its place; honest answers pass."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.evaluation import moments
from kernelpro.evaluation.compare import (
    Comparison,
    compare,
    compare_exact,
    contract_violation,
    merge,
)
from kernelpro.evaluation.structure import flatten, to_tensor
from kernelpro.evaluation.tolerance import Bound, bounds
from kernelpro.isolation.base import Outputs, TensorBytes


def _raw(tensor: torch.Tensor, **changes: Any) -> TensorBytes:
    fields: dict[str, Any] = {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": tuple(tensor.shape),
        "stride": tuple(tensor.stride()),
        "device": "cpu",
        "type_name": "torch.Tensor",
        "data": tensor.contiguous().reshape(-1).view(torch.uint8),
    }
    return TensorBytes(**{**fields, **changes})


def _outputs(value: Any, **changes: Any) -> Outputs:
    flat = flatten(value)
    return Outputs(
        structure=flat.structure, tensors=tuple(_raw(t, **changes) for t in flat.tensors)
    )


@pytest.mark.parametrize(
    "value",
    [
        torch.rand(3, 4),
        (torch.rand(2), torch.zeros(3, dtype=torch.int64)),
        [torch.rand(1), {"a": torch.rand(2), "b": None}],
        {"loss": torch.tensor(1.0), "n": 3},
    ],
)
def test_the_same_form_is_accepted(value: Any) -> None:
    assert contract_violation(_outputs(value), flatten(value), "cpu") is None


@pytest.mark.parametrize(
    ("got", "changes", "text"),
    [
        ((torch.rand(3, 4),), {}, "must return tensor"),
        (torch.rand(12), {}, r"shape \(12,\)"),
        (torch.rand(3, 4, dtype=torch.float64), {}, "dtype float64"),
        (torch.rand(3, 4), {"type_name": "evil.Lazy"}, "plain torch.Tensor"),
        (torch.rand(3, 4), {"device": "meta"}, "is on meta"),
        (3.0, {}, "returned 3.0"),
    ],
)
def test_each_difference_in_form_is_named(got: Any, changes: dict[str, Any], text: str) -> None:
    expected = flatten(torch.rand(3, 4))
    violation = contract_violation(_outputs(got, **changes), expected, "cpu")
    assert violation is not None
    assert pytest.importorskip("re").search(text, violation), violation


@given(st.sampled_from(["float32", "int64", "bool", "bfloat16", "complex64"]),
       st.lists(st.integers(0, 4), max_size=3))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_bytes_become_the_same_tensor(dtype: str, shape: list[int]) -> None:
    tensor = (torch.rand(shape) * 3).to(getattr(torch, dtype))
    assert torch.equal(to_tensor(_raw(tensor)), tensor)


@pytest.mark.parametrize(
    "changes", [{"shape": (5, 4)}, {"dtype": "float33"}, {"shape": (-3, -4)}, {"dtype": "object"}]
)
def test_bytes_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"bytes|dtype|negative"):
        to_tensor(_raw(torch.rand(3, 4), **changes))


def _bound(exact: torch.Tensor) -> Bound:
    return bounds(exact, exact.float(), {}, reduction_length=1)["strict"]


def _compare(actual: torch.Tensor, exact: torch.Tensor) -> Comparison:
    return compare(actual, exact, exact.float(), _bound(exact))


def test_the_first_wrong_elements_are_reported_with_what_is_allowed() -> None:
    exact = torch.randn(50, 40, dtype=torch.float64)
    actual = exact.float()
    actual[7, 3] += 0.5
    actual[49, 39] = 9.0
    result = _compare(actual, exact)
    assert result.wrong == 2 and result.total == 2000 and not result.passed
    assert [m.index for m in result.mismatches] == [(7, 3), (49, 39)]
    first = result.mismatches[0]
    assert first.expected == pytest.approx(float(exact[7, 3]))
    assert first.actual == pytest.approx(float(exact[7, 3]) + 0.5, abs=1e-5)
    assert first.allowed is not None and 0 < first.allowed < 1e-3
    assert result.max_abs_error == pytest.approx(float((actual - exact).abs().max()))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nonfinite_values_must_be_where_the_reference_has_them(value: float) -> None:
    exact = torch.randn(30, 30, dtype=torch.float64)
    actual = exact.float()
    actual[29, 29] = value
    assert not _compare(actual, exact).passed
    exact[29, 29] = value
    assert _compare(actual, exact).passed
    actual[29, 29] = 1.0
    assert not _compare(actual, exact).passed
    actual[29, 29] = -value if math.isinf(value) else math.inf
    assert not _compare(actual, exact).passed


def test_all_nan_never_passes() -> None:
    exact = torch.randn(4, 4, dtype=torch.float64)
    result = _compare(torch.full((4, 4), math.nan), exact)
    assert result.wrong == 16 and "nan" in result.reason


def test_where_eager_overflows_and_float64_does_not_nothing_is_judged() -> None:
    exact = torch.tensor([1.0, 1e300], dtype=torch.float64)
    eager = exact.float()
    bound = bounds(exact, eager, {}, reduction_length=1)["strict"]
    for last in (math.inf, 0.0):
        assert compare(torch.tensor([1.0, last]), exact, eager, bound).passed


def test_a_small_error_everywhere_exceeds_the_rms_bound() -> None:
    exact = torch.randn(100, 100, dtype=torch.float64)
    bound = _bound(exact)
    shift = 1.5 * float(bound.rms.max())
    assert shift < float(bound.atol.min())
    result = compare((exact + shift).float(), exact, exact.float(), bound)
    assert result.wrong == 0 and "RMS error" in result.reason


@pytest.mark.parametrize("shape", [(7,), (1, 130), (64, 3), (3, 5, 40), ()])
@pytest.mark.parametrize("chunk", [8, 100])
def test_chunks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], chunk: int
) -> None:
    exact = torch.randn(shape, dtype=torch.float64) * 3
    actual = exact.float() + 1e-5 * torch.randn(shape)
    whole = _compare(actual, exact)
    monkeypatch.setattr(moments, "PIECE", chunk)
    parts = _compare(actual, exact)
    assert (parts.reason, parts.wrong, parts.total) == (whole.reason, whole.wrong, whole.total)
    assert parts.max_abs_error == whole.max_abs_error
    assert {m.index for m in parts.mismatches[:1]} <= {
        tuple(i) for i in torch.nonzero((actual - exact).abs() > 0).tolist()
    }


def test_chunks_keep_the_bounds_of_uneven_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = torch.tensor([0.1, 1.0, 10.0]).repeat(40)[:, None]
    exact = torch.randn(120, 80, dtype=torch.float64) * scale
    actual = exact.float()
    actual[0, 0] += 1e-4
    monkeypatch.setattr(moments, "PIECE", 900)
    result = _compare(actual, exact)
    assert result.wrong == 1 and result.mismatches[0].index == (0, 0)


def test_empty_tensors_are_equal() -> None:
    exact = torch.empty(0, 4, dtype=torch.float64)
    assert _compare(exact.float(), exact).passed


def test_integers_and_booleans_are_exact() -> None:
    want = torch.arange(20).reshape(4, 5)
    got = want.clone()
    assert compare_exact(got, want).passed
    got[3, 4] += 1
    result = compare_exact(got, want)
    assert result.wrong == 1 and result.mismatches[0].index == (3, 4)
    assert compare_exact(got, want, tolerated=1).passed
    assert not compare_exact(torch.tensor([True]), torch.tensor([False])).passed


def test_merging_keeps_the_first_reason_and_the_largest_errors() -> None:
    merged = merge(
        [
            Comparison(max_abs_error=1.0, total=3),
            Comparison(reason="bad", max_abs_error=0.5, wrong=2, total=4),
            Comparison(reason="worse", wrong=1, total=5),
        ]
    )
    assert (merged.reason, merged.wrong, merged.total, merged.max_abs_error) == ("bad", 3, 12, 1.0)
