"""What the whole call looked like to the system: launches, gaps, synchronisation, copies.

Pure arithmetic over activities, whatever recorded them (torch.profiler, CUPTI, nsys). It decides
nothing; the thresholds are in the tools.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.errors import UserError
from kernelpro.profiling.cuda import occupancy
from kernelpro.profiling.cuda.kernel_match import choose, origin
from kernelpro.schema.hardware import Device
from kernelpro.schema.profile import KernelProfile, Metric, Profile, SystemProfile

Kind = Literal["kernel", "memcpy", "memset", "runtime", "operator"]

_SYNC = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
         "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")  # fmt: skip
_LAUNCH = ("Launch", "cudaMemcpy", "cudaMemset", "cuMemcpy", "cuMemset")
MAX_OPERATORS = 30
"""Framework operators kept, largest self time first."""


class Launch(NamedTuple):
    """How a kernel was launched, and what it takes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    """Per thread."""
    shared_bytes: int
    """Per block, static plus dynamic."""


class Activity(NamedTuple):
    """One thing that happened, on the GPU or in the host's CUDA runtime."""

    kind: Kind
    name: str
    start_us: float
    duration_us: float
    correlation: int | None = None
    """Ties a GPU activity to the runtime call that caused it."""
    detail: str = ""
    """Copies: direction (``HtoD``, ``DtoH``, ``DtoD``)."""
    launch: Launch | None = None
    """Kernels: launch and resources, where the recorder tells."""

    @property
    def end_us(self) -> float:
        """End of the activity."""
        return self.start_us + self.duration_us


def from_chrome_trace(data: Any, *, name: str = "the trace") -> list[Activity]:
    """Activities of a torch.profiler (Kineto) trace, already parsed from JSON."""
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise UserError(f"{name} is not a torch.profiler trace: it has no traceEvents")
    found: list[Activity] = []
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        activity = _from_event(event)
        if activity is not None:
            found.append(activity)
    if not found:
        raise UserError(f"{name} holds no CUDA activity: was it recorded with CUDA enabled?")
    return sorted(found, key=lambda a: a.start_us)


_CATEGORIES: dict[str, Kind] = {
    "kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset",
    "cuda_runtime": "runtime", "cuda_driver": "runtime", "cpu_op": "operator",
}  # fmt: skip


def _from_event(event: dict[str, Any]) -> Activity | None:
    kind = _CATEGORIES.get(str(event.get("cat", "")).lower())
    if kind is None:
        return None
    arguments = event.get("args") or {}
    title = str(event.get("name", ""))
    detail = ""
    if kind == "memcpy":
        detail = next((d for d in ("HtoD", "DtoH", "DtoD") if d in title.replace(" ", "")), "")
    correlation = arguments.get("correlation")
    return Activity(
        kind, title, float(event.get("ts", 0.0)), float(event.get("dur", 0.0)),
        int(correlation) if correlation is not None else None, detail, _launch(arguments),
    )  # fmt: skip


def _launch(arguments: dict[str, Any]) -> Launch | None:
    grid, block = arguments.get("grid"), arguments.get("block")
    if not (isinstance(grid, list) and isinstance(block, list) and len(grid) == len(block) == 3):
        return None
    return Launch(
        (int(grid[0]), int(grid[1]), int(grid[2])), (int(block[0]), int(block[1]), int(block[2])),
        int(arguments.get("registers per thread", 0)), int(arguments.get("shared memory", 0)),
    )  # fmt: skip


def summarise(activities: Sequence[Activity]) -> SystemProfile:
    """System metrics of one or several calls: see ``diagnosis.cuda_metrics`` for the names.

    Times of several calls are not divided: shares and medians are what the tools read. A last
    synchronisation that nothing follows is the measurement's own and is not counted.
    """
    gpu = sorted(
        (a for a in activities if a.kind in ("kernel", "memcpy", "memset")),
        key=lambda a: a.start_us,
    )
    kernels = [a for a in gpu if a.kind == "kernel"]
    if not kernels:
        return SystemProfile()
    runtime = sorted((a for a in activities if a.kind == "runtime"), key=lambda a: a.start_us)
    launches: _Launches = {a.correlation: a for a in runtime if a.correlation is not None}
    first = min([gpu[0].start_us, *(_launch_start(a, launches) for a in gpu[:1])])
    span = max(a.end_us for a in gpu) - first
    busy = _union(gpu)
    gaps = _gaps(gpu)
    syncs = _syncs(runtime)
    values: dict[str, tuple[float, str]] = {
        m.SYSTEM_SPAN_US: (span, "us"),
        m.SYSTEM_BUSY_SHARE: (busy / span if span > 0 else 0.0, ""),
        m.SYSTEM_KERNELS: (float(len(kernels)), "count"),
        m.SYSTEM_MEDIAN_KERNEL_US: (statistics.median(a.duration_us for a in kernels), "us"),
        m.SYSTEM_GAP_SHARE: (sum(g.length for g in gaps) / span if span > 0 else 0.0, ""),
        m.SYSTEM_MEDIAN_GAP_US: (
            statistics.median(g.length for g in gaps) if gaps else 0.0, "us",
        ),
        **_host_shares(gaps, launches, syncs, span),
        **_copies(gpu, busy),
        m.SYSTEM_LIBRARY_SHARE: (_library_share(kernels), ""),
        m.SYSTEM_GRAPH_KERNELS: (
            float(sum(1 for a in kernels if _is_graph(a, launches))), "count",
        ),
    }  # fmt: skip
    return SystemProfile(
        metrics={
            k: Metric(value=v, unit=unit, source="timeline") for k, (v, unit) in values.items()
        },
        operators=operators(activities),
    )


_Launches = dict[int | None, Activity]
"""Correlation -> the runtime call that caused a GPU activity."""


class _Gap(NamedTuple):
    """Time in which the GPU did nothing, and what ended it."""

    start_us: float
    length: float
    ended_by: Activity


def _gaps(gpu: Sequence[Activity]) -> list[_Gap]:
    found, reached = [], gpu[0].end_us
    for activity in gpu[1:]:
        if activity.start_us > reached:
            found.append(_Gap(reached, activity.start_us - reached, activity))
        reached = max(reached, activity.end_us)
    return found


def _union(gpu: Sequence[Activity]) -> float:
    """Time in which at least one activity ran."""
    total, reached = 0.0, float("-inf")
    for activity in gpu:
        total += max(0.0, activity.end_us - max(activity.start_us, reached))
        reached = max(reached, activity.end_us)
    return total


def _launch_start(activity: Activity, launches: _Launches) -> float:
    call = launches.get(activity.correlation)
    return activity.start_us if call is None else call.start_us


def _is_graph(activity: Activity, launches: _Launches) -> bool:
    call = launches.get(activity.correlation)
    return call is not None and "GraphLaunch" in call.name


def _syncs(runtime: Sequence[Activity]) -> list[Activity]:
    """Calls that waited for the GPU and after which the host launched more work."""
    last = max((a.start_us for a in runtime if _is_launch(a)), default=float("-inf"))
    return [a for a in runtime if a.name.startswith(_SYNC) and a.start_us < last]


def _is_launch(call: Activity) -> bool:
    return any(part in call.name for part in _LAUNCH)


def _host_shares(
    gaps: Sequence[_Gap],
    launches: _Launches,
    syncs: Sequence[Activity],
    span: float,
) -> dict[str, tuple[float, str]]:
    """Idle time for which the host is to blame, split into synchronisation and late launches.

    A gap is the host's if the launch that ended it began after the gap did; it is a
    synchronisation gap if in addition a waiting call overlapped the gap's start.
    """
    late = waited = 0.0
    for gap in gaps:
        call = launches.get(gap.ended_by.correlation)
        if call is None or call.start_us < gap.start_us:
            continue
        overlaps = any(s.start_us <= call.start_us and s.end_us >= gap.start_us for s in syncs)
        waited += gap.length if overlaps else 0.0
        late += 0.0 if overlaps else gap.length
    share = (lambda part: part / span) if span > 0 else (lambda part: 0.0)
    return {
        m.SYSTEM_LAUNCH_BOUND_SHARE: (share(late), ""),
        m.SYSTEM_SYNC_GAP_SHARE: (share(waited), ""),
        m.SYSTEM_SYNCS: (float(len(syncs)), "count"),
        m.SYSTEM_SYNC_US: (sum(s.duration_us for s in syncs), "us"),
    }


def _copies(gpu: Sequence[Activity], busy: float) -> dict[str, tuple[float, str]]:
    host = [a for a in gpu if a.kind == "memcpy" and a.detail in ("HtoD", "DtoH")]
    time = sum(a.duration_us for a in host)
    return {
        m.SYSTEM_COPIES: (float(len(host)), "count"),
        m.SYSTEM_COPY_SHARE: (time / busy if busy > 0 else 0.0, ""),
    }


def _library_share(kernels: Sequence[Activity]) -> float:
    times: dict[str, float] = defaultdict(float)
    for activity in kernels:
        times[activity.name] += activity.duration_us
    total = sum(times.values())
    mine = sum(time for name, time in times.items() if origin(name) == "library")
    return mine / total if total > 0 else 0.0


def operators(activities: Iterable[Activity]) -> tuple[dict[str, Any], ...]:
    """Framework operators by self time (children on the same timeline taken off)."""
    ordered = sorted(
        (a for a in activities if a.kind == "operator"), key=lambda a: (a.start_us, -a.duration_us)
    )
    self_us: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    open_: list[Activity] = []
    for activity in ordered:
        while open_ and open_[-1].end_us <= activity.start_us:
            open_.pop()
        if open_:
            self_us[open_[-1].name] -= activity.duration_us
        self_us[activity.name] += activity.duration_us
        calls[activity.name] += 1
        open_.append(activity)
    largest = sorted(self_us, key=lambda name: -self_us[name])[:MAX_OPERATORS]
    return tuple(
        {"name": name, "calls": calls[name], "self_us": max(self_us[name], 0.0),
         "kind": "framework"}
        for name in largest
    )  # fmt: skip


def kernel_profiles(
    activities: Sequence[Activity],
    entry_points: Iterable[str] = (),
    device: Device | None = None,
) -> tuple[tuple[KernelProfile, ...], str]:
    """Kernels by name with launches, mean duration and time share; and which is the candidate's.

    With a ``device`` whose chip is known, launch and occupancy figures are calculated.
    """
    groups: dict[str, list[Activity]] = defaultdict(list)
    for activity in activities:
        if activity.kind == "kernel":
            groups[activity.name].append(activity)
    times = {name: sum(a.duration_us for a in group) for name, group in groups.items()}
    total = sum(times.values())
    names = sorted(groups, key=lambda name: -times[name])
    origins, selected = choose([(name, times[name]) for name in names], entry_points)
    kernels = []
    for name, source in zip(names, origins, strict=True):
        launch = groups[name][0].launch
        kernels.append(
            KernelProfile(
                name=name, origin=source, launches=len(groups[name]),
                duration_us=times[name] / len(groups[name]),
                time_share=times[name] / total if total > 0 else None,
                grid=launch.grid if launch else None, block=launch.block if launch else None,
                metrics=_launch_metrics(launch, device),
            )
        )  # fmt: skip
    return tuple(kernels), selected


def _launch_metrics(launch: Launch | None, device: Device | None) -> dict[str, Metric]:
    if launch is None or device is None or device.capability is None:
        return {}
    return occupancy.metrics(
        device.capability, grid=launch.grid, block=launch.block, registers=launch.registers,
        shared_bytes=launch.shared_bytes, multiprocessors=device.units,
    )  # fmt: skip


def profile(
    activities: Sequence[Activity],
    *,
    device: str,
    tool: str,
    entry_points: Iterable[str] = (),
    probed: Device | None = None,
) -> Profile:
    """A profile with system-level evidence and kernel times, but no counters."""
    kernels, selected = kernel_profiles(activities, entry_points, probed)
    return Profile(
        device=device, kernels=kernels, system=summarise(activities), selected=selected,
        tools={tool: ""},
    )  # fmt: skip
