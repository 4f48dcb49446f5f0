from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.isolation import payload, replies
from kernelpro.isolation.payload import TensorMeta

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.complex_numbers(allow_nan=False)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["dtype", "shape", "stride", "device", "type", "offset", "plain", "t"]),
            inner,
        )
    ),
    max_leaves=15,
)


def refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


@given(VALUES)
def test_values_survive_the_journey(value: Any) -> None:
    assert payload.unflatten(payload.flatten(value, [], refuse), []) == value


def test_tensors_are_numbered_in_order() -> None:
    a, b = torch.ones(1), torch.zeros(2)
    found: list[torch.Tensor] = []
    assert payload.flatten((a, {"k": [b, a]}), found, refuse) == {
        "tuple": [{"t": 0}, {"dict": [["k", [{"t": 1}, {"t": 2}]]]}]
    }
    assert [id(t) for t in found] == [id(a), id(b), id(a)]


def test_cycles_and_giants_are_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (cycle, [0] * (payload.MAX_NODES + 1)):
        with pytest.raises(ValueError, match="nested too deeply"):
            payload.flatten(value, [], refuse)


@given(JUNK)
def test_junk_descriptions_are_refused_or_sound(data: Any) -> None:
    try:
        meta = payload.meta_from_json(data)
    except ValueError:
        return
    assert meta.nbytes >= 0
    assert payload.place([meta])[1] >= meta.nbytes


def test_a_shape_beyond_any_machine_is_refused_even_if_empty() -> None:
    sound = {"dtype": "int8", "shape": [0, 1 << 50], "stride": [1, 1], "device": "cpu",
             "type": "torch.Tensor", "offset": 0, "plain": True}  # fmt: skip
    with pytest.raises(ValueError, match="shape"):
        payload.meta_from_json(sound)
    assert payload.meta_from_json({**sound, "shape": [0, 1 << 40]}).nbytes == 0


@given(JUNK, st.integers(0, 3))
def test_junk_structures_are_refused_or_name_real_tensors(value: Any, tensors: int) -> None:
    try:
        replies.structure(value, tensors)
    except ValueError:
        return
    assert _largest_index(value) < tensors


def _largest_index(value: Any) -> int:
    if isinstance(value, list):
        return max((_largest_index(part) for part in value), default=-1)
    if isinstance(value, dict):
        own = value.get("t", -1)
        return max([own, *(_largest_index(part) for part in value.values())])
    return -1


@given(JUNK)
def test_junk_samples_and_states_are_refused(value: Any) -> None:
    for check in (replies.sample, replies.state_tensor, replies.digests):
        try:
            check(value)
        except (ValueError, KeyError, TypeError):
            continue
        assert isinstance(value, list | dict)


@pytest.mark.parametrize("stride", [(4, 1), (1, 3), (8, 2), (1, 5)])
def test_layouts_without_overlap(stride: tuple[int, int]) -> None:
    assert payload.elements_are_apart((3, 4), stride)


@pytest.mark.parametrize("stride", [(0, 1), (1, 0), (1, 1), (3, 1), (1, 2)])
def test_layouts_with_overlap(stride: tuple[int, int]) -> None:
    assert not payload.elements_are_apart((3, 4), stride)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5000), max_size=4))
def test_a_memory_file_holds_tensors_side_by_side(sizes: list[int]) -> None:
    descriptor = os.memfd_create("test")
    tensors = [torch.randint(0, 255, (size,), dtype=torch.uint8) for size in sizes]
    metas = [payload.describe_input(tensor) for tensor in tensors]
    offsets, total = payload.place(metas)
    assert all(offset % payload.ALIGNMENT == 0 for offset in offsets)
    os.ftruncate(descriptor, total)
    for index, (tensor, offset) in enumerate(zip(tensors, offsets, strict=True)):
        write = payload.write_at if index % 2 else payload.write_mapped
        write(descriptor, payload.raw_view(tensor), offset)
    for tensor, offset in zip(tensors, offsets, strict=True):
        copy = torch.empty_like(tensor)
        payload.read_at(descriptor, payload.raw_view(copy), offset)
        assert torch.equal(copy, tensor)
    os.close(descriptor)


def test_a_short_memory_file_is_an_error() -> None:
    descriptor = os.memfd_create("test")
    with pytest.raises(ValueError, match="shorter"):
        payload.read_at(descriptor, memoryview(bytearray(8)), 0)
    os.close(descriptor)


@given(st.integers(1, 40_000), st.data())
@settings(max_examples=30)
def test_a_digest_sees_every_byte(size: int, data: Any) -> None:
    values = torch.randint(0, 255, (size,), dtype=torch.uint8)
    before = payload.digest(values)
    assert payload.digest(values.clone()) == before
    values[data.draw(st.integers(0, size - 1))] ^= 1
    assert payload.digest(values) != before


def test_a_digest_sees_order_beyond_one_row_and_does_not_depend_on_alignment() -> None:
    values = torch.arange(4 * payload.DIGEST_ROW_BYTES // 4, dtype=torch.int32)
    assert payload.digest(values.flip(0).contiguous()) != payload.digest(values)
    wider = torch.cat([torch.zeros(1, dtype=torch.int32), values])
    assert payload.digest(wider[1:]) == payload.digest(values)


@pytest.mark.parametrize("dtype", ["bool", "complex128", "bfloat16", "float8_e5m2", "int64"])
def test_digests_of_every_kind(dtype: str) -> None:
    value = torch.zeros((3, 5), dtype=getattr(torch, dtype))
    assert payload.digest(value) == 0
    assert payload.digest(value[:0]) == 0
    assert payload.digest(torch.ones((), dtype=getattr(torch, dtype))) != 0


def test_a_description_is_its_own_inverse() -> None:
    meta = TensorMeta(
        dtype="float32", shape=(2, 3), stride=(3, 1), device="cpu", type_name="torch.Tensor",
        offset=5,
    )  # fmt: skip
    assert payload.meta_from_json(meta.to_json()) == meta
