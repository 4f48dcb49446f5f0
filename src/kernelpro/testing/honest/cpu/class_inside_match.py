# task: linear
# accept: ok
# idea: ModelNew under a condition, a metaclass, an assigned forward
# devices: cpu
import torch


def forward(self, x):
    return torch.relu(self.linear(x))


match 1:
    case 1:

        class ModelNew(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(256, 256)

            forward = forward
