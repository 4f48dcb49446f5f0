"""One door for saved reports: ncu CSV or binary, nsys export, torch.profiler trace -> Profile.

Reads files only; needs no GPU. What a report does not contain is listed as missing.
"""

from __future__ import annotations

import gzip
import io
import json
import statistics
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.errors import KernelproError, UserError
from kernelpro.profiling.cuda import nsys, timeline
from kernelpro.profiling.cuda.kernel_match import base_name, choose
from kernelpro.profiling.cuda.ncu_csv import NcuKernel, is_evidence, read_csv
from kernelpro.profiling.cuda.ncu_report import read_report
from kernelpro.profiling.cuda.ncu_rules import facts
from kernelpro.profiling.cuda.sass import SassFunction, disassemble, find_disassembler
from kernelpro.schema.build import KernelResources
from kernelpro.schema.profile import KernelProfile, Metric, Missing, Profile

MAX_BYTES = 2 << 30
GZIP = b"\x1f\x8b"
SHOWN = 12
"""Unreadable metrics listed by name."""


def load_report(
    path: Path,
    *,
    sass: Path | None = None,
    entry_points: Iterable[str] = (),
) -> Profile:
    """A profile from whatever kind of report ``path`` is.

    ``sass`` adds machine-code evidence: a cubin, a program or a listing. ``UserError`` says what
    a file is not, or where it is damaged; ``MachineError`` if a tool to read it is missing.
    """
    kind = kind_of(path)
    if kind == "nsys":
        profile = timeline.profile(
            nsys.read_sqlite(path), device="", tool="nsys", entry_points=entry_points
        )
    elif kind == "trace":
        profile = timeline.profile(
            read_trace(path), device="", tool="torch.profiler", entry_points=entry_points
        )
    else:
        kernels = (
            read_report(path) if kind == "ncu-rep" else read_csv(read_text(path), name=str(path))
        )
        profile = from_ncu(kernels, entry_points)
    return profile if sass is None else with_sass(profile, sass)


def kind_of(path: Path) -> str:
    """``nsys``, ``trace``, ``ncu-rep`` or ``csv`` by content; ``UserError`` if unreadable."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if head.startswith(GZIP):
        head = read_text(path)[:4096].encode()
    if not head:
        raise UserError(f"{path} is empty: nothing was recorded in it")
    if size > MAX_BYTES:
        raise UserError(f"{path} is larger than {MAX_BYTES >> 30} GiB: profile fewer launches")
    if head.startswith(b"SQLite format 3\0"):
        return "nsys"
    if path.suffix == ".ncu-rep" or head.startswith(b"NVR\0"):
        return "ncu-rep"
    if path.suffix in (".qdrep", ".nsys-rep"):
        raise UserError(
            f"{path} is a binary nsys report. Export it first: nsys export --type sqlite {path}"
        )
    if head.lstrip()[:1] in (b"{", b"["):
        return "trace"
    return "csv"


def read_text(path: Path) -> str:
    """The text of a report, unpacked if it is gzipped."""
    data = path.read_bytes()
    if data.startswith(GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MAX_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{path} is truncated or damaged: {error}") from None
        if len(data) > MAX_BYTES:
            raise UserError(f"{path} unpacks to more than {MAX_BYTES >> 30} GiB")
    return data.decode("utf-8", errors="replace")


def read_trace(path: Path) -> list[timeline.Activity]:
    """Activities of a torch.profiler trace file."""
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise UserError(f"{path} is truncated or no JSON trace: {error}") from None
    return timeline.from_chrome_trace(data, name=str(path))


def from_ncu(kernels: Sequence[NcuKernel], entry_points: Iterable[str] = ()) -> Profile:
    """A profile of ncu launches; launches with equal name, grid and block become one kernel."""
    groups: dict[tuple[object, ...], list[NcuKernel]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.name, kernel.grid, kernel.block), []).append(kernel)
    merged = [_profile(group) for group in groups.values()]
    origins, selected = choose([(k.name, _total(k)) for k in merged], entry_points)
    unreadable = sorted(
        {n for kernel in kernels for n in kernel.unreadable if is_evidence(n, whole=False)}
    )
    missing: tuple[Missing, ...] = ()
    if unreadable:
        shown = ", ".join(unreadable[:SHOWN]) + (" ..." if len(unreadable) > SHOWN else "")
        missing = (Missing(what=shown, reason="the report has no number for them"),)
    device = next((kernel.device for kernel in kernels if kernel.device), "")
    return Profile(
        device=device or "NVIDIA GPU",
        kernels=tuple(
            replace(kernel, origin=origin) for kernel, origin in zip(merged, origins, strict=True)
        ),
        missing=missing,
        selected=selected,
        tools={"ncu": ""},
    )


def _total(kernel: KernelProfile) -> float | None:
    return None if kernel.duration_us is None else kernel.duration_us * kernel.launches


def _profile(group: Sequence[NcuKernel]) -> KernelProfile:
    """The launch of median duration stands for its group; the mean time keeps the total."""
    timed = sorted(
        (kernel for kernel in group if m.DURATION in kernel.metrics),
        key=lambda kernel: kernel.metrics[m.DURATION].value,
    )
    typical = timed[(len(timed) - 1) // 2] if timed else group[0]
    metrics = {**facts(typical.rules), **typical.metrics}
    if typical.capability is not None:
        major, minor = typical.capability
        metrics[m.CAPABILITY] = Metric(value=major * 10.0 + minor, source="ncu")
    duration = statistics.fmean(k.metrics[m.DURATION].value for k in timed) / 1e3 if timed else None
    registers = metrics.get(m.REGISTERS)
    return KernelProfile(
        name=typical.name,
        duration_us=duration,
        launches=len(group),
        grid=typical.grid,
        block=typical.block,
        metrics=metrics,
        resources=None
        if registers is None
        else KernelResources(kernel=typical.name, registers=int(registers.value)),
        rules=tuple(dict(rule) for rule in typical.rules),
    )


def with_sass(profile: Profile, path: Path) -> Profile:
    """``profile`` with instruction counts and hot lines of the functions found in ``path``.

    A kernel whose function is not found, or of whose name there are several, says so in
    ``missing``.
    """
    functions = disassemble(path, find_disassembler())
    kernels, missing = attach(profile.kernels, functions, str(path))
    return replace(profile, kernels=kernels, missing=(*profile.missing, *missing))


def attach(
    kernels: Sequence[KernelProfile], functions: dict[str, SassFunction], where: str
) -> tuple[tuple[KernelProfile, ...], tuple[Missing, ...]]:
    """Kernels with their machine code, and what could not be matched."""
    by_base: dict[str, list[SassFunction]] = {}
    for function in functions.values():
        by_base.setdefault(base_name(function.name), []).append(function)
    done, missing = [], []
    for kernel in kernels:
        exact = functions.get(kernel.name)
        found = [exact] if exact is not None else by_base.get(base_name(kernel.name), [])
        if len(found) == 1:
            done.append(
                replace(kernel, instructions=found[0].counts(), source_lines=found[0].hot_lines())
            )
            continue
        done.append(kernel)
        if kernel.origin in ("candidate", "unknown"):
            reason = "several functions have its name" if found else f"not in {where}"
            missing.append(Missing(what=f"SASS of {base_name(kernel.name)}", reason=reason))
    return tuple(done), tuple(missing)


def try_sass(profile: Profile, path: Path) -> Profile:
    """Like :func:`with_sass`, but trouble is missing evidence: for collectors, not for people."""
    try:
        return with_sass(profile, path)
    except KernelproError as error:
        lacking = Missing(what=f"SASS of {path.name}", reason=str(error))
        return replace(profile, missing=(*profile.missing, lacking))
