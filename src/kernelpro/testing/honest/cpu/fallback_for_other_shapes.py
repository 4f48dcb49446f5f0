# task: linear
# accept: ok
# idea: a path of its own for the problem's shape, torch for all others
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if tuple(x.shape) != (64, 256) or not x.is_contiguous():
            return self.right(x)
        return torch.relu(torch.addmm(self.linear.bias, x, self.linear.weight.t()))
