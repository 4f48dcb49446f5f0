"""Handlers of jobs that only pretend: outcomes fixed by the source's hash, at a cost in seconds.

For tests and benchmarks of what carries jobs; never reached unless a job asks for it by name. A
problem says what an evaluation of it costs in a line ``SIMULATED_SECONDS = 0.02``.
"""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import Workplace
from kernelpro.hardware.base import probe
from kernelpro.schema.codec import from_jsonable
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.hardware import Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

FAILURES = (
    (Status.BUILD_ERROR, Stage.BUILD),
    (Status.TIMEOUT, Stage.RUN),
    (Status.WRONG_RESULT, Stage.VERIFY),
)


def prepare_job(payload: dict[str, Any], workplace: Workplace) -> RunStarted:
    """The start of a run on the worker's device, with invented peaks."""
    time.sleep(cost_s(payload["problem"]["source"]))
    return RunStarted(
        run_id=payload["run_id"], problem=from_jsonable(Problem, payload["problem"]), graphs=(),
        config=from_jsonable(RunConfig, payload["config"]),
        device=probe(workplace.place.device),
        peaks=Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="estimated"),
    )  # fmt: skip


def evaluate_job(payload: dict[str, Any], workplace: Workplace) -> dict[str, Any]:
    """What a source is worth is in its hash: 40 % fail, the rest spread around 1.2x."""
    _work_for(started_cost_s(payload))
    return {"outcome": judged(payload["source"]), "profile": None}


def remeasure_job(payload: dict[str, Any], workplace: Workplace) -> list[Outcome]:
    """The same outcomes again."""
    _work_for(started_cost_s(payload))
    return [judged(source) for source in payload["sources"]]


def work_job(payload: dict[str, Any], workplace: Workplace) -> Any:
    """Sleep ``seconds``, append ``note`` to the file ``log``, fail as ``fail`` says; ``answer``."""
    time.sleep(payload.get("seconds", 0.0))
    if "log" in payload:
        with Path(payload["log"]).open("a") as file:
            file.write(f"{payload.get('note', '')} {workplace.place.worker}\n")
    match payload.get("fail"):
        case "user":
            raise UserError("the user's fault")
        case "machine":
            raise MachineError("the machine's fault")
        case "internal":
            raise AssertionError("a fault of the program")
    return payload.get("answer")


def _work_for(seconds: float) -> None:
    if seconds:  # even no sleep at all would let every other thread of a simulation go first
        time.sleep(seconds)


def cost_s(source: str) -> float:
    """Seconds that one evaluation of a problem takes; 0 if it does not say."""
    found = re.search(r"^SIMULATED_SECONDS = ([0-9.]+)$", source, flags=re.M)
    return float(found[1]) if found else 0.0


def started_cost_s(payload: dict[str, Any]) -> float:
    """The same, for a job of a run that has started."""
    return cost_s(json.loads(payload["started"])["problem"]["source"])


def judged(source: str) -> Outcome:
    """The outcome of ``source``, the same every time."""
    source_hash = content_hash(source)
    draw = random.Random(source_hash)
    if draw.random() < 0.4:
        status, stage = draw.choice(FAILURES)
        return Outcome(
            status=status, stage=stage, message=f"simulated {status.value}",
            source_hash=source_hash,
        )  # fmt: skip
    speedup = draw.lognormvariate(0.2, 0.4)
    median_us = 100 / speedup
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
        speedup_ci95=(speedup * 0.99, speedup * 1.01),
        latency=Latency(
            median_us=median_us, ci95_us=(median_us * 0.99, median_us * 1.01),
            samples=(median_us,), timer="monotonic",
        ),
        correctness=Correctness(
            max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=1, precision_class="strict"
        ),
        source_hash=source_hash,
    )  # fmt: skip
