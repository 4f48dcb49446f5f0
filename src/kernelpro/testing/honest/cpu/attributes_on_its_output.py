# task: linear
# accept: ok
# idea: attributes and hooks on its output
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.register_forward_hook(lambda module, args, out: out)
        self.register_forward_pre_hook(lambda module, args: args)

    def forward(self, x):
        y = torch.relu(self.linear(x))
        y._kernelpro_note = "made by hand"
        y.meta = {"tile": 8}
        return y
