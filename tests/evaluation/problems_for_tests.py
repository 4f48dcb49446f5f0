"""Small problem files shared by the referee's tests."""

from __future__ import annotations

from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.schema.problem import Precision, Problem


def make(
    body: str,
    inputs: str,
    *,
    init: str = "[]",
    precision: Precision = "strict",
    constructor: str = "pass",
    name: str = "problem",
) -> Problem:
    """A problem whose forward is ``body`` (arguments ``x``, ``y``, ``z`` as given)."""
    source = f"""
import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def __init__(self, *args):
        super().__init__()
        {constructor}

    def forward(self, *args):
        x = args[0]
        y = args[1] if len(args) > 1 else None
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return {init}
"""
    return problem_from_source(
        source, name=name, origin=f"{name}.py", kind="file", precision=precision
    )


SOFTMAX = make("return torch.softmax(x, -1)", "torch.rand(16, 512)", name="softmax")
LINEAR = make(
    "return torch.relu(self.linear(x))",
    "torch.rand(32, 256)",
    constructor="self.linear = torch.nn.Linear(256, 128)",
    name="linear",
)
