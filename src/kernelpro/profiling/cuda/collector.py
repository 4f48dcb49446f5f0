"""Assembles the CUDA profile: timeline, counters, machine code; weaker evidence where one lacks.

The ladder: ncu counters -> kernel times and launches from torch.profiler -> SASS and calculated
occupancy. Every step that could not be taken is a ``Missing`` with its reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from kernelpro.build.artifacts import read_manifest
from kernelpro.build.machine_code import unused
from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.analytic import floor
from kernelpro.errors import KernelproError, MachineError, UserError
from kernelpro.inline.nvcc import find_cuda_program
from kernelpro.isolation.base import Call, Limits, SubjectFailure, SubjectJob
from kernelpro.isolation.mail import room
from kernelpro.isolation.one_call import SEED
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.profiling.base import Subject
from kernelpro.profiling.cuda import timeline
from kernelpro.profiling.cuda.ahead import PROFILER
from kernelpro.profiling.cuda.ncu_metrics import STAGE1, STAGE2, stage2
from kernelpro.profiling.cuda.ncu_run import Captured
from kernelpro.profiling.cuda.report import attach, from_ncu
from kernelpro.profiling.cuda.sass import SassFunction, disassemble, find_disassembler
from kernelpro.schema.build import Artifact, KernelResources
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import KernelProfile, Metric, Missing, Profile, SystemProfile

REPLY_LIMIT_BYTES = 8 << 20
ENTRY = "KernelproTimeline"
_MATMUL_TOOLS = ("tensor_core_underutilization", "wgmma_usage")


class CudaCollector:
    """Collects on an NVIDIA GPU; see the package's docstring for what."""

    def collect(self, subject: Subject) -> Profile:
        """Timeline first (it also builds what is not built yet), then counters beside SASS."""
        timed = _timeline(subject)
        artifacts = read_manifest(subject.build_dir)
        entries = [name for artifact in artifacts for name in artifact.entry_points]
        with ThreadPoolExecutor(1) as reader:
            code = reader.submit(_code, subject, artifacts)
            captured = _counters(subject)
            functions, unread = code.result()
        missing = [*captured.missing]
        profile = from_ncu(captured.kernels, entries) if captured.kernels else None
        if isinstance(timed, Missing):
            missing.append(timed)
        else:
            seen = timeline.profile(
                timed, device=subject.device.name, tool="torch.profiler", entry_points=entries,
                probed=subject.device,
            )  # fmt: skip
            seen = replace(seen, system=without_the_profilers_share(seen.system, subject.outcome))
            profile = seen if profile is None else _joined(profile, seen)
        if profile is None:
            profile = Profile(device=subject.device.name, kernels=())
        kernels, absent = _with_code(profile.kernels, functions, artifacts)
        return replace(
            profile,
            device=subject.device.name,
            kernels=kernels,
            missing=(*profile.missing, *missing, *unread, *absent),
        )


def tools_for(subject: Subject) -> tuple[str, ...]:
    """Tools whose metrics are worth their replay passes for this problem (stage 1, analytic)."""
    graph, peaks = subject.graph, subject.peaks
    names = list(STAGE2)
    if graph is not None and not graph.has_matmul:
        names = [name for name in names if name not in _MATMUL_TOOLS]
    bound = floor(graph, peaks, subject.device) if graph is not None and peaks else None
    if bound is not None and bound.roofline_class == "memory":
        names = [name for name in names if name not in _MATMUL_TOOLS]
    return tuple(names)


def _counters(subject: Subject) -> Captured:
    """ncu on one call of the candidate, in a program of its own."""
    ncu = find_cuda_program("ncu")
    if ncu is None:
        return Captured(
            missing=[
                Missing(
                    what="ncu counters", reason="ncu was not found",
                    remedy="install Nsight Compute and put ncu on PATH",
                )
            ]
        )  # fmt: skip
    job = {"problem": to_jsonable(subject.problem), "device": subject.device.id,
           "sandbox": "best-effort"}  # fmt: skip
    return PROFILER.counters(
        ncu, (*STAGE1, *stage2(tools_for(subject))), subject.source, subject.build_dir, job,
        more=subject.more,
    )  # fmt: skip


def _timeline(subject: Subject) -> list[timeline.Activity] | Missing:
    """A few calls under torch.profiler in an isolated subject."""
    try:
        return _observe(subject)
    except SubjectFailure as failure:
        reason = f"the candidate failed under observation: {failure.message}"
    except (MachineError, UserError) as error:
        reason = str(error)
    return Missing(what="timeline", reason=reason)


def _observe(subject: Subject) -> list[timeline.Activity]:
    import torch

    from kernelpro.isolation.worker import start_subject

    module = ProblemModule(subject.problem)
    args, kwargs = module.init_args()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        inputs = module.make_inputs(device=subject.device.id)
        reference = module.make_model()
    process = start_subject(
        SubjectJob(
            source=observed_source(subject.source), entry=ENTRY, device=subject.device.id,
            init_args=args, init_kwargs=kwargs, construction_seed=SEED,
            build_root=subject.build_dir, threads=len(os.sched_getaffinity(0)), limits=Limits(),
            device_mail_bytes=room(inputs),
        )
    )  # fmt: skip
    try:
        shapes = {entry.name: entry.shape for entry in process.load().state}
        state = reference.state_dict()
        process.write_state(
            {k: v.detach() for k, v in state.items() if shapes.get(k) == tuple(v.shape)}
        )
        process.write_inputs(0, inputs)
        process.run([Call(slot=0)])
        outputs = process.read_outputs(0)
        if len(outputs.tensors) != 1 or len(outputs.tensors[0].data) > REPLY_LIMIT_BYTES:
            raise UserError("its reply is of another form")
        data = outputs.tensors[0].data.cpu().numpy().tobytes()
    finally:
        process.close()
    try:
        return timeline.from_chrome_trace(json.loads(data), name="the observed run")
    except ValueError as error:
        raise UserError(f"its reply is no trace ({error})") from None


def observed_source(source: str) -> str:
    """The candidate's file with the observer behind it, in a namespace of its own."""
    text = Path(__file__).with_name("observer.py").read_text(encoding="utf-8")
    return (
        f"{source}\n\n"
        "_kernelpro_space = {'__name__': __name__, 'ModelNew': ModelNew}\n"
        f"exec({text!r}, _kernelpro_space)\n"
        f"{ENTRY} = _kernelpro_space[{ENTRY!r}]\n"
    )


def without_the_profilers_share(
    system: SystemProfile | None, outcome: Outcome | None
) -> SystemProfile | None:
    """The share of late launches, bounded by what the evaluation saw.

    Under a profiler the host issues launches several times more slowly. Without one the queue runs
    empty for at most the part of a call's issue that its device time does not cover.
    """
    name = m.SYSTEM_LAUNCH_BOUND_SHARE
    late = system.metrics.get(name) if system is not None else None
    issue_us = outcome.evidence.get("issue_us") if outcome is not None else None
    latency = outcome.latency if outcome is not None else None
    if system is None or late is None or latency is None or not isinstance(issue_us, int | float):
        return system
    most = max(0.0, 1.0 - latency.median_us / max(float(issue_us), 1e-9))
    if late.value <= most:
        return system
    bounded = Metric(value=most, unit=late.unit, source="timer")
    return replace(system, metrics={**system.metrics, name: bounded})


def _joined(counted: Profile, seen: Profile) -> Profile:
    """Counters with the timeline's shares, launches and system evidence.

    ncu's own durations are of cold, serialised replays: shares come from the timeline.
    """
    timed = {kernel.name: kernel for kernel in seen.kernels}
    kernels = []
    for kernel in counted.kernels:
        match = timed.pop(kernel.name, None)
        share = None if match is None else match.time_share
        kernels.append(replace(kernel, time_share=share))
    return replace(
        counted,
        kernels=(*kernels, *timed.values()),
        system=seen.system,
        missing=(*counted.missing, *seen.missing),
        tools={**counted.tools, **seen.tools},
    )


def _code(
    subject: Subject, artifacts: Sequence[Artifact]
) -> tuple[dict[str, SassFunction], list[Missing]]:
    """The candidate's machine code by function, and what could not be read."""
    functions: dict[str, SassFunction] = {}
    missing: list[Missing] = []
    tools = find_disassembler()
    sources = {artifact.object_path: artifact.source_path for artifact in artifacts}
    for path in cubins(subject.build_dir, artifacts):
        try:
            found = disassemble(path, tools)
        except KernelproError as error:
            missing.append(Missing(what=f"SASS of {path.name}", reason=str(error)))
            continue
        functions.update(found)
        missing += _not_in_the_code(sources.get(str(path), ""), found)
    return functions, missing


def _not_in_the_code(source_path: str, functions: dict[str, SassFunction]) -> list[Missing]:
    """Instructions the source asks for that the machine code lacks."""
    try:
        source = Path(source_path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # other lanes do not keep one
        return []
    stems = {i.opcode.partition(".")[0] for f in functions.values() for i in f.instructions}
    return [
        Missing(
            what=f"{' or '.join(one.opcodes)} in the machine code",
            reason=f"the source asks for {one.what}, and the SASS has none: the code is never "
            "reached, or was built for another target",
            remedy="check the branch that leads there and that the target is sm_90a",
        )
        for one in unused(source, stems)
    ]


def _with_code(
    kernels: Sequence[KernelProfile], functions: dict[str, SassFunction],
    artifacts: Sequence[Artifact],
) -> tuple[tuple[KernelProfile, ...], tuple[Missing, ...]]:  # fmt: skip
    """Kernels with SASS counts and the compiler's resources."""
    resources = {r.kernel: r for artifact in artifacts for r in artifact.resources}
    done, unmatched = attach(kernels, functions, "the candidate's build folder")
    return tuple(_with_resources(k, resources) for k in done), tuple(unmatched)


def _with_resources(kernel: KernelProfile, resources: dict[str, KernelResources]) -> KernelProfile:
    found = resources.get(kernel.name) or resources.get(kernel.name.split("(")[0].split(" ")[-1])
    return kernel if found is None else replace(kernel, resources=found)


def cubins(build_dir: Path, artifacts: Sequence[Artifact]) -> list[Path]:
    """GPU objects of the candidate: what its manifest lists, and what Triton left behind."""
    listed = [Path(a.object_path) for a in artifacts if a.language in ("cuda", "cute")]
    cached = sorted(build_dir.rglob("*.cubin")) if build_dir.is_dir() else []
    return list(dict.fromkeys(p for p in (*listed, *cached) if p.is_file()))
