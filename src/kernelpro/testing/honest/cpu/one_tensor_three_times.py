# task: same_twice
# accept: ok
# idea: one tensor as three outputs
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.tanh()
        return y, y.view(y.shape), y.mT
