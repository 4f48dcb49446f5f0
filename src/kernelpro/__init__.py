"""kernelpro writes faster kernels in a closed loop and proves that they are faster.

The public functions live in :mod:`kernelpro.api`; they are loaded on first use, so that
``import kernelpro`` stays cheap and never imports torch.
"""

from __future__ import annotations

__version__ = "0.1.0"

_API = (
    "optimize", "evaluate", "profile", "diagnose", "lint", "calibrate", "doctor",
    "start", "ask", "tell",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _API:
        from kernelpro import api

        return getattr(api, name)
    raise AttributeError(f"module 'kernelpro' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_API, "__version__"]
