# task: named_pair
# accept: ok
# idea: a named tuple of its own, and torch's
# devices: cpu
import collections
import torch

Pair = collections.namedtuple("Pair", "low high")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Pair(low=x.amin(1), high=x.amax(1)), x.max(0)
