"""What the devices of this machine are and how fast they can go; what its tools can do.

Never changes a setting of a device, and never runs a candidate.
"""

from __future__ import annotations

from kernelpro.hardware.base import devices, peaks, probe, resolve_device
from kernelpro.hardware.check import Check, doctor

__all__ = ["Check", "devices", "doctor", "peaks", "probe", "resolve_device"]
