"""Candidate sources and job settings for tests of the isolation package."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from kernelpro.isolation.base import Limits
from kernelpro.isolation.worker import WorkerSubject

QUICK = Limits(load_timeout_s=20.0, call_timeout_s=20.0)

Start = Callable[..., WorkerSubject]


def candidate(forward: str, *, init: str = "", top: str = "") -> str:
    """Source of a module with the given bodies; both see ``self``, forward sees ``x``."""
    return (
        "import torch\n"
        + textwrap.dedent(top)
        + "\nclass ModelNew(torch.nn.Module):\n"
        + "    def __init__(self, *args, **kwargs):\n        super().__init__()\n"
        + textwrap.indent(textwrap.dedent(init), " " * 8)
        + "\n    def forward(self, x):\n"
        + textwrap.indent(textwrap.dedent(forward), " " * 8)
    )
