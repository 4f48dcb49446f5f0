# task: linear
# accept: ok
# idea: half a second of preparation in the first call
import time

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.ready = False

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if not self.ready:
            time.sleep(0.5)
            self.ready = True
        return self.right(x)
