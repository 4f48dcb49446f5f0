# task: power_iteration
# accept: ok
# idea: the same loop in TorchScript
# devices: cpu
import torch


@torch.jit.script
def iterate(a: torch.Tensor, v: torch.Tensor, steps: int):
    for i in range(steps):
        v = torch.mv(a, v)
        n = torch.linalg.vector_norm(v)
        if bool(n > 0):
            v = v / n
        if i % 2 == 1 and bool(v[0] < 0):
            v = -v
    return v, torch.dot(v, torch.mv(a, v))


class ModelNew(torch.nn.Module):
    def __init__(self, steps=8):
        super().__init__()
        self.steps = steps

    def forward(self, a, v):
        return iterate(a, v, self.steps)
