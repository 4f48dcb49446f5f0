# task: linear
# accept: ok
# idea: a CUDA graph with its own input, output copied out
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.graph = None

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if self.graph is None or self.x.shape != x.shape:
            self.x = x.clone()
            self.right(self.x)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = self.right(self.x)
        self.x.copy_(x)
        self.graph.replay()
        return self.out.clone()
