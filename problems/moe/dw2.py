"""Weight gradient of the down projection of a mixture of experts.

Sizes of gpt-oss-120B (57,768 token rows over 128 experts, top-4), one tensor of the backward
pass. The reduction runs over each expert's rows, whose number differs from expert to expert; an
expert without rows gets zeros.

The twin in ``small/`` is sized for a CPU.
"""

import torch
from torch import nn

PRECISION = "half"
DTYPE = torch.float16
EXPERTS = 128
ROWS = 57768
INPUTS = 2880
OUTPUTS = 2880
CONCENTRATION = 0.24  # of the Dirichlet distribution behind the routing: very uneven


class Model(nn.Module):
    """``result[e] = x[rows of e].T @ gradient[rows of e]``."""

    def forward(self, x: torch.Tensor, gradient: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, inputs), ``gradient``: (rows, outputs), ``ends``: (experts,) int32, where
        the rows of each expert end -> (experts, inputs, outputs)."""
        result = x.new_zeros(ends.numel(), x.shape[1], gradient.shape[1])
        start = 0
        for expert, end in enumerate(ends.tolist()):
            if end > start:
                torch.mm(x[start:end].t(), gradient[start:end], out=result[expert])
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
        torch.randn(ROWS, OUTPUTS, dtype=DTYPE),
        routed(ROWS),
    ]


def get_init_inputs():
    return []
