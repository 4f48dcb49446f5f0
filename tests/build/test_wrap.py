"""A bare source with a launch record becomes a candidate that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelpro.build.checks import check_source
from kernelpro.build.wrap import has_record, wrap
from kernelpro.errors import UserError

RECORD: dict[str, Any] = {
    "inputs": ["x"],
    "init": ["features", "eps"],
    "parameters": {"weight": "(features,)"},
    "values": {"rows": "x.numel() // features"},
    "outputs": {"y": {}},
    "launches": [
        {"function": "scale", "arguments": ["x", "weight", "y", "rows", "features", "eps"]}
    ],
}
CPP = """
extern "C" int scale(const float* x, const float* w, float* y, long rows, long n, float eps) {
  for (long r = 0; r < rows; r++)
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] * w[i] + eps;
  return 0;
}
"""
CUDA = """
extern "C" __global__ void scale(const float* x, const float* w, float* y, long long rows, int n,
                                 float eps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * n) y[i] = x[i] * w[i % n] + eps;
}
"""


def _with_record(source: str, record: dict[str, Any]) -> str:
    return f"/* kernelpro-launch\n{json.dumps(record, indent=1)}\n*/\n{source}"


def test_cpp_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    source = _with_record(CPP, RECORD)
    assert has_record(source) and not has_record(CPP)
    candidate = wrap(source, "cpp")
    assert check_source(candidate) == ()
    names: dict[str, Any] = {}
    exec(compile(candidate, "candidate.py", "exec"), names)
    model = names["ModelNew"](4, 0.5)
    assert set(model.state_dict()) == {"weight"}
    with torch.no_grad():
        model.weight.copy_(torch.arange(4.0))
    x = torch.ones(4, 3).t()  # not contiguous: the wrapper makes it so
    assert torch.equal(model(x), x * torch.arange(4.0) + 0.5)


def test_cuda_launch_shape_is_written() -> None:
    launch = {**RECORD["launches"][0], "grid": "(x.numel() + 255) // 256", "block": 256}
    record = {**RECORD, "launches": [launch], "compiler": "nvcc", "flags": ["--use_fast_math"]}
    candidate = wrap(_with_record(CUDA, record), "cuda")
    assert check_source(candidate) == ()
    assert "_module.scale[(x.numel() + 255) // 256, 256, 0](x, weight, y, rows," in candidate
    assert "inline.cuda(SOURCE, flags=('--use_fast_math',), compiler='nvcc')" in candidate


def test_quotes_in_the_source_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    candidate = wrap(_with_record(CPP + "\n// it's '''quoted''' \\", RECORD), "cpp")
    names: dict[str, Any] = {}
    exec(compile(candidate, "candidate.py", "exec"), names)
    assert "'''quoted'''" in names["SOURCE"]


@pytest.mark.parametrize(("change", "words"), [
    ({"outputs": {}}, "needs 'outputs'"),
    ({"launches": [{"function": "other"}]}, "no extern \"C\" function 'other' (found: scale)"),
    ({"launches": [{"function": "scale", "arguments": ["x"]}]}, "takes 6 arguments"),
    ({"values": {"rows": "undefined + 1"}}, "unknown name 'undefined'"),
    ({"values": {"rows": "1 +"}}, "is no expression"),
    ({"inputs": ["x y"]}, "'x y' is not a usable name"),
    ({"grid": 1}, "Unknown launch record field 'grid'"),
    ({"launches": [{"function": "scale", "threads": 1}]}, "Unknown field 'threads'"),
])  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        wrap(_with_record(CPP, {**RECORD, **change}), "cpp")
    assert words in str(caught.value)


def test_missing_and_broken_records_are_named() -> None:
    with pytest.raises(UserError, match="No launch record"):
        wrap(CPP, "cpp")
    with pytest.raises(UserError, match="not JSON"):
        wrap("/* kernelpro-launch {inputs: 1} */" + CPP, "cpp")
    with pytest.raises(UserError, match="needs 'grid' and 'block'"):
        wrap(_with_record(CUDA, RECORD), "cuda")
    with pytest.raises(UserError, match="__global__"):
        wrap(_with_record(CPP, RECORD), "cuda")
