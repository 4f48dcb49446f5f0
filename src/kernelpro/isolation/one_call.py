"""The program that NVIDIA's tools wrap: one call of the candidate inside an NVTX range, confined.

    python -m kernelpro.isolation.one_call JOB.json OWNER

Waits for the job if it is not there yet: importing torch under ncu takes seconds, which the next
candidate's evaluation can spend. Ends if OWNER, the process that would write it, is gone. Decides
nothing: the referee has accepted the candidate already, and it is the tool that is believed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

RANGE = "kernelpro"
WARM_UPS = 2
SEED = 20260101
MAX_PROCESSES = 512
MAX_FILE_BYTES = 4 << 30
CPU_SECONDS = 300


POLL_S = 0.01


def main(job_file: str, owner: int) -> int:
    """Load problem and candidate, warm up, and make one marked call."""
    import torch

    from kernelpro.isolation import loading
    from kernelpro.problems.instantiate import ProblemModule
    from kernelpro.schema.problem import Problem

    job = _wait_for(Path(job_file), owner)
    if job is None:
        return 0
    os.environ.update(job["environment"])
    device = torch.device(job["device"])
    torch.set_grad_enabled(False)
    module = ProblemModule(Problem(**job["problem"]))
    args, kwargs = module.init_args()
    torch.manual_seed(SEED)
    inputs = module.make_inputs(device=job["device"])
    state = module.make_model().state_dict()
    torch.zeros(1, device=device).add_(1)  # the driver opens its files before the door closes
    torch.cuda.synchronize(device)
    _confine(job)
    source = Path(job["scratch"]) / "candidate.py"
    candidate = loading.import_candidate(source, "kernelpro_candidate")
    model = loading.construct(candidate, "ModelNew", args, kwargs, device=device, seed=SEED)
    own = model.state_dict()
    fitting = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape}
    model.load_state_dict(fitting, strict=False)
    for _ in range(WARM_UPS):
        model(*inputs)
    torch.cuda.synchronize(device)
    torch.cuda.nvtx.range_push(RANGE)  # type: ignore[no-untyped-call]
    model(*inputs)
    torch.cuda.synchronize(device)
    torch.cuda.nvtx.range_pop()  # type: ignore[no-untyped-call]
    return 0


def _wait_for(path: Path, owner: int) -> dict[str, Any] | None:
    """The job, once it is there; None if nobody is left to write it."""
    while not path.exists():
        if not Path(f"/proc/{owner}").exists():
            return None
        time.sleep(POLL_S)
    job: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return job


def _confine(job: dict[str, Any]) -> None:
    """Enter the sandbox for good, as far as the kernel offers it."""
    from kernelpro.isolation import sandbox

    os.chdir(job["scratch"])
    policy = sandbox.SandboxPolicy(
        mode=job["sandbox"],
        writable=(job["scratch"], job["build_root"]),
        gpu=True,
        memory_bytes=None,
        max_processes=MAX_PROCESSES,
        max_file_bytes=MAX_FILE_BYTES,
        cpu_seconds=CPU_SECONDS,
    )
    sandbox.enter(policy, sandbox.Layers())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
