"""CUDA text of a Hopper product: configuration, sizes, epilogue and kernel around the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from kernelpro.proposers.playbook.cuda.hopper.instructions import wgmma_function, wgmma_name
from kernelpro.proposers.playbook.cuda.hopper.tile import DEPTH, REGISTERS, HopperTile

TEMPLATES = ("hardware.cuh", "work.cuh", "pipeline.cuh", "results.cuh", "kernel.cuh")
"""The template's parts in the order in which they use each other."""
Work = Literal["dense", "ragged_rows", "ragged_depth"]
_POLICIES: dict[Work, str] = {
    "dense": "DenseWork", "ragged_rows": "RaggedRows", "ragged_depth": "RaggedDepth",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HopperProduct:
    """``result = epilogue(A @ B)`` for halves: what one kernel computes.

    dense: ``batch`` matrices of m x k times k x n. ragged_rows: the rows of A (m of them) belong
    to ``groups``, each with its own B. ragged_depth: the reduction (k long) belongs to ``groups``,
    each with its own m x n result; both operands must have the reduction as outer dimension.
    """

    name: str
    dtype: str
    m: int
    n: int
    k: int
    a_k_major: bool
    b_k_major: bool
    work: Work = "dense"
    groups: int = 0
    batch: int = 1
    a_matrices: int = 1
    """Matrices in A's tensor map: 1 where all of a batch share it."""
    b_matrices: int = 1

    def a_box(self, tile: HopperTile) -> tuple[int, int, int]:
        """Box of one copy of A, in the order of its tensor (matrix, line, contiguous)."""
        shared = tile.cluster if tile.share == "a" else 1
        return _box(tile.tile_m, shared, k_major=self.a_k_major)

    def b_box(self, tile: HopperTile) -> tuple[int, int, int]:
        """Box of one copy of B (matrix, line, contiguous)."""
        shared = tile.cluster if tile.share == "b" else 1
        return _box(tile.tile_n, shared, k_major=self.b_k_major)

    def blocks(self, tile: HopperTile, units: int) -> int:
        """Blocks of a grid that fills ``units`` multiprocessors, or fewer for small products."""
        columns = -(-self.n // tile.step_n)
        if self.work == "ragged_rows":
            rows = self.m // tile.step_m + self.groups
        else:
            rows = -(-self.m // tile.step_m) * max(1, self.groups, self.batch)
        return min(units // tile.cluster, rows * columns) * tile.cluster


def _box(lines: int, shared: int, *, k_major: bool) -> tuple[int, int, int]:
    """Blocks that share an operand split its lines, or the reduction where that is outside."""
    return (1, lines // shared, DEPTH) if k_major else (1, DEPTH // shared, DEPTH)


def preamble() -> str:
    """The template text, once per source; after ``prelude.cuh``."""
    folder = resources.files(__package__)
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in TEMPLATES)


def wrappers(products: Sequence[tuple[HopperProduct, HopperTile]]) -> str:
    """The instruction wrappers that ``products`` need, each once."""
    wanted = dict.fromkeys((product.dtype, tile.tile_n) for product, tile in products)
    return "\n".join(wgmma_function(dtype, columns) for dtype, columns in wanted)


def kernel(
    product: HopperProduct, tile: HopperTile, epilogue: str, parameters: Sequence[str],
    arguments: Sequence[str],
) -> str:  # fmt: skip
    """The ``__global__`` function.

    ``epilogue``: name of the struct whose members after ``batch`` are set from ``arguments``
    (expressions over ``parameters``, the declarations that follow the tensor maps).
    Parameters: both maps, for ragged work the group ends (int32), then ``parameters``.
    """
    name = product.name
    ends = [] if product.work == "dense" else ["const int* __restrict__ ends"]
    maps = [f"const __grid_constant__ TensorMap {side}" for side in ("map_a", "map_b")]
    declared = [*maps, *ends, *parameters]
    cluster = f"__cluster_dims__({tile.cluster}, 1, 1) " if tile.cluster > 1 else ""
    policy = f"{_POLICIES[product.work]}<{name}_config, {name}_sizes>"
    values = ", ".join(["0", *arguments])
    return "\n".join([
        _config(product, tile), _sizes(product),
        f'extern "C" __global__ void {cluster}__launch_bounds__({tile.threads}, 1) {name}(',
        "    " + ",\n    ".join(declared) + ") {",
        "  extern __shared__ __align__(1024) unsigned char hopper_shared[];",
        f"  const {policy} work{{{'ends' if ends else ''}}};",
        f"  const {epilogue} epilogue{{{values}}};",
        f"  hopper_gemm<{name}_config>(&map_a, &map_b, work, epilogue, {product.n},",
        "                             hopper_shared);",
        "}", "",
    ])  # fmt: skip


def _config(product: HopperProduct, tile: HopperTile) -> str:
    producer, consumer = REGISTERS[tile.consumers]
    numbers = {
        "consumers": tile.consumers, "blocks_m": tile.blocks_m, "tile_n": tile.tile_n,
        "stages": tile.stages, "cluster": tile.cluster, "stage_columns": tile.stage_columns,
        "group": max(1, tile.group * tile.tile_m // tile.step_m),
        "producer_registers": producer, "consumer_registers": consumer,
    }  # fmt: skip
    flags = {
        "share_a": tile.share == "a", "a_k_major": product.a_k_major,
        "b_k_major": product.b_k_major, "ragged_depth": product.work == "ragged_depth",
    }  # fmt: skip
    call = (f"{wgmma_name(product.dtype, tile.tile_n)}<{int(not product.a_k_major)}, "
            f"{int(not product.b_k_major)}>")  # fmt: skip
    return "\n".join([
        f"struct {product.name}_config {{",
        *(f"  static constexpr int {key} = {value};" for key, value in numbers.items()),
        *(f"  static constexpr bool {key} = {str(value).lower()};" for key, value in flags.items()),
        f"  static KP_INLINE void mma(float (&d)[{tile.tile_n // 2}], unsigned long long a,",
        "                            unsigned long long b, int accumulate) {",
        f"    {call}(d, a, b, accumulate);", "  }", "};",
    ])  # fmt: skip


def _sizes(product: HopperProduct) -> str:
    values = {
        "m": product.m, "n": product.n, "k": product.k, "batch": product.batch,
        "groups": product.groups, "a_matrices": product.a_matrices,
        "b_matrices": product.b_matrices,
    }  # fmt: skip
    lines = [f"  static constexpr int {key} = {value};" for key, value in values.items()]
    return "\n".join([f"struct {product.name}_sizes {{", *lines, "};"])
