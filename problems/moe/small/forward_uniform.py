"""One projection of a mixture of experts, evenly routed.

Sizes of gpt-oss-120B (128 experts, hidden 2880), scaled down. Rows are sorted by expert; each
expert multiplies its own rows by its own weight.

Sized for a CPU; the twin one folder up is sized for a GPU.
"""

import torch
from torch import nn

PRECISION = "half"
DTYPE = torch.float16
EXPERTS = 8
ROWS = 640
INPUTS = 48
OUTPUTS = 48


class Model(nn.Module):
    """``result[rows of e] = x[rows of e] @ weight[e]``."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, inputs), ``weight``: (experts, inputs, outputs), ``ends``: (experts,)
        int32, where the rows of each expert end -> (rows, outputs)."""
        result = x.new_empty(x.shape[0], weight.shape[2])
        start = 0
        for expert, end in enumerate(ends.tolist()):
            if end > start:
                torch.mm(x[start:end], weight[expert], out=result[start:end])
            start = end
        return result


def even(rows: int) -> torch.Tensor:
    """(EXPERTS,) int32: where each expert's rows end; all have the same number."""
    return torch.arange(1, EXPERTS + 1, dtype=torch.int32) * (rows // EXPERTS)


def get_inputs():
    return [
        torch.randn(ROWS, INPUTS, dtype=DTYPE),
        torch.randn(EXPERTS, INPUTS, OUTPUTS, dtype=DTYPE) / INPUTS**0.5,
        even(ROWS),
    ]


def get_init_inputs():
    return []
