"""Runs a candidate once more in an isolated subject, under ``observer``, and reads what it saw."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelpro.errors import MachineError, UserError
from kernelpro.isolation.base import Call, Limits, SubjectFailure, SubjectJob
from kernelpro.isolation.base import Subject as Process
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.profiling.base import Subject
from kernelpro.profiling.cpu import perf
from kernelpro.schema.profile import Missing

if TYPE_CHECKING:
    import torch

SEED = 20260101
"""Profiling draws inputs of its own; any seed will do."""
ENTRY = "KernelproObserved"
WHAT = "observed run"
REPLY_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A few plain calls: medians and per-call counts."""

    median_us: float
    best_us: float
    """Least disturbed by other load: what comparisons use."""
    threads_used: float | None
    """CPU time over that of the busiest thread; None = the kernel does not tell."""
    on_core: float | None
    """Share of the time that the busiest thread was on a core; low = the machine was busy."""
    page_faults: float
    context_switches: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the candidate's process reported about itself. A claim, for advice only."""

    threads: int
    all_threads: Repeated
    one_thread: Repeated | None
    """None where the call had one thread to begin with."""
    observed_us: float
    """Latency of the instrumented call."""
    operators: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Framework operator -> (calls, own microseconds) of one call, by the profiler's names."""
    functions: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Native function of ``kernelpro.inline`` -> (calls, microseconds) of one call."""
    inputs_subnormal: float | None = None
    outputs_subnormal: float | None = None
    folder: str = ""
    """Working directory of the candidate's process."""
    counters: dict[str, float] | Missing = field(default_factory=dict)
    """Hardware events by perf's names."""


def observe(subject: Subject) -> Observation | Missing:
    """Run the candidate under the observer; ``Missing`` if it cannot be run that way."""
    try:
        return _run(subject)
    except SubjectFailure as failure:
        return Missing(
            what=WHAT, reason=f"the candidate failed under observation: {failure.message}"
        )
    except (MachineError, UserError) as error:
        return Missing(what=WHAT, reason=str(error))


def observed_source(source: str) -> str:
    """The candidate's file with the observer behind it, in a namespace of its own."""
    text = Path(__file__).with_name("observer.py").read_text(encoding="utf-8")
    return (
        f"{source}\n\n"
        "_kernelpro_space = {'__name__': __name__, 'ModelNew': ModelNew}\n"
        f"exec({text!r}, _kernelpro_space)\n"
        f"{ENTRY} = _kernelpro_space[{ENTRY!r}]\n"
    )


def parse(data: bytes) -> Observation | Missing:
    """The reply as a record; ``Missing`` if it is not one."""
    try:
        seen = json.loads(data)
        single = seen.get("single")
        return Observation(
            threads=int(_number(seen["threads"])),
            all_threads=_repeated(seen["all"]),
            one_thread=None if single is None else _repeated(single),
            observed_us=_number(seen["observed_us"]),
            operators=_entries(seen["operators"]),
            functions=_entries(seen["functions"]),
            inputs_subnormal=_optional(seen["inputs_subnormal"]),
            outputs_subnormal=_optional(seen["outputs_subnormal"]),
            folder=str(seen["folder"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Missing(what=WHAT, reason=f"its reply is of another form ({error!r})")


def _run(given: Subject) -> Observation | Missing:
    import torch

    from kernelpro.isolation.worker import start_subject

    module = ProblemModule(given.problem)
    args, kwargs = module.init_args()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        inputs = module.make_inputs()
        reference = module.make_model()
    process = start_subject(_job(given, args, kwargs))
    try:
        loaded = process.load()
        shapes = {entry.name: entry.shape for entry in loaded.state}
        process.write_state(_shared_state(reference, shapes))
        process.write_inputs(0, inputs)
        process.run([Call(slot=0)])
        outputs = process.read_outputs(0)
        if len(outputs.tensors) != 1 or len(outputs.tensors[0].data) > REPLY_LIMIT_BYTES:
            return Missing(what=WHAT, reason="its reply is of another form")
        seen = parse(outputs.tensors[0].data.numpy().tobytes())
        if isinstance(seen, Missing):
            return seen
        return dataclasses.replace(seen, counters=_count_events(process, seen.folder))
    finally:
        process.close()


def _count_events(process: Process, folder: str) -> dict[str, float] | Missing:
    """Hardware events of one more call."""
    unavailable = perf.why_not()
    if unavailable is not None:
        return unavailable
    pid = perf.process_in(folder)
    if pid is None:
        return Missing(what=perf.WHAT, reason="the candidate's process cannot be found in /proc")
    return perf.count(pid, lambda: process.run([Call(slot=0)]))


def _job(given: Subject, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SubjectJob:
    return SubjectJob(
        source=observed_source(given.source),
        entry=ENTRY,
        device=given.device.id,
        init_args=args,
        init_kwargs=kwargs,
        construction_seed=SEED,
        build_root=given.build_dir,
        threads=_threads(given),
        limits=Limits(),
    )


def _threads(given: Subject) -> int:
    """As many as the referee timed it with, else all cores."""
    environment = given.outcome.environment if given.outcome is not None else {}
    threads = environment.get("threads")
    return threads if isinstance(threads, int) and threads > 0 else given.device.units


def _shared_state(
    reference: torch.nn.Module, shapes: dict[str, tuple[int, ...]]
) -> dict[str, torch.Tensor]:
    """The reference's values for state that the candidate declares under the same name."""
    return {
        name: value.detach()
        for name, value in reference.state_dict().items()
        if shapes.get(name) == tuple(value.shape)
    }


def _repeated(value: dict[str, Any]) -> Repeated:
    return Repeated(
        median_us=_number(value["median_us"]),
        best_us=_number(value["best_us"]),
        threads_used=_optional(value["threads_used"]),
        on_core=_optional(value["on_core"]),
        page_faults=_number(value["page_faults"]),
        context_switches=_number(value["context_switches"]),
        calls=int(_number(value["calls"])),
    )


def _entries(value: dict[str, Any]) -> dict[str, tuple[int, float]]:
    return {
        str(name): (int(_number(calls)), _number(microseconds))
        for name, (calls, microseconds) in value.items()
    }


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    if value < 0:
        raise ValueError(f"{value!r} is negative")
    return float(value)
