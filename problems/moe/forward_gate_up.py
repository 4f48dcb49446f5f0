"""Gate and up projections of a mixture of experts, unevenly routed.

Sizes of gpt-oss-120B (128 experts, hidden 2880), 65,536 rows. Rows are sorted by expert; each
expert multiplies its own rows by its own weight.

The twin in ``small/`` is sized for a CPU.
"""

import torch
from torch import nn

PRECISION = "half"
DTYPE = torch.float16
EXPERTS = 128
ROWS = 65536
INPUTS = 2880
OUTPUTS = 5760
CONCENTRATION = 0.24  # of the Dirichlet distribution behind the routing: very uneven


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


def routed(rows: int) -> torch.Tensor:
    """(EXPERTS,) int32: where each expert's rows end. A few experts get most rows, some none."""
    share = torch._standard_gamma(torch.full((EXPERTS,), CONCENTRATION))
    chosen = torch.multinomial(share / share.sum() + 1e-12, rows, replacement=True)
    return torch.bincount(chosen, minlength=EXPERTS).cumsum(0).to(torch.int32)


def get_inputs():
    return [
        torch.randn(ROWS, INPUTS, dtype=DTYPE),
        torch.randn(EXPERTS, INPUTS, OUTPUTS, dtype=DTYPE) / INPUTS**0.5,
        routed(ROWS),
    ]


def get_init_inputs():
    return []
