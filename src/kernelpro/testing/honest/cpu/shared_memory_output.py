# task: linear
# accept: ok
# idea: an output in shared memory
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        y = torch.empty(x.shape[0], 256).share_memory_()
        y.copy_(self.right(x))
        return y
