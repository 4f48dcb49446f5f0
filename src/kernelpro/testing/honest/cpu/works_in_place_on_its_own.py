# task: linear
# accept: ok
# idea: in-place operators on memory of its own
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        y = torch.mm(x, self.linear.weight.t())
        y += self.linear.bias
        return y.relu_()
