"""Skips what this machine cannot run, and says why."""

from __future__ import annotations

import functools
import os

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported, which reads it: threads of this process that wait for each other sleep.
# By default they spin, beside the other worker's tests and the subjects that these here start,
# and a second of work takes five. Subjects have an environment of their own, without this.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Unit tests make no claim about time: a busy machine must not fail them.
settings.register_profile("kernelpro", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernelpro")


@functools.cache
def _gpu_reason() -> str | None:
    """None if a CUDA GPU is usable, else why not."""
    import torch

    if not torch.cuda.is_available():
        return "needs an NVIDIA GPU that torch can use; this machine has none"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    network = os.environ.get("KERNELPRO_TEST_NETWORK") == "1"
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    reason = _gpu_reason() if gpu_items else None
    for item in gpu_items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    for item in items:
        if item.get_closest_marker("network") and not network:
            item.add_marker(pytest.mark.skip(reason="set KERNELPRO_TEST_NETWORK=1 to run"))
