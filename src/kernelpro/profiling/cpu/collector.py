"""Assembles the CPU profile: native functions, the observed run, and the roofline's figures."""

from __future__ import annotations

import dataclasses

from kernelpro.build.artifacts import read_manifest
from kernelpro.profiling.base import Subject
from kernelpro.profiling.cpu import disassembly, mca
from kernelpro.profiling.cpu.native import native_kernels
from kernelpro.profiling.cpu.observation import Observation, observe
from kernelpro.profiling.cpu.system import system_profile
from kernelpro.schema.profile import KernelProfile, Missing, Profile


class CpuCollector:
    """Collects on the CPU; see the package's table for the metrics."""

    def collect(self, subject: Subject) -> Profile:
        """Static facts of the objects, one isolated run, and figures against the roofline."""
        observed = observe(subject)  # first: it builds whatever is not built yet
        kernels, missing = native_kernels(read_manifest(subject.build_dir))
        if isinstance(observed, Missing):
            missing.append(observed)
        seen = None if isinstance(observed, Missing) else observed
        kernels = _with_times(kernels, seen)
        system, absent = system_profile(subject, seen)
        return Profile(
            device=subject.device.id,
            kernels=tuple(kernels),
            system=system,
            missing=(*_distinct(missing), *absent),
            selected=_selected(kernels, seen),
            tools=_tools(),
        )


def _with_times(kernels: list[KernelProfile], seen: Observation | None) -> list[KernelProfile]:
    """Time per entry, entries and shares from the observed call, largest share first."""
    if seen is None or not seen.functions:
        return kernels
    whole = max(seen.observed_us, 1e-9)
    timed = []
    for kernel in kernels:
        calls, microseconds = seen.functions.get(kernel.name, (0, 0.0))
        timed.append(
            dataclasses.replace(
                kernel,
                duration_us=microseconds / calls if calls else None,
                launches=calls,
                time_share=min(1.0, microseconds / whole),
            )
        )
    return sorted(timed, key=lambda kernel: -(kernel.time_share or 0.0))


def _selected(kernels: list[KernelProfile], seen: Observation | None) -> str:
    if not kernels:
        return "no native function: the candidate's time is the framework's"
    first = kernels[0]
    if seen is None or not seen.functions:
        return f"{first.name}: first of {len(kernels)} native functions; their times are not known"
    share = 100 * (first.time_share or 0.0)
    return f"{first.name}: {share:.0f} % of the call, largest of {len(kernels)} native functions"


def _distinct(missing: list[Missing]) -> tuple[Missing, ...]:
    return tuple(dict.fromkeys(missing))


def _tools() -> dict[str, str]:
    tools = {"objdump": disassembly.version(), "llvm-mca": mca.find_program()}
    return {name: version for name, version in tools.items() if version}
