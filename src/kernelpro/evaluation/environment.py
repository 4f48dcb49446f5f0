"""What a number was measured on: versions, device, load. Reads only."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch

from kernelpro import __version__
from kernelpro.schema.hardware import Device


def describe(device: Device, *, threads: int, sandbox: tuple[str, ...]) -> dict[str, Any]:
    """The ``environment`` of an Outcome."""
    facts: dict[str, Any] = {
        "kernelpro": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "device": device.name,
        "device_uuid": device.uuid,
        "units": device.units,
        "threads": threads,
        "load_average": list(os.getloadavg()),
        "sandbox": list(sandbox),
    }
    if device.kind == "cuda":
        facts |= {"driver": device.driver, "cuda": torch.version.cuda}
    return facts
