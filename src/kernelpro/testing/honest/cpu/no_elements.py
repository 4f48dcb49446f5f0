# task: empty_out
# accept: ok
# idea: tensors without elements
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, e):
        return x[:, :0], torch.empty_like(e), x + x, torch.empty(0, 5)
