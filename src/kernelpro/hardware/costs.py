"""Keeps a device's measured energy costs beside its peaks; measures nothing."""

from __future__ import annotations

import os
from pathlib import Path

from kernelpro.errors import MachineError
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.hardware import Device, EnergyCosts
from kernelpro.text import content_hash, short_hash

COSTS_FORMAT = "1"
"""Part of the cache key: measured differently = measured again."""


def read_costs(device: Device, cache_root: Path) -> EnergyCosts | None:
    """What ``kernelpro calibrate --energy`` kept for this device, if it did."""
    try:
        return loads(EnergyCosts, _path(device, cache_root).read_bytes())
    except OSError:  # not measured yet
        return None
    except ValueError:  # cut short or of another version
        return None


def keep_costs(device: Device, costs: EnergyCosts, cache_root: Path) -> Path:
    """Write ``costs`` for later runs; ``MachineError`` if the cache cannot be written."""
    path = _path(device, cache_root)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(dumps(costs, indent=2), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise MachineError(f"Cannot keep the energy costs in {path}: {error}") from error
    return path


def _path(device: Device, cache_root: Path) -> Path:
    identity = (COSTS_FORMAT, device.uuid, device.driver)
    return cache_root / "energy" / f"{device.kind}-{short_hash(content_hash(repr(identity)))}.json"
