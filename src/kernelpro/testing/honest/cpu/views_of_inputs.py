# task: views
# accept: ok
# idea: views of its inputs, and an input itself, as in the reference
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return x.T, x[:, 0::2], torch.add(y, x).flatten()[5:], x
