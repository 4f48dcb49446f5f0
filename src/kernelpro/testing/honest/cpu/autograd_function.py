# task: relu
# accept: ok
# idea: a custom autograd function
import torch


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp_min(0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x > 0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Relu.apply(x)
