"""Tensor map descriptors: rules named before the driver is asked, and a tile that arrives."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro import inline
from kernelpro.inline import nvcc

TMA = """
#include <cuda.h>
extern "C" __global__ void __launch_bounds__(128)
take(const __grid_constant__ CUtensorMap map, float* out, int column, int row) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned destination = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(destination), "l"(&map), "r"(column), "r"(row),
        "r"(bar) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; "
               "@!p bra again; }" ::"r"(bar) : "memory");
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[i] = tile[i];
}
"""


@pytest.fixture(autouse=True)
def build_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))


@pytest.mark.parametrize("lane", ["nvcc", "nvrtc"])
def test_tensor_map_kernels_compile(lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        nvcc.find_nvcc() if lane == "nvcc" else nvcc.find_nvrtc()
    except inline.ToolchainError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    inline.cuda(TMA, kernels=["take"], compiler=lane)


class _FakeTensor:
    """Shape, strides and address of a tensor, for rules that are checked before the driver."""

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...], address: int = 256) -> None:
        self.shape, self._stride, self._address, self.dtype = shape, stride, address, "float32"

    def stride(self) -> tuple[int, ...]:
        return self._stride

    def data_ptr(self) -> int:
        return self._address

    def element_size(self) -> int:
        return 4


@pytest.mark.parametrize(("tensor", "box", "swizzle", "words"), [
    (_FakeTensor((8, 8), (8, 1)), (8,), 0, "one size for each of 2"),
    (_FakeTensor((8, 8), (8, 1)), (8, 512), 0, "1 to 256"),
    (_FakeTensor((8, 8), (1, 8)), (8, 8), 0, "last dimension must be contiguous"),
    (_FakeTensor((8, 7), (7, 1)), (8, 4), 0, "strides must be multiples of 16"),
    (_FakeTensor((8, 8), (8, 1), 260), (8, 8), 0, "address must be a multiple of 16"),
    (_FakeTensor((8, 64), (64, 1)), (8, 64), 128, "at most the swizzle of 128"),
    (_FakeTensor((8, 8), (8, 1)), (8, 8), 48, "swizzle must be"),
])  # fmt: skip
def test_tensor_map_rules_are_named(
    tensor: _FakeTensor, box: tuple[int, ...], swizzle: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        inline.tensor_map(tensor, box, swizzle=swizzle)


@pytest.mark.gpu
def test_tma_tile_arrives() -> None:
    import torch

    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("TMA needs compute capability 9.0")
    x = torch.arange(64 * 128, device="cuda", dtype=torch.float32).view(64, 128)
    out = torch.zeros(8, 32, device="cuda")
    tile = inline.tensor_map(x, (8, 32))
    inline.cuda(TMA, kernels=["take"]).take[1, 128](tile, out, 32, 16)
    assert torch.equal(out, x[16:24, 32:64])
