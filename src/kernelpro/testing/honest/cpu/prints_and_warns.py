# task: linear
# accept: ok
# idea: prints, logs and warns in every call
import logging
import warnings

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        print("hello", x.shape)
        warnings.warn("a warning")
        logging.getLogger(__name__).warning("a log line")
        return self.right(x)
