"""Every random choice of a run derives from its one seed and the name of the choice."""

from __future__ import annotations

import hashlib


def derived_seed(seed: int, *names: object) -> int:
    """A 63-bit seed for the choice called ``names``."""
    text = ":".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
