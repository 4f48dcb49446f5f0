"""The writer that simulated campaigns name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelpro.proposers.base import PROPOSERS

from .simulated import Writer


@pytest.fixture(autouse=True)
def simulated_writer() -> Iterator[None]:
    PROPOSERS.add("simulated", Writer)
    yield
    PROPOSERS.remove("simulated")
