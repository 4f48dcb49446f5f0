# task: softmax
# accept: ok
# idea: computed by numpy in double precision
# devices: cpu
import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        a = x.numpy().astype(np.float64)
        a = np.exp(a - a.max(1, keepdims=True))
        return torch.from_numpy((a / a.sum(1, keepdims=True)).astype(np.float32))
