# task: matmul
# accept: ok
# idea: float32 accuracy from products of a three-way split
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        def split(t):
            parts = []
            for _ in range(3):
                part = t.bfloat16().float()
                parts.append(part)
                t = t - part
            return parts

        a, b = split(x), split(y)
        return sum(a[i] @ b[j] for i in (2, 1, 0) for j in (2, 1, 0) if i + j < 4)
