"""The Hopper family on a Hopper GPU: layouts, tiles, kinds of work and borders, against float64."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.proposers.playbook.cuda.cases import Case
from tests.proposers.playbook.cuda.hopper.products import CASES, candidate

from kernelpro.proposers.playbook.cuda.hopper.operation import HopperOperation
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import HopperTile
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs

WIDE = HopperTile()
TILES = {
    "128x256": WIDE,
    "128x256 alone": replace(WIDE, cluster=1),
    "128x256 direct": replace(WIDE, stage_columns=0),
    "128x256 share A": replace(WIDE, share="a"),
    "128x128": HopperTile(tile_n=128, stages=4, stage_columns=128),
    "256x128": HopperTile(blocks_m=2, tile_n=128, stages=4, stage_columns=64),
    "192x192": HopperTile(consumers=3, tile_n=192, stages=3, stage_columns=192),
    "192x192 share A": HopperTile(consumers=3, tile_n=192, stages=3, share="a", stage_columns=192),
    "128x192": HopperTile(tile_n=192, stages=4, stage_columns=192),
}
GROUPED = ["128x256", "128x256 direct", "128x256 share A", "192x192", "192x192 share A"]
ROUNDING = {"float16": 2**-11, "bfloat16": 2**-8}


@pytest.fixture(autouse=True)
def hopper() -> None:
    """Skip where the GPU has no wgmma."""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs compute capability 9.0")


def units() -> int:
    return torch.cuda.get_device_properties(0).multi_processor_count


def drawn(*shape: int, dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    numbers = torch.randn(*shape, generator=generator, device="cuda")
    return numbers.to(getattr(torch, dtype))


def agrees(got: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dtype: str) -> None:
    """Within one rounding of the float64 product, and float32 sums of its terms."""
    exact = a.double() @ b.double()
    sums = a.double().abs() @ b.double().abs()
    allowed = ROUNDING[dtype] * exact.abs() + 2.0**-19 * sums + 1e-7
    excess = ((got.double() - exact).abs() - allowed).max().item()
    assert excess <= 0, f"{excess} too far off"


def dense(
    m: int, n: int, k: int, *, dtype: str = "bfloat16", a_k: bool = True, b_k: bool = False,
    tile: HopperTile = WIDE, **more: Any,
) -> None:  # fmt: skip
    product = HopperProduct(name="gemm", dtype=dtype, m=m, n=n, k=k, a_k_major=a_k, b_k_major=b_k)
    a = drawn(m, k, dtype=dtype, seed=1) if a_k else drawn(k, m, dtype=dtype, seed=1)
    b = drawn(n, k, dtype=dtype, seed=2) if b_k else drawn(k, n, dtype=dtype, seed=2)
    out = torch.full((m, n), float("nan"), dtype=a.dtype, device="cuda")
    operation = HopperOperation(product, tile, units=units(), **more)
    operation(a, b, out)
    torch.cuda.synchronize()
    agrees(out, a if a_k else a.t(), b.t() if b_k else b, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("a_k", "b_k"), [(True, True), (True, False), (False, True),
                                          (False, False)])  # fmt: skip
def test_all_four_layouts(dtype: str, a_k: bool, b_k: bool) -> None:
    """K-major and row- or column-major operands go through different descriptors."""
    dense(512, 768, 320, dtype=dtype, a_k=a_k, b_k=b_k)


@pytest.mark.gpu
@pytest.mark.parametrize("name", TILES)
def test_every_tile_with_borders(name: str) -> None:
    """Sizes that no tile divides; more tiles than blocks, so that the pipeline wraps."""
    dense(1000, 5000, 712, tile=TILES[name])
    dense(72, 136, 64, tile=TILES[name])


@pytest.mark.gpu
@pytest.mark.parametrize("b_k", [False, True])
def test_half_of_a_shared_tile(b_k: bool) -> None:
    """192 columns shared by two blocks: 96 rows each, or 32 lines each."""
    tile = HopperTile(tile_n=192, stages=3, stage_columns=64)
    dense(640, 1344, 256, a_k=False, b_k=b_k, tile=tile)
    tall = HopperTile(consumers=3, tile_n=192, stages=3, share="a", stage_columns=64)
    dense(640, 1344, 256, a_k=b_k, b_k=False, tile=tall)


@pytest.mark.gpu
@pytest.mark.parametrize("direct", [False, True])
def test_bias_and_gelu(direct: bool) -> None:
    m, n, k = 384, 520, 200
    product = HopperProduct(name="g", dtype="float16", m=m, n=n, k=k, a_k_major=True,
                            b_k_major=True)  # fmt: skip
    a, b = drawn(m, k, dtype="float16", seed=3) / 8, drawn(n, k, dtype="float16", seed=4)
    bias = drawn(n, dtype="float16", seed=5)
    tile = replace(WIDE, stage_columns=0) if direct else WIDE
    out = torch.empty(m, n, dtype=torch.float16, device="cuda")
    operation = HopperOperation(product, tile, units=units(), bias=True, activation="gelu")
    operation(a, b, out, bias=bias)
    exact = torch.nn.functional.gelu(a.double() @ b.double().t() + bias.double())
    torch.testing.assert_close(out.double(), exact, rtol=2e-3, atol=2e-3)


@pytest.mark.gpu
def test_a_batch_with_one_shared_operand() -> None:
    product = HopperProduct(name="g", dtype="bfloat16", m=200, n=264, k=136, a_k_major=True,
                            b_k_major=False, batch=5, a_matrices=5)  # fmt: skip
    a, b = drawn(5, 200, 136, dtype="bfloat16", seed=6), drawn(136, 264, dtype="bfloat16", seed=7)
    out = torch.empty(5, 200, 264, dtype=torch.bfloat16, device="cuda")
    HopperOperation(product, WIDE, units=units())(a, b, out)
    for i in range(5):
        agrees(out[i], a[i], b, "bfloat16")


def ends_of(counts: list[int]) -> torch.Tensor:
    return torch.tensor(counts).cumsum(0).to(torch.int32).cuda()


COUNTS = [0, 130, 1, 0, 700, 256, 64, 0, 17, 385, 0]
"""Empty groups first, last and between; smaller and larger than a tile."""


@pytest.mark.gpu
@pytest.mark.parametrize("name", GROUPED)
def test_groups_of_rows(name: str) -> None:
    total, groups = sum(COUNTS), len(COUNTS)
    tile = TILES[name].fitted(groups)
    product = HopperProduct(name="rows", dtype="float16", m=total, n=592, k=200, a_k_major=True,
                            b_k_major=False, work="ragged_rows", groups=groups,
                            b_matrices=groups)  # fmt: skip
    a, b = drawn(total, 200, dtype="float16", seed=8), drawn(groups, 200, 592, dtype="float16",
                                                             seed=9)  # fmt: skip
    out = torch.full((total, 592), float("nan"), dtype=torch.float16, device="cuda")
    HopperOperation(product, tile, units=units())(a, b, out, ends=ends_of(COUNTS))
    start = 0
    for group, count in enumerate(COUNTS):
        if count:
            rows = slice(start, start + count)
            agrees(out[rows], a[rows], b[group], "float16")
        start += count


@pytest.mark.gpu
@pytest.mark.parametrize("name", GROUPED)
def test_groups_of_the_reduction(name: str) -> None:
    """Neighbouring groups hold infinities: nothing of them may leak into a result."""
    total, groups, m, n = sum(COUNTS), len(COUNTS), 328, 456
    product = HopperProduct(name="depth", dtype="bfloat16", m=m, n=n, k=total, a_k_major=False,
                            b_k_major=False, work="ragged_depth", groups=groups)  # fmt: skip
    a, b = drawn(total, m, dtype="bfloat16", seed=10), drawn(total, n, dtype="bfloat16", seed=11)
    spoiled = sum(COUNTS[:4]), sum(COUNTS[:5])
    a[spoiled[0] : spoiled[1]] = float("inf")
    out = torch.full((groups, m, n), float("nan"), dtype=torch.bfloat16, device="cuda")
    HopperOperation(product, TILES[name], units=units())(a, b, out, ends=ends_of(COUNTS))
    start = 0
    for group, count in enumerate(COUNTS):
        lines = slice(start, start + count)
        start += count
        if group == 4:
            continue
        if count == 0:
            assert (out[group] == 0).all()
        else:
            agrees(out[group], a[lines].t(), b[lines], "bfloat16")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["128x256", "192x192", "128x256 pair"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_candidates(case: Case, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    source, _ = candidate(case, tmp_path, CudaKnobs(matmul="wgmma", wgmma_tile=name))
    module = types.ModuleType(f"hopper_{case.name}_{name.replace(' ', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    torch.manual_seed(0)
    model, inputs = module.ModelNew().cuda(), [x.cuda() for x in module.get_inputs()]
    with torch.no_grad():
        assert model._fits_0(inputs) is not None, "the native path was not taken"
        got = model(*inputs)
        exact = module.Model()(*[x.double() for x in inputs])
    pairs = zip(got, exact, strict=True) if isinstance(got, tuple) else [(got, exact)]
    for one, other in pairs:
        scale = other.abs().max().item()
        rounding = 2.0**-8 if case.name == "rounded" else ROUNDING.get(str(one.dtype)[6:], 2.0**-11)
        assert (one.double() - other).abs().max().item() <= 2 * rounding * scale
