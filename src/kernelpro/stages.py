"""Says what is being done now, for live views: a log, never a result. Nothing may depend on it."""

from __future__ import annotations

import logging

LOG = logging.getLogger("kernelpro.stage")
"""Every record's message is the name of a step: ``load``, ``verify``, ``time``, ``profile`` ..."""


def entering(stage: str) -> None:
    """A step begins in this process."""
    LOG.info("%s", stage)
