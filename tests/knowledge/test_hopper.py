"""Every statement of ``prompts/knowledge_cute.md`` about Hopper, by a kernel that shows it.

The names of tests are the statements' labels in that file.
"""

from __future__ import annotations

import re
import subprocess
from importlib import resources
from pathlib import Path

import pytest
import torch

from kernelpro import inline
from kernelpro.build.toolchain import find_tool
from kernelpro.inline import nvcc
from kernelpro.prompts.render import load
from kernelpro.proposers.playbook.cuda.hopper import source
from kernelpro.proposers.playbook.cuda.hopper.instructions import wgmma_function

HERE = Path(__file__).parent
SWIZZLE = torch.tensor([[(c // 8 ^ r % 8) * 8 + c % 8 for c in range(64)] for r in range(64)])
"""Column of a line at which an element lies."""


def text() -> str:
    prelude = resources.files("kernelpro.proposers.playbook.cuda").joinpath("prelude.cuh")
    wrappers = [wgmma_function("float16", columns) for columns in (64, 128)]
    kernels = (HERE / "kernels.cuh").read_text()
    return "\n".join([prelude.read_text(), source.preamble(), *wrappers, kernels])


def module() -> inline.CudaModule:
    return inline.cuda(text())


@pytest.fixture
def hopper() -> inline.CudaModule:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs compute capability 9.0")
    return module()


def halves(*shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(*shape, generator=generator, device="cuda").half()


def close(got: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)


def test_the_kernels_compile_for_hopper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    try:
        built = module()
    except inline.ToolchainError as error:
        pytest.skip(str(error))
    assert built.image[:4] == b"\x7fELF"
    assert "C7508" not in built.path.with_suffix(".log").read_text()  # setmaxnreg ignored


def test_every_label_has_its_test() -> None:
    labels = set(re.findall(r"\[(\w+)\]", load("knowledge_cute")))
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert labels and labels <= tests, f"no test for {sorted(labels - tests)}"


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "a_k", "b_k"),
    [("product_kk", 1, 1), ("product_kn", 1, 0), ("product_mk", 0, 1), ("product_mn", 0, 0)],
)
def test_descriptor(hopper: inline.CudaModule, name: str, a_k: int, b_k: int) -> None:
    """The leading offset is not read for k-major operands, nor for one block of 64 columns."""
    a, b = halves(64, 64, seed=1), halves(64, 64, seed=2)
    for leading in (16, 1024):
        out = torch.zeros(64, 64, device="cuda")
        hopper.kernel(name)[1, 128](a, b, out, leading, 0.0)
        close(out, a if a_k else a.t(), b.t() if b_k else b)


@pytest.mark.gpu
@pytest.mark.parametrize("apart", [8192, 12288, 16384])
def test_leading(hopper: inline.CudaModule, apart: int) -> None:
    a, b = halves(64, 64, seed=3), halves(64, 128, seed=4)
    out = torch.zeros(64, 128, device="cuda")
    hopper.kernel("product_blocks")[1, 128, 8192 + 8192 + apart](a, b, out, apart)
    close(out, a, b)


@pytest.mark.gpu
def test_start(hopper: inline.CudaModule) -> None:
    """With scale-d 0 even NaN in the accumulators is not looked at."""
    a, b = halves(64, 64, seed=5), halves(64, 64, seed=6)
    out = torch.zeros(64, 64, device="cuda")
    hopper.product_kk[1, 128](a, b, out, 16, float("nan"))
    close(out, a, b.t())


def box(x: torch.Tensor) -> bytes:
    return inline.tensor_map(x.unsqueeze(0), (1, 64, 64), swizzle=128)


@pytest.mark.gpu
def test_swizzle(hopper: inline.CudaModule) -> None:
    x = halves(128, 192, seed=7)
    out, said = torch.zeros(64, 64, dtype=torch.half, device="cuda"), torch.zeros(4).int().cuda()
    hopper.copied_box[1, 128](box(x), out, said, 64, 32)
    assert torch.equal(out.gather(1, SWIZZLE.cuda()), x[32:96, 64:128])


@pytest.mark.gpu
def test_border(hopper: inline.CudaModule) -> None:
    x = halves(40, 72, seed=8)
    out, said = torch.ones(64, 64, dtype=torch.half, device="cuda"), torch.zeros(4).int().cuda()
    hopper.copied_box[1, 128](box(x), out, said, 64, 32)
    got = out.gather(1, SWIZZLE.cuda())
    assert torch.equal(got[:8, :8], x[32:40, 64:72])
    assert (got[8:] == 0).all() and (got[:, 8:] == 0).all()


@pytest.mark.gpu
def test_parity(hopper: inline.CudaModule) -> None:
    out, said = torch.zeros(64, 64, dtype=torch.half, device="cuda"), torch.zeros(4).int().cuda()
    hopper.copied_box[1, 128](box(halves(64, 64, seed=9)), out, said, 0, 0)
    assert said.tolist() == [1, 0, 1, 0]


@pytest.mark.gpu
def test_multicast(hopper: inline.CudaModule) -> None:
    x = halves(64, 64, seed=10)
    out = torch.zeros(2, 64, 64, dtype=torch.half, device="cuda")
    hopper.shared_box[2, 128](box(x), out)
    for block in out:
        assert torch.equal(block.gather(1, SWIZZLE.cuda()), x)


@pytest.mark.gpu
def test_staging(hopper: inline.CudaModule) -> None:
    out = torch.zeros(64, 128, dtype=torch.int16, device="cuda")
    hopper.rows_out[1, 128](out, 128)
    assert torch.equal(out[:, :64].int(), torch.arange(4096, device="cuda").view(64, 64).int())
    assert (out[:, 64:] == 0).all()


@pytest.mark.gpu
def test_registers(hopper: inline.CudaModule) -> None:
    out = torch.full((512,), 0.25, device="cuda")
    hopper.handed_over[1, 384](out)
    v = torch.full((180,), 0.25, dtype=torch.float64)
    for _ in range(4):
        for i in range(180):
            v[i] = v[i] * v[(i + 7) % 180] + 1.0
    assert (out[:128] == 1).all()
    torch.testing.assert_close(out[128:384].double().cpu(), v.sum().expand(256), rtol=1e-4, atol=0)


def test_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arrive at another block with .release.cluster waits for the whole GPU's memory."""
    tool = find_tool("cuobjdump") or find_tool("nvdisasm")
    if tool is None:
        pytest.skip("needs cuobjdump or nvdisasm")
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    found = {}
    for form in (
        "mbarrier.arrive.shared::cluster",
        "mbarrier.arrive.release.cluster.shared::cluster",
    ):
        kernel = (
            'extern "C" __global__ void arrive(unsigned at) { asm volatile("'
            f'{form}.b64 _, [%0];" :: "r"(at) : "memory"); }}'
        )
        try:
            path = inline.cuda(kernel).path
        except inline.ToolchainError as error:
            pytest.skip(str(error))
        flags = ["-sass"] if tool.name == "cuobjdump" else ["-c"]
        done = subprocess.run([tool.path, *flags, path], capture_output=True, text=True, check=True)
        found[form] = done.stdout.count("MEMBAR.ALL.GPU")
    assert list(found.values()) == [0, 1], found


CUTE = HERE / "cute_product.cu"


@pytest.mark.slow
def test_cute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CuTe product is built by inline.cuda, which finds nvcc and the headers, and has HGMMA."""
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    try:
        nvcc.find_nvcc()
        built = inline.cuda(CUTE.read_text())
    except inline.ToolchainError as error:
        pytest.skip(str(error))
    tool = find_tool("cuobjdump")
    if tool is not None:
        done = subprocess.run([tool.path, "-sass", built.path], capture_output=True, text=True,
                              check=True)  # fmt: skip
        assert done.stdout.count("HGMMA.64x64x16.F32") == 4


@pytest.mark.gpu
def test_cute_runs() -> None:
    try:
        built = inline.cuda(CUTE.read_text())
    except inline.ToolchainError as error:
        pytest.skip(str(error))
    a, b = halves(64, 64, seed=11), halves(64, 64, seed=12)
    out = torch.zeros(64, 64, device="cuda")
    built.product[1, 128](a, b, out)
    close(out, a, b.t())
