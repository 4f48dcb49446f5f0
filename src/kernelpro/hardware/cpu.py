"""Reads what the CPU is from the kernel's own files; measures nothing (see ``peaks_cpu``)."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from pathlib import Path

from kernelpro import inline
from kernelpro.schema.hardware import Device, Peaks

FEATURES = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl",
    "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8",
    "asimd", "asimdhp", "bf16", "i8mm", "sve", "sve2",
)  # fmt: skip
"""Flags that change which kernels can be written; others are left out of ``Device.features``."""
_V2 = {"sse4_2", "ssse3", "popcnt", "cx16"}
_V3 = _V2 | {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = (("x86-64-v4", _V4), ("x86-64-v3", _V3), ("x86-64-v2", _V2))
"""x86-64 psABI micro-architecture levels, by their flags in ``/proc/cpuinfo``."""
SYSTEM = Path("/sys/devices/system/cpu")


class CpuKind:
    """The processor as a device; there is one."""

    def count(self) -> int:
        """Always 1."""
        return 1

    def probe(self, index: int) -> Device:
        """Describe the processor; see :func:`probe`."""
        return probe()

    def measure(self, device: Device) -> Peaks:
        """Measured ceilings; see :mod:`kernelpro.hardware.peaks_cpu`."""
        from kernelpro.hardware import peaks_cpu

        return peaks_cpu.measure(device)


def probe() -> Device:
    """The CPU this process may use: cores after affinity and cgroup quota, caches, SIMD."""
    facts = cpu_facts()
    flags = set((facts.get("flags") or facts.get("features") or "").split())
    cpus = sorted(os.sched_getaffinity(0))
    caches = cache_bytes(cpus[0])
    units = usable_cores(cpus)
    try:
        compiler: str | None = inline.find_compiler()[1]
    except inline.ToolchainError:
        compiler = None
    name = facts.get("model name") or facts.get("cpu part") or platform.machine()
    return Device(
        kind="cpu", name=name, uuid=_uuid(facts, caches, units), units=units,
        memory_bytes=usable_memory(), l1_bytes=caches.get(1), l2_bytes=caches.get(2),
        l3_bytes=caches.get(3), simd_bits=simd_bits(flags),
        features=tuple(feature for feature in FEATURES if feature in flags),
        architecture=_architecture(flags), clock_mhz=_clock_mhz(cpus[0], facts),
        driver=platform.release(), compiler=compiler,
    )  # fmt: skip


@functools.cache
def cpu_facts() -> dict[str, str]:
    """The first processor's entries of ``/proc/cpuinfo``, keys in lower case."""
    text = _read(Path("/proc/cpuinfo")) or ""
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs if key.strip()}


def usable_cores(cpus: list[int]) -> int:
    """Distinct physical cores among ``cpus``, capped by the cgroup's CPU quota; at least 1.

    Hyper-threads of one core share its vector units, so they are not counted twice.
    """
    cores = set()
    for cpu in cpus:
        topology = SYSTEM / f"cpu{cpu}" / "topology"
        core, package = _read(topology / "core_id"), _read(topology / "physical_package_id")
        cores.add((package, core) if core is not None else cpu)
    quota = cpu_quota()
    return max(1, min(len(cores), int(quota) if quota else len(cores)))


def cpu_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """CPUs' worth of time the cgroup (v2 or v1) grants this process; 0.0 = no limit."""
    limits = []
    for folder in _cgroup_folders(root, own, "cpu"):
        quota, _, period = (_read(folder / "cpu.max") or "max").partition(" ")
        if not (folder / "cpu.max").exists():
            quota = _read(folder / "cpu.cfs_quota_us") or "max"
            period = _read(folder / "cpu.cfs_period_us") or "100000"
        if quota.isdigit() and int(quota) > 0:
            limits.append(int(quota) / int(period or 100_000))
    return min(limits, default=0.0)


def usable_memory(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int:
    """Bytes of memory: the machine's, or the cgroup's limit where that is lower."""
    match = re.search(r"MemTotal:\s+(\d+) kB", _read(Path("/proc/meminfo")) or "")
    sizes = (
        [int(match[1]) * 1024]
        if match
        else [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    )
    for folder in _cgroup_folders(root, own, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(folder / name) or ""
            sizes += [int(text)] if text.isdigit() else []
    return min(sizes)


def cache_bytes(cpu: int = 0) -> dict[int, int]:
    """Cache level -> bytes of the data or unified cache that ``cpu`` sees (level 3 is shared)."""
    sizes = {}
    for index in (SYSTEM / f"cpu{cpu}" / "cache").glob("index*"):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size or "")
        if level and match and kind in ("Data", "Unified"):
            sizes[int(level)] = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
    return sizes


def simd_bits(flags: set[str]) -> int | None:
    """Width of the widest vector registers that ``flags`` allow, in bits; None if unknown."""
    known = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128), ("neon", 128))
    return next((bits for flag, bits in known if flag in flags), None)


def _architecture(flags: set[str]) -> str:
    if platform.machine() != "x86_64":
        return platform.machine()
    return next((name for name, needed in LEVELS if needed <= flags), "x86-64")


def _clock_mhz(cpu: int, facts: dict[str, str]) -> float | None:
    highest = _read(SYSTEM / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq")
    if highest and highest.isdigit():
        return int(highest) / 1000.0
    nominal = facts.get("cpu mhz")
    return float(nominal) if nominal else None


def _uuid(facts: dict[str, str], caches: dict[int, int], units: int) -> str:
    """Equal for the same processor, share and machine; calibrations are kept under it."""
    identity = [facts.get(key, "") for key in ("vendor_id", "cpu family", "model", "model name",
                "stepping", "flags", "features", "cpu part")]  # fmt: skip
    identity += [repr(sorted(caches.items())), str(units), _read(Path("/etc/machine-id")) or ""]
    return "CPU-" + hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]


def _cgroup_folders(root: Path, own: Path, controller: str) -> list[Path]:
    """Folders of this process's cgroup and its ancestors, for v2 and for v1's controller."""
    folders: list[Path] = []
    for line in (_read(own) or "").splitlines():
        number, names, path = line.split(":", 2)
        if number == "0" or controller in names.split(","):
            base = root if number == "0" else root / controller
            place = base / path.lstrip("/")
            chain = [place, *place.parents]
            folders += chain[: chain.index(base) + 1] if base in chain else [base]
    return folders or [root]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
