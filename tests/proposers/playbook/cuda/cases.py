"""Small modules that between them reach every path of the CUDA back end."""

from __future__ import annotations

from typing import NamedTuple

_TEMPLATE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


class Case(NamedTuple):
    """One module: what it computes and on what."""

    name: str
    forward: str
    inputs: str
    init: str = "pass"
    precision: str = "strict"

    def source(self) -> str:
        """The problem file."""
        count = _count(self.inputs)
        names = ", ".join("xyzw"[:count])
        text = _TEMPLATE.format(
            init=self.init, names=names, forward=self.forward, inputs=self.inputs
        )
        return text + f'\nPRECISION = "{self.precision}"\n'


def _count(inputs: str) -> int:
    depth, count = 0, 1
    for character in inputs:
        depth += (character in "([") - (character in ")]")
        count += character == "," and depth == 0
    return count


CASES = (
    Case("add_bias", "F.gelu(x + y)", "torch.randn(257, 1000), torch.randn(1000)"),
    Case("odd_size", "torch.tanh(x) * 2 - 1", "torch.randn(37, 1001)"),
    Case("column_broadcast", "x * torch.sigmoid(y)", "torch.randn(64, 300), torch.randn(64, 1)"),
    Case("channels", "F.silu(x) * y + z",
         "torch.randn(4, 8, 16, 16), torch.randn(8, 1, 1), torch.randn(16)"),
    Case("transposed", "(x.transpose(0, 1) + y).contiguous()",
         "torch.randn(200, 300), torch.randn(300, 200)"),
    Case("transposed_odd", "torch.relu(x.transpose(1, 2)).contiguous()", "torch.randn(3, 333, 71)"),
    Case("channels_last", "(x.permute(0, 2, 3, 1) * y).contiguous()",
         "torch.randn(4, 48, 20, 30), torch.randn(48)"),
    Case("transposed_halves", "x.t().contiguous() + y.t()",
         "torch.randn(520, 264).half(), torch.randn(520, 264).half()"),
    Case("softmax_masked", "torch.softmax((x * 0.5).masked_fill(~y, float('-inf')), -1)",
         "torch.randn(8, 128, 512), torch.rand(128, 512) < 0.8"),
    Case("softmax_wide", "torch.softmax(x, -1)", "torch.randn(200, 50001)"),
    Case("half_memory", "(x * 3 + y).relu()",
         "torch.randn(128, 512).half(), torch.randn(512).half()"),
    Case("bfloat_memory", "F.mish(x)", "torch.randn(1000, 33).bfloat16()"),
    Case("where", "torch.where(x > 0, x, 0.1 * y)", "torch.randn(99, 128), torch.randn(99, 128)"),
    Case("integers", "(x // 3) * 2 + (x % 7)", "torch.randint(-100, 100, (1000,))"),
    Case("softmax_short", "torch.softmax(x, -1)", "torch.randn(300, 100)"),
    Case("softmax_mid", "torch.softmax(x * 0.5, -1)", "torch.randn(64, 2048)"),
    Case("softmax_long", "torch.softmax(x, -1)", "torch.randn(3, 1 << 20)"),
    Case("softmax_dim1", "torch.softmax(x, 1)", "torch.randn(4, 33, 20, 24)"),
    Case("log_softmax", "F.log_softmax(x, dim=-1)", "torch.randn(128, 1000)"),
    Case("layer_norm", "self.norm(x + y)", "torch.randn(100, 768), torch.randn(100, 768)",
         "self.norm = nn.LayerNorm(768)"),
    Case("rms_norm", "x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight",
         "torch.randn(300, 1024)", "self.weight = nn.Parameter(torch.randn(1024))"),
    Case("group_norm", "F.relu(self.norm(x))", "torch.randn(4, 32, 12, 12)",
         "self.norm = nn.GroupNorm(8, 32)"),
    Case("sum_rows", "x.sum(-1)", "torch.randn(1000, 513)"),
    Case("sum_columns", "x.sum(0)", "torch.randn(4097, 96)"),
    Case("sum_columns_few", "x.mean(0)", "torch.randn(100000, 8)"),
    Case("sum_all", "(x * x).sum()", "torch.randn(1000, 1000)"),
    Case("mean_middle", "x.mean(1)", "torch.randn(16, 100, 64)"),
    Case("amax_last", "x.amax((-2, -1))", "torch.randn(32, 4, 50, 50)"),
    Case("argmax", "x.argmax(-1)", "torch.randn(128, 3000)"),
    Case("argmax_ties", "x.argmax(1)", "torch.randint(0, 3, (64, 500, 4)).float()"),
    Case("argmin_all", "x.argmin()", "torch.randn(50000)"),
    Case("logsumexp", "torch.logsumexp(x, dim=1)", "torch.randn(64, 4096)"),
    Case("variance", "x.var(-1)", "torch.randn(64, 999)"),
    Case("two_outputs", "(x.sum(-1), F.relu(x))", "torch.randn(64, 256)"),
    Case("mse", "((x - y) ** 2).mean()", "torch.randn(512, 700), torch.randn(512, 700)"),
    Case("linear_gelu", "F.gelu(self.l(x))", "torch.randn(257, 300)",
         "self.l = nn.Linear(300, 129)"),
    Case("linear_wide", "F.relu(self.l(x)) * 2", "torch.randn(512, 1024)",
         "self.l = nn.Linear(1024, 768)"),
    Case("matmul", "x @ y", "torch.randn(255, 130), torch.randn(130, 514)"),
    Case("matmul_transposed", "x.t() @ y", "torch.randn(130, 256), torch.randn(130, 512)"),
    Case("bmm", "torch.bmm(x, y) + 1", "torch.randn(5, 64, 96), torch.randn(5, 96, 128)"),
    Case("linear_tf32", "F.gelu(self.l(x))", "torch.randn(512, 1024)",
         "self.l = nn.Linear(1024, 768)", "tf32"),
    Case("linear_half", "F.gelu(self.l(x))", "torch.randn(512, 1024)",
         "self.l = nn.Linear(1024, 768)", "half"),
    Case("matmul_half", "x @ y + 1", "torch.randn(301, 264), torch.randn(264, 520)",
         "pass", "half"),
    Case("half_inputs", "torch.relu(x @ y)",
         "torch.randn(256, 512).half(), torch.randn(512, 384).half()", "pass", "half"),
    Case("max_pool_padded", "F.relu(F.max_pool2d(x, 3, stride=2, padding=1))",
         "torch.randn(4, 8, 33, 40)"),
    Case("average_pool_3d", "F.avg_pool3d(x, 2) + 1", "torch.randn(2, 3, 8, 16, 16)"),
    Case("depthwise", "F.silu(self.c(x))", "torch.randn(4, 16, 30, 30)",
         "self.c = nn.Conv2d(16, 16, 3, padding=1, groups=16)"),
    Case("convolution_bias", "F.relu(self.c(x)) * 2", "torch.randn(4, 8, 20, 20)",
         "self.c = nn.Conv2d(8, 16, 3)"),
    Case("pointwise", "F.relu(self.c(x))", "torch.randn(4, 64, 20, 20)",
         "self.c = nn.Conv2d(64, 32, 1)"),
    Case("scan_rows", "torch.cumsum(x * 2, 1)", "torch.randn(100, 4100)"),
    Case("scan_odd_rows", "torch.cumprod(x, -1)", "1 + torch.randn(9, 1031) / 100"),
    Case("scan_columns", "torch.cumsum(x, 1)", "torch.randn(5, 300, 70)"),
    Case("scan_reversed", "torch.cumsum(x.flip(1), 1).flip(1)", "torch.randn(64, 4096)"),
    Case("scan_half", "torch.cumsum(x, 1)", "torch.randn(64, 512).half()"),
    Case("scan_counts", "torch.cumsum(x > 0, 1)", "torch.randn(64, 514)"),
)  # fmt: skip
