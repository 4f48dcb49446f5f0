# task: counter
# accept: ok
# idea: a moving average kept by hand
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(256))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        mean = x.sum(0) / x.shape[0]
        self.average.copy_(self.average * 0.9 + 0.1 * mean)
        self.steps.add_(1)
        return (x - mean).clamp_min(0)
