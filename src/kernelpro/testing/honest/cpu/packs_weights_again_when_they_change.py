# task: linear
# accept: ok
# idea: a packed copy of the weights that follows load_state_dict
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.packed = None
        self.version = -1

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        version = self.linear.weight._version
        if self.packed is None or version != self.version:
            self.packed = self.linear.weight.detach().t().contiguous()
            self.version = version
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
