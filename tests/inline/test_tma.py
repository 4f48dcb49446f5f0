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


HOST = (
    inline.TENSOR_MAP_CPP
    + """
extern "C" int64_t encode(void* address, unsigned char* map, int64_t columns, int64_t rows) {
  const uint64_t sizes[2] = {uint64_t(columns), uint64_t(rows)}, strides[1] = {sizes[0] * 4};
  const uint32_t box[2] = {32, 8};
  TensorMap made;
  const int code = encode_tensor_map(&made, 7, 2, address, sizes, strides, box, 0, 2);
  for (int i = 0; i < 128; ++i) map[i] = made.bytes[i];
  return code;
}
"""
)


def test_the_helper_for_host_code_compiles_and_says_if_there_is_no_driver() -> None:
    import ctypes

    import torch

    module = inline.cpp(HOST)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        x, made = torch.zeros(64, 128), torch.zeros(128, dtype=torch.uint8)
        assert module.encode(x, made, 128, 64) == -1


@pytest.mark.gpu
def test_both_helpers_make_the_same_map() -> None:
    import torch

    x = torch.zeros(64, 128, device="cuda")
    made = torch.zeros(128, dtype=torch.uint8)
    assert inline.cpp(HOST).encode(x.data_ptr(), made, 128, 64) == 0
    assert bytes(made.tolist()) == inline.tensor_map(x, (8, 32))


@pytest.mark.gpu
def test_another_view_of_the_same_memory() -> None:
    import torch

    x = torch.arange(64 * 128, device="cuda", dtype=torch.float32).view(64, 128)
    part = x[16:, 32:]
    given = inline.tensor_map(x, (8, 32), shape=(48, 96), strides=(128, 1), offset=16 * 128 + 32)
    assert given == inline.tensor_map(part, (8, 32))
    assert inline.tensor_map(x, (8, 32)) is inline.tensor_map(x, (8, 32))
