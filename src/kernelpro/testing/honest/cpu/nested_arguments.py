# task: nested
# accept: ok
# idea: nested arguments and outputs, a dictionary in another order
# devices: cpu
from __future__ import annotations
import dataclasses
import torch


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float = 2.0
    names: tuple = ("a", "b")


class ModelNew(torch.nn.Module):
    def __init__(self, **given):
        super().__init__()
        self.config = Config(**given)

    def forward(self, batch, extra, alpha, flag, mode, nothing=None):
        x, (y, z) = batch["x"], batch["rest"]
        s = torch.add(x * alpha, y, alpha=self.config.scale)
        s = s - z if flag else s
        s = s.abs() if mode == "abs" else s
        last = (extra[1] + extra[0],)
        outs = {}
        for i in reversed(range(len(self.config.names))):
            outs[self.config.names[i]] = s + i
        return {"n": 3, "list": [s.sum(), s.mean(0), None, last], "outs": outs}
