"""Products of halves become Hopper kernels where the GPU and the operands allow, and compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.proposers.playbook.cuda.hopper.products import CASES, candidate

from kernelpro import inline
from kernelpro.inline import nvcc
from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.cuda.hopper.tile import TILES, HopperTile
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan

KNOBS = CudaKnobs(matmul="wgmma")
FEW = ("transposed", "linear_gelu", "odd_columns")
"""Compiled in the fast run: operands either way round, results staged and stored directly."""


def lane_or_skip() -> None:
    try:
        nvcc.find_nvrtc()
    except inline.ToolchainError:
        try:
            nvcc.find_nvcc()
        except inline.ToolchainError as error:
            pytest.skip(str(error))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_products_of_halves_become_hopper_kernels(case, tmp_path: Path) -> None:
    _, body = candidate(case, tmp_path, KNOBS)
    assert "hopper_gemm<" in body.setup
    assert "tensor_map(" in "".join(line for lines in body.statements.values() for line in lines)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in FEW else pytest.mark.slow)
        for case in CASES
    ],
)
def test_the_kernel_compiles(case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lane_or_skip()
    _, body = candidate(case, tmp_path, KNOBS)
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    scope: dict[str, object] = {}
    exec(body.setup.split("\n_cuda_0 = ")[0], scope)
    module = inline.cuda(str(scope["_SOURCE_0"]))
    log = module.path.with_suffix(".log").read_text()
    assert "C7510" not in log and "Potential Performance Loss" not in log
    assert module.image[:4] == b"\x7fELF"


def test_one_row_major_half_is_staged_and_others_are_stored_directly(tmp_path: Path) -> None:
    for name, staged in (("linear_gelu", True), ("wide_result", False), ("odd_columns", False)):
        case = next(c for c in CASES if c.name == name)
        _, body = candidate(case, tmp_path, KNOBS)
        assert ("stage_columns = 0;" not in body.setup) == staged, name
        assert ("unsigned pack(" in body.setup) == staged


@pytest.mark.parametrize(
    ("capability", "size", "reason"),
    [
        ((8, 0), 200, "no warpgroup products before Hopper"),
        ((10, 0), 200, "none after it either"),
        (None, 200, "unknown GPU"),
        ((9, 0), 201, "rows of 402 bytes have no tensor map"),
    ],
)
def test_what_does_not_fit_goes_to_warp_products(
    capability: tuple[int, int] | None, size: int, reason: str, tmp_path: Path
) -> None:
    case = CASES[0]._replace(inputs=CASES[0].inputs.replace("200", str(size)))
    path = tmp_path / "problem.py"
    path.write_text(case.source(), encoding="utf-8")
    problem = load_problem(path)
    plan = make_plan(export_graphs(problem)[0])
    body = cuda_body(plan, replace(KNOBS, tile_k=32), number=0, units=132, precision="strict",
                     capability=capability)  # fmt: skip
    assert "gemm_half<" in body.setup and "hopper_gemm<" not in body.setup, reason


def test_every_tile_of_the_knob_can_run() -> None:
    for name, tile in TILES.items():
        assert not list(tile.problems()), name
    assert CudaKnobs().wgmma_tile in TILES


def test_tiles_that_cannot_run_say_why() -> None:
    assert "shared memory" in next(HopperTile(stages=6).problems())
    assert "registers" in next(HopperTile(blocks_m=2, stages=2, stage_columns=0).problems())
    assert "2 or 3" in next(HopperTile(consumers=4).problems())
    assert "columns" in next(HopperTile(tile_n=100, stage_columns=0).problems())
    assert HopperTile(stages=6).fitted().shared_bytes() <= 227 * 1024
