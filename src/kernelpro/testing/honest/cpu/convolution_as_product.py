# task: conv
# accept: ok
# idea: im2col and a matrix product
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 32, 3, padding=1)

    def forward(self, x):
        columns = torch.nn.functional.unfold(x, 3, padding=1)
        w = self.conv.weight.view(32, -1)
        y = w @ columns + self.conv.bias[:, None]
        return torch.relu(y).view(x.shape[0], 32, x.shape[2], x.shape[3])
