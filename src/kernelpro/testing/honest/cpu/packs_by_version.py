# task: linear_norm
# accept: ok
# idea: a transposed copy of the weights, made again when their version counter moves
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.norm = torch.nn.LayerNorm(n)
        self.seen = None

    def forward(self, x):
        w = self.linear.weight
        now = (w.data_ptr(), w._version)
        if now != self.seen:
            self.seen, self.t = now, w.detach().t().contiguous()
        y = x @ self.t
        y += self.linear.bias
        return torch.nn.functional.layer_norm(y, y.shape[-1:], self.norm.weight, self.norm.bias)
