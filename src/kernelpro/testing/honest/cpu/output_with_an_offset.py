# task: gelu
# accept: ok
# idea: a view that starts four bytes into its memory
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        flat = x.new_empty(x.numel() + 1)
        y = flat[1:].view(x.shape)
        y.copy_(torch.nn.functional.gelu(x))
        return y
