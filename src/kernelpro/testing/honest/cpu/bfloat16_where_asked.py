# task: half_linear
# accept: ok
# idea: half precision where the problem has it
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return (x.float() @ y.float()).bfloat16()
