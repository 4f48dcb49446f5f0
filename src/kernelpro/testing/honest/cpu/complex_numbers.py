# task: complex_mul
# accept: ok
# idea: complex products from their real parts
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        a, b, c, d = x.real, x.imag, y.real, y.imag
        return torch.complex((a * c + b * d).sum(1), (b * c - a * d).sum(1)), torch.fft.rfft(
            x.real, dim=1
        )
