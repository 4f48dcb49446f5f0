# task: complex_mul
# accept: ok
# idea: an output with torch's lazy conjugate bit
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return (x.conj() * y).sum(1).conj(), torch.fft.rfft(x.real, dim=1)
