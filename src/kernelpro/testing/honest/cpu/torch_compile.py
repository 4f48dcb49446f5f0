# task: gelu
# accept: ok
# idea: torch.compile inside the candidate
# pace: slow
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = torch.compile(torch.nn.functional.gelu)

    def forward(self, x):
        return self.compiled(x)
