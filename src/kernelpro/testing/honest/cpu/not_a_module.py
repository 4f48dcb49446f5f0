# task: linear
# accept: ok
# idea: a plain class whose weights come from the seed
import torch


class ModelNew:
    def __init__(self):
        layer = torch.nn.Linear(256, 256)
        self.w, self.b = layer.weight.detach(), layer.bias.detach()

    def __call__(self, x):
        return torch.relu(x @ self.w.to(x.device).t() + self.b.to(x.device))

    def forward(self, x):
        return self(x)
