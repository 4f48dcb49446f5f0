# task: layer_norm
# accept: ok
# idea: tables of its own, registered as buffers
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(1024)
        self.register_buffer("ones", torch.full((1024, 1), 1.0 / 1024), persistent=False)

    def forward(self, x):
        mean = x.double() @ self.ones.double()
        centred = x.double() - mean
        variance = centred.square() @ self.ones.double()
        y = centred * torch.rsqrt(variance + self.norm.eps)
        return (y * self.norm.weight + self.norm.bias).float()
