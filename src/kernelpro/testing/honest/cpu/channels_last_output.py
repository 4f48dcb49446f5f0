# task: conv
# accept: ok
# idea: an output in channels-last order
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 32, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x)).to(memory_format=torch.channels_last)
