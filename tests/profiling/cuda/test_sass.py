"""Machine code per kernel function, from cubins made here by the real compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelpro.errors import UserError
from kernelpro.profiling.cuda.sass import (
    SassFunction,
    disassemble,
    find_disassembler,
    parse_listing,
)
from kernelpro.profiling.cuda.sass_classes import classes

TOOLS = find_disassembler()
needs_tools = pytest.mark.skipif(
    shutil.which("nvcc") is None or TOOLS.nvdisasm is None or TOOLS.cuobjdump is None,
    reason="needs nvcc, nvdisasm and cuobjdump",
)
SOURCE = """
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float s[16][17], t[16][17];
  int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, q = blockIdx.x * 16 + x;
  float acc = 0;
  for (int k = 0; k < n; k += 16) {
    s[y][x] = a[r * n + k + x];
    t[y][x] = b[(k + y) * n + q];
    __syncthreads();
    for (int i = 0; i < 16; i++) acc += s[y][i] * t[i][x];
    __syncthreads();
  }
  c[r * n + q] = acc;
}
template <typename T> __global__ void indexed(const T* x, int* out, int each) {
  int bins[32];
  for (int b = 0; b < 32; ++b) bins[b] = 0;
  for (int k = 0; k < each; ++k) bins[(int)x[k * 256 + threadIdx.x] & 31]++;
  for (int b = 0; b < 32; ++b) out[b * 256 + threadIdx.x] = bins[b];
}
template __global__ void indexed<float>(const float*, int*, int);
extern "C" __global__ void copy4(const float4* x, float4* y) {
  y[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
}
extern "C" __global__ void doubled(const float* x, float* y) { y[0] = x[0] * 2.1; }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sass")
    (folder / "k.cu").write_text(SOURCE)
    for output, flag in (("k.cubin", "-cubin"), ("k.so", "-shared")):
        extra = ["-Xcompiler", "-fPIC"] if flag == "-shared" else []
        subprocess.run(
            ["nvcc", "-O3", "-arch=sm_90a", "-lineinfo", flag, *extra, "k.cu", "-o", output],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def functions(built: Path) -> dict[str, SassFunction]:
    return disassemble(built / "k.cubin", TOOLS)


@needs_tools
def test_counts_belong_to_one_function(functions: dict[str, SassFunction]) -> None:
    assert set(functions) == {"tiled", "copy4", "doubled", "_Z7indexedIfEvPKT_Pii"}
    tiled = functions["tiled"].counts()
    assert tiled["hot.ffma"] == 8 * tiled["hot.barrier"] > 0, "16 products per two barriers"
    assert tiled["hot.lds"] > 0
    assert "fp64" not in tiled and "ldl" not in tiled
    assert functions["copy4"].counts()["ldg.128"] == 1
    assert functions["doubled"].counts()["fp64"] >= 1


@needs_tools
def test_hot_loop_lines_name_the_source(functions: dict[str, SassFunction]) -> None:
    lines = functions["tiled"].hot_lines()
    assert lines[0].file.endswith("k.cu") and lines[0].line == 10


@needs_tools
def test_run_time_indexing_is_told_from_spilling(functions: dict[str, SassFunction]) -> None:
    counts = functions["_Z7indexedIfEvPKT_Pii"].counts()
    assert counts["local_indexed"] > 0


@needs_tools
def test_embedded_code_and_listing_agree_with_the_cubin(
    built: Path, functions: dict[str, SassFunction], tmp_path: Path
) -> None:
    inside = disassemble(built / "k.so", TOOLS, lines=False)
    listing = tmp_path / "k.sass"
    assert TOOLS.cuobjdump is not None
    listing.write_text(
        subprocess.run(
            [str(TOOLS.cuobjdump), "-sass", str(built / "k.cubin")],
            capture_output=True, text=True, check=True,
        ).stdout
    )  # fmt: skip
    saved = disassemble(listing, TOOLS)
    for name, function in functions.items():
        assert inside[name].counts() == function.counts()
        assert saved[name].counts()["total"] == function.counts()["total"]
        assert saved[name].hot_loop() == function.hot_loop()


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no machine code here\n")
    with pytest.raises(UserError, match="neither GPU code nor a listing"):
        disassemble(text, TOOLS)
    with pytest.raises(UserError, match="does not exist"):
        disassemble(tmp_path / "absent.cubin", TOOLS)
    assert parse_listing("") == {}


@needs_tools
def test_a_program_without_gpu_code_is_refused() -> None:
    with pytest.raises(UserError, match=r"no GPU code|could not be disassembled"):
        disassemble(Path(shutil.which("true") or "/bin/true").resolve(), TOOLS)


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("HGMMA.64x256x16.F32", "R24,gdesc[UR4],R24", {"gmma"}),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", "R24", {"gmma"}),
        ("HMMA.16816.F32", "R4,R8,R10,R4", {"hmma"}),
        ("UTMALDG.2D", "[UR8],[UR4]", {"tma"}),
        ("UBLKCP.S.G", "[UR8],[UR4],UR3", {"tma"}),
        ("LDGSTS.E.BYPASS.128", "[R5],[R2.64]", {"ldgsts"}),
        ("LDG.E.128.CONSTANT", "R4,desc[UR4][R2.64]", {"ldg", "ldg.128"}),
        ("LDG.E.U8", "R4,desc[UR4][R2.64]", {"ldg", "ldg.8"}),
        ("STL.64", "[R1+0x10],R4", {"stl", "stl.64", "local_stack"}),
        ("LDL", "R4,[R17]", {"ldl", "ldl.32", "local_indexed"}),
        ("IMAD.MOV.U32", "R1,RZ,RZ,R2", {"move"}),
        ("IMAD.WIDE", "R2,R5,0x4,R2", {"integer"}),
        ("HFMA2.MMA", "R7,-RZ,RZ,1.875,0", {"move"}),
        ("MUFU.EX2", "R4,R4", {"mufu"}),
        ("RED.E.ADD.F32", "[R2],R5", {"atomic"}),
        ("NOP", "", set()),
    ],
)
def test_classes(opcode: str, operands: str, expected: set[str]) -> None:
    assert set(classes(opcode, operands)) == expected
