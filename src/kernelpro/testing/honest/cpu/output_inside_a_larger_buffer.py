# task: linear
# accept: ok
# idea: a slice with gaps between its rows
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        wide = x.new_empty(x.shape[0], 512)
        y = wide[:, 100:356]
        y.copy_(self.right(x))
        return y
