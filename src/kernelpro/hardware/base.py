"""Devices by name: what this machine has, and how fast it is.

One door for built-in and plug-in kinds of device (registry kind ``device``). Probing asks the
system; only :func:`peaks` measures, and it keeps what it measured.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Protocol, cast

from kernelpro.errors import MachineError, UserError
from kernelpro.hardware.costs import read_costs
from kernelpro.registry import Registry
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.text import content_hash, short_hash

devices = Registry(
    "device",
    {"cpu": "kernelpro.hardware.cpu:CpuKind", "cuda": "kernelpro.hardware.cuda:CudaKind"},
)
PEAKS_FORMAT = "2"
"""Part of the cache key: measured differently = measured again."""


class DeviceKind(Protocol):
    """One kind of device; registered as a class that takes no arguments."""

    def count(self) -> int:
        """How many this process can use; 0, without raising, if there are none."""
        ...

    def probe(self, index: int) -> Device:
        """Describe device ``index``; ``MachineError`` if it cannot be asked."""
        ...

    def measure(self, device: Device) -> Peaks:
        """Its measured ceilings, in a few seconds; changes no setting of the device."""
        ...


def resolve_device(device_id: str = "auto") -> str:
    """``auto`` -> ``cuda:0`` if a GPU is usable, else ``cpu``; others are checked for their form.

    ``cuda`` means ``cuda:0``. ``UserError`` for a name that is no device.
    """
    if not isinstance(device_id, str):
        raise UserError(f"A device is named by text (auto, cpu, cuda or cuda:N), not {device_id!r}")
    if device_id == "auto":
        return "cuda:0" if _kind("cuda").count() else "cpu"
    name, index = _split(device_id)
    return name if name == "cpu" else f"{name}:{index}"


def probe(device_id: str = "auto") -> Device:
    """Describe a device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    ``UserError`` if there is no such device, ``MachineError`` if there is none of its kind, or it
    does not answer.
    """
    name, index = _split(resolve_device(device_id))
    kind = _kind(name)
    count = kind.count()
    if index >= count:
        if not count:
            raise MachineError(
                f"No device {device_id!r}: this machine has none that works. `kernelpro doctor` "
                "says why"
            )
        raise UserError(f"No device {device_id!r}: this machine has {count}")
    return kind.probe(index)


def peaks(device: Device, *, cache_root: Path, remeasure: bool = False) -> Peaks:
    """Measured ceilings of ``device``, from the cache under ``cache_root`` where they are known,
    with its energy costs where those were calibrated.

    The key is the device's uuid, driver, toolkit and compiler. ``MachineError`` if measuring
    fails.
    """
    identity = (PEAKS_FORMAT, device.uuid, device.driver, device.toolkit, device.compiler)
    name = f"{device.kind}-{short_hash(content_hash(repr(identity)))}.json"
    path = cache_root / "peaks" / name
    if not remeasure:
        known = _read_peaks(path)
        if known is not None:
            return dataclasses.replace(known, energy=read_costs(device, cache_root))
    measured = _kind(device.kind).measure(device)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(dumps(measured, indent=2), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise MachineError(f"Cannot keep the calibration in {path}: {error}") from error
    return dataclasses.replace(measured, energy=read_costs(device, cache_root))


def _read_peaks(path: Path) -> Peaks | None:
    try:
        return loads(Peaks, path.read_bytes())
    except OSError:  # not measured yet; a folder that cannot be used shows when it is written
        return None
    except ValueError:  # cut short or of another version: measure again and overwrite
        return None


def _kind(name: str) -> DeviceKind:
    return cast(DeviceKind, devices.load(name)())


def _split(device_id: str) -> tuple[str, int]:
    name, colon, index = device_id.partition(":")
    if name not in devices.names() or (colon and not index.isdigit()):
        known = ", ".join(devices.names())
        raise UserError(f"No device {device_id!r}. Use auto, cpu, cuda or cuda:N (kinds: {known})")
    return name, int(index or 0)
