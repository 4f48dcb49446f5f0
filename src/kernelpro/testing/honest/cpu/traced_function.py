# task: gelu
# accept: ok
# idea: a function traced in the first call
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.traced = None

    def forward(self, x):
        if self.traced is None:
            self.traced = torch.jit.trace(torch.nn.functional.gelu, x)
        return self.traced(x)
