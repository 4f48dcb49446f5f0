# task: linear
# accept: ok
# idea: a scratch buffer that is kept and reused, never returned
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.scratch = None

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if self.scratch is None or self.scratch.shape[0] != x.shape[0]:
            self.scratch = x.new_empty(x.shape[0], 256)
        torch.mm(x, self.linear.weight.t(), out=self.scratch)
        return torch.relu(self.scratch + self.linear.bias)
