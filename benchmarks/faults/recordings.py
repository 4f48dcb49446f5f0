"""Reads what ``record.py`` wrote and gives a profile per case, from each page. No GPU."""

from __future__ import annotations

import gzip
import io
import json
import statistics
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent.parent / "src"))

from cases import Case, all_cases  # noqa: E402

from kernelpro.diagnosis import cuda_metrics as m  # noqa: E402
from kernelpro.profiling.cuda import timeline  # noqa: E402
from kernelpro.profiling.cuda.kernel_match import base_name  # noqa: E402
from kernelpro.profiling.cuda.ncu_csv import NcuKernel, read_csv  # noqa: E402
from kernelpro.profiling.cuda.report import from_ncu  # noqa: E402
from kernelpro.schema.profile import Metric, Profile, SourceLine, SystemProfile  # noqa: E402

PAGES = ("full_raw", "full_details", "stages")
POWER_REASONS = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
"""NVML clock-event bits: power cap, hardware slowdown, both thermal ones, power brake."""


class Recordings:
    """One recording session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        self.sass: dict[str, Any] = self._json("sass.json.gz")
        self.system: dict[str, Any] = self._json("system.json.gz")
        self.tables: dict[str, list[list[NcuKernel]]] = {}
        for page in PAGES:
            path = folder / f"{page}.csv.gz"
            self.tables[page] = tables(gzip.decompress(path.read_bytes()).decode()) \
                if path.is_file() else []  # fmt: skip
        self.torch: dict[str, dict[int, NcuKernel]] = {}
        archive = folder / "torch.tar.gz"
        if archive.is_file():
            with tarfile.open(archive) as content:
                for member in content.getmembers():
                    file = content.extractfile(member)
                    assert file is not None
                    page = member.name.removeprefix("torch_").removesuffix(".csv.gz")
                    text = gzip.decompress(file.read()).decode()
                    self.torch[f"full_{page}"] = by_order(text)

    def _json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        if not path.is_file():
            return {}
        data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        return data

    def profile(self, case: Case, page: str = "full_raw", *, sass: bool = True) -> Profile | None:
        """The case as the tools see it; None if it was not recorded on that page."""
        if case.system:
            return self._system(case)
        kernel = self._kernel(case, page)
        if kernel is None:
            return None
        profile = from_ncu([kernel])
        return with_code(profile, self._code(case)) if sass else profile

    def _kernel(self, case: Case, page: str) -> NcuKernel | None:
        if case.path.suffix == ".py":
            order = self.system.get(case.id, {}).get("order")
            return self.torch.get(page, {}).get(order)
        named = [k for table in self.tables[page] for k in table if k.name.split("(")[0] == case.id]
        return named[0] if named else None

    def _code(self, case: Case) -> dict[str, Any]:
        if case.path.suffix == ".py":
            found = self.system.get(case.id, {}).get("sass", {})
        else:
            found = {case.id: self.sass.get(case.id, {})}
        return {name: code for cubin in found.values() for name, code in cubin.items()}

    def _system(self, case: Case) -> Profile | None:
        recorded = self.system.get(case.id)
        if not recorded or "timeline" not in recorded:
            return None
        activities = timeline.from_chrome_trace(recorded["timeline"])
        profile = timeline.profile(activities, device="NVIDIA H200", tool="torch.profiler")
        if "power" in recorded and profile.system is not None:
            metrics = {**profile.system.metrics, **power_metrics(recorded["power"]["samples"])}
            operators = profile.system.operators
            profile = replace(profile, system=SystemProfile(metrics=metrics, operators=operators))
        return profile


def tables(text: str) -> list[list[NcuKernel]]:
    """A merged file holds one table per distinct header."""
    parts: list[list[str]] = []
    for line in io.StringIO(text):
        if line.startswith('"ID"'):
            parts.append([])
        if parts:
            parts[-1].append(line)
    return [read_csv("".join(part), name="recording") for part in parts if len(part) > 1]


def by_order(text: str) -> dict[int, NcuKernel]:
    """Torch cases have one launch each; ``record.py`` numbered their tables by thousands."""
    found: dict[int, NcuKernel] = {}
    current: list[str] = []
    blocks: list[list[str]] = []
    for line in io.StringIO(text):
        if line.startswith('"ID"'):
            current = [line]
            blocks.append(current)
        elif current:
            current.append(line)
    for block in blocks:
        rows = block[1:]
        units = [line for line in rows if line.startswith('"",')]
        groups: dict[int, list[str]] = {}
        for line in rows:
            number = line[1 : line.find('"', 1)]
            if number.isdigit():
                groups.setdefault(int(number) // 1000, []).append(line)
            elif number and groups:
                groups[next(reversed(groups))].append(line)
        for order, lines in groups.items():
            kernels = read_csv("".join([block[0], *units, *lines]), name="recording")
            found[order] = kernels[0]
    return found


def with_code(profile: Profile, code: dict[str, Any]) -> Profile:
    """Static counts as ``--sass`` would attach them: of the function with the kernel's name."""
    kernel = profile.kernels[0]
    name = base_name(kernel.name)
    own = [found for function, found in code.items() if base_name(function) == name]
    if len(own) != 1:
        return profile
    lines = tuple(SourceLine(**line) for line in own[0]["lines"])
    kernel = replace(kernel, instructions=own[0]["counts"], source_lines=lines)
    return replace(profile, kernels=(kernel, *profile.kernels[1:]))


def power_metrics(samples: list[dict[str, Any]]) -> dict[str, Metric]:
    """Clock and throttle shares under load (the first second is warm-up)."""
    loaded = samples[5:] or samples
    clocks = [float(s["sm_mhz"]) / float(s["max_sm_mhz"]) for s in loaded]
    limited = [bool(int(str(s["reasons"]), 0) & POWER_REASONS) for s in loaded]
    return {
        m.SYSTEM_SM_CLOCK_SHARE: Metric(value=statistics.median(clocks), source="nvidia-smi"),
        m.SYSTEM_POWER_LIMITED: Metric(value=sum(limited) / len(limited), source="nvidia-smi"),
    }


def cases_of(half: str) -> list[Case]:
    """Cases of ``tuning``, ``set_aside`` or ``all``."""
    from cases import split

    halves = split()
    return [case for case in all_cases() if half == "all" or halves[case.id] == half]
