# task: embedding
# accept: ok
# idea: the mean of gathered rows
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1000, 128)

    def forward(self, x):
        return torch.nn.functional.embedding_bag(x, self.table.weight, mode="mean")
