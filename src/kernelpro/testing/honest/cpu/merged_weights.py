# task: linear_norm
# accept: ok
# idea: weights merged into one tensor, built from the seed
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        linear = torch.nn.Linear(n, n)
        norm = torch.nn.LayerNorm(n)
        self.n = n
        self.packed = torch.nn.Parameter(
            torch.cat(
                [
                    linear.weight.detach().reshape(-1),
                    linear.bias.detach(),
                    norm.weight.detach(),
                    norm.bias.detach(),
                ]
            )
        )

    def forward(self, x):
        n = self.n
        w, b, g, s = self.packed.split([n * n, n, n, n])
        return torch.nn.functional.layer_norm(torch.addmm(b, x, w.view(n, n).t()), (n,), g, s)
