"""Profiles any program's kernels with Nsight Compute, for people: trouble is an error, not a gap.

Counters replay every launch, so times are of cold, serialised kernels; shares still tell which
kernel matters.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace

from kernelpro.errors import MachineError, UserError
from kernelpro.inline.nvcc import find_cuda_program
from kernelpro.profiling.cuda.ncu_metrics import STAGE1, STAGE2, stage2
from kernelpro.profiling.cuda.ncu_run import Selection, collect
from kernelpro.profiling.cuda.report import from_ncu
from kernelpro.schema.profile import Profile

LAUNCHES = 100
"""Launches profiled unless told otherwise: a training step, without replaying an epoch."""
TIMEOUT_S = 1800.0


def profile_command(
    command: Sequence[str],
    *,
    kernel: str | None = None,
    launches: int = LAUNCHES,
    timeout_s: float = TIMEOUT_S,
) -> Profile:
    """Counters of the first ``launches`` kernels of ``command`` whose name matches ``kernel``.

    ``UserError`` if the program does not exist or launches no such kernel, ``MachineError`` if ncu
    is missing or cannot work here.
    """
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} is no program that can be run")
    ncu = find_cuda_program("ncu")
    if ncu is None:
        raise MachineError(
            "Profiling a command needs Nsight Compute (ncu), which was not found: install it and "
            "put ncu on PATH. A report saved elsewhere can be read without it: ncu --csv --page raw"
        )
    captured = collect(
        ncu, command, (*STAGE1, *stage2(STAGE2)), Selection(kernel=kernel, count=launches),
        environment=os.environ, timeout_s=timeout_s,
    )  # fmt: skip
    if not captured.kernels:
        gap = captured.missing[-1]
        remedy = f": {gap.remedy}" if gap.remedy else ""
        said = f". It said: {captured.output.strip()[-500:]}" if captured.output.strip() else ""
        error = UserError if gap.reason == "no kernel was captured" else MachineError
        raise error(f"{' '.join(command)}: {gap.reason}{remedy}{said}")
    profile = from_ncu(captured.kernels)
    return replace(profile, missing=(*profile.missing, *captured.missing), seconds=captured.seconds)
