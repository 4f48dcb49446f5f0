"""``profile_candidate``: the one entry to profiling, whatever the device."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import cast

from kernelpro.profiling.base import COLLECTORS, Collector, Subject
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile


def profile_candidate(
    problem: Problem,
    source: str,
    build_dir: Path,
    device: Device,
    peaks: Peaks | None,
    outcome: Outcome | None,
    graph: Graph | None,
    *,
    more: bool = False,
) -> Profile:
    """Profile an evaluated candidate; what the machine cannot tell is listed as missing.

    ``build_dir`` is the candidate's build root of the evaluation, so nothing is compiled again.
    more: another candidate is likely to follow, so what it needs may be started already.
    Raises ``MachineError`` only if no process can be started at all.
    """
    started = time.perf_counter()
    collector = cast(Collector, COLLECTORS.load(device.kind)())
    profile = collector.collect(
        Subject(
            problem=problem,
            source=source,
            build_dir=build_dir,
            device=device,
            peaks=peaks,
            outcome=outcome,
            graph=graph,
            more=more,
        )
    )
    return dataclasses.replace(profile, seconds=time.perf_counter() - started)
