# task: solve
# accept: ok
# idea: float64 by Cholesky, halves among the outputs
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        a = torch.baddbmm(10 * torch.eye(32, dtype=x.dtype).expand(x.shape[0], 32, 32), x, x.mT)
        return (
            torch.cholesky_solve(y, torch.linalg.cholesky(a)),
            x.to(torch.float16),
            y.to(torch.bfloat16),
        )
