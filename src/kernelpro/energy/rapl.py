"""Energy of CPU packages from the kernel's RAPL counters (Linux powercap). Reads files only."""

from __future__ import annotations

import time
from pathlib import Path

from kernelpro.energy.trace import Reading
from kernelpro.schema.profile import Missing

POWERCAP = Path("/sys/class/powercap")
_REMEDY = ("run on a machine (not a virtual one) whose /sys/class/powercap/*/energy_uj this user "
           "may read")  # fmt: skip


class RaplSensor:
    """Sum of all package domains. DRAM is counted where it is a subdomain of its own.

    Memory outside a package's counters, fans and disks are not in it.
    """

    meter = "rapl"
    power_limit_w: float | None = None

    def __init__(self, domains: tuple[Path, ...]) -> None:
        self._domains = domains
        self._ranges_uj = [_number(path / "max_energy_range_uj") for path in domains]
        self._last_uj = [_number(path / "energy_uj") for path in domains]
        self._total_uj = 0
        self.device = " + ".join((path / "name").read_text("ascii").strip() for path in domains)

    def energy_j(self) -> float:
        """Joules since the sensor was opened; counters that wrap around are unwrapped."""
        for index, path in enumerate(self._domains):
            now = _number(path / "energy_uj")
            step = now - self._last_uj[index]
            self._total_uj += step if step >= 0 else step + self._ranges_uj[index]
            self._last_uj[index] = now
        return self._total_uj / 1e6

    def state(self) -> Reading:
        """Nothing more is reported."""
        return Reading(t_s=time.perf_counter())

    def close(self) -> None:
        """Nothing is held."""


def open_rapl(root: Path = POWERCAP) -> RaplSensor | Missing:
    """The packages' counters under ``root``, or why they cannot be read."""
    packages = sorted(p for p in root.glob("*-rapl:*") if (p / "energy_uj").exists())
    chosen = [p for p in packages if _counts(p)]
    if not chosen:
        return Missing(what="energy", remedy=_REMEDY,
                       reason=f"{root} has no RAPL package domain: a virtual machine, or no "
                              "driver for this CPU")  # fmt: skip
    try:
        return RaplSensor(tuple(chosen))
    except PermissionError as error:
        return Missing(what="energy", remedy=_REMEDY,
                       reason=f"{error.filename} may be read by root only")  # fmt: skip
    except (OSError, ValueError) as error:
        return Missing(what="energy", reason=f"RAPL cannot be read: {error}", remedy=_REMEDY)


def _counts(domain: Path) -> bool:
    """Packages, and DRAM; cores and uncore are parts of their package."""
    try:
        name = (domain / "name").read_text("ascii").strip()
    except OSError:
        return False
    return name.startswith("package") or name == "dram"


def _number(path: Path) -> int:
    return int(path.read_text("ascii"))
