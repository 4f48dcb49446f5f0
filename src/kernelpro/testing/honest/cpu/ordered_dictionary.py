# task: ordered
# accept: ok
# idea: an ordered dictionary as output
# devices: cpu
import collections
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return collections.OrderedDict(a=1 + x, b=x.sum(-1))
