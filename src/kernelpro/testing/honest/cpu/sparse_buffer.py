# task: sparse
# accept: ok
# idea: a sparse matrix as a buffer
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", torch.eye(256).to_sparse())

    def forward(self, x):
        return 2 * torch.sparse.mm(self.adjacency, x)
