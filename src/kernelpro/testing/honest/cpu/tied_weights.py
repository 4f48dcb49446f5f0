# task: tied
# accept: ok
# idea: tied weights, a list of outputs of its own length
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(500, 64)
        self.out = torch.nn.Linear(64, 500, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids):
        e = self.table.weight[ids]
        return [e @ self.table.weight.t(), e[:, 0].contiguous(), e[:, 1]]
