# task: linear
# accept: ok
# idea: an output that requires grad
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    @torch.enable_grad()
    def forward(self, x):
        return torch.relu(self.linear(x))
