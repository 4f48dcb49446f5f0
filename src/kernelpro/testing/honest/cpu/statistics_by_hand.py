# task: batch_norm
# accept: ok
# idea: batch norm by hand, running statistics included
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(8)

    def forward(self, x):
        norm = self.norm
        count = x.numel() // x.shape[1]
        mean = x.double().mean((0, 2, 3))
        variance = x.double().var((0, 2, 3), unbiased=False)
        with torch.no_grad():
            norm.running_mean.lerp_(mean.float(), norm.momentum)
            norm.running_var.lerp_((variance * count / (count - 1)).float(), norm.momentum)
            norm.num_batches_tracked += 1
        shape = (1, -1, 1, 1)
        y = (x - mean.view(shape)) * torch.rsqrt(variance + norm.eps).view(shape)
        return (y * norm.weight.view(shape) + norm.bias.view(shape)).float()
