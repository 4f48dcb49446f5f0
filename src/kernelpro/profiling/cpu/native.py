"""Profiles of a candidate's native functions from its objects: one ``KernelProfile`` each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from kernelpro.profiling.cpu import mca
from kernelpro.profiling.cpu.disassembly import Function, disassemble
from kernelpro.profiling.cpu.hot_loop import hot_loop, source_line
from kernelpro.profiling.cpu.loop_metrics import (
    computes,
    function_metrics,
    hot_loop_metrics,
    instruction_mix,
)
from kernelpro.profiling.cpu.loops import Loop, find_loops, reachable
from kernelpro.profiling.cpu.vectoriser import LineReport, read_report
from kernelpro.schema.build import Artifact
from kernelpro.schema.profile import KernelProfile, Metric, Missing, SourceLine


def native_kernels(artifacts: Sequence[Artifact]) -> tuple[list[KernelProfile], list[Missing]]:
    """Every entry point of every C++ object, with what is missing."""
    kernels: dict[str, KernelProfile] = {}
    missing: list[Missing] = []
    for artifact in artifacts:
        if artifact.language != "cpp":
            continue
        functions = disassemble(Path(artifact.object_path))
        if isinstance(functions, Missing):
            missing.append(functions)
            continue
        report = read_report(artifact)
        if isinstance(report, Missing):
            missing.append(report)
        known = None if isinstance(report, Missing) else report
        reader = _ObjectReader(artifact, functions, known)
        for name in _entry_points(artifact, functions):
            kernels[name] = reader.kernel(name, missing)
    if not kernels and not missing:
        missing.append(
            Missing(
                what="native functions",
                reason="the candidate built no C++ object",
                remedy="write the hot part in C++ through kernelpro.inline",
            )
        )
    return list(kernels.values()), missing


class _ObjectReader:
    """Everything about one object that its functions share."""

    def __init__(
        self,
        artifact: Artifact,
        functions: dict[str, Function],
        report: dict[int, LineReport] | None,
    ) -> None:
        self._functions = functions
        self._report = report
        self._file_name = PurePath(artifact.source_path).name
        self._source = _lines(Path(artifact.source_path))

    def kernel(self, entry: str, missing: list[Missing]) -> KernelProfile:
        depths = reachable(self._functions, entry)
        rows = [i for name in depths for i in self._functions[name].instructions]
        loops = [
            loop
            for name, depth in depths.items()
            for loop in find_loops(self._functions[name], depth)
        ]
        metrics = function_metrics(loops, rows)
        hot = hot_loop(loops, self._source, self._file_name)
        if hot is None:
            missing.append(
                Missing(what=f"hot loop of {entry}", reason="no loop of it does FP arithmetic")
            )
        else:
            metrics |= hot_loop_metrics(hot)
            simulated = mca.simulate(hot)
            if isinstance(simulated, Missing):
                missing.append(simulated)
            else:
                metrics |= simulated
        reports = self._reports_on(loops)
        metrics |= _vectoriser_metrics(reports)
        return KernelProfile(
            name=entry,
            origin="candidate",
            metrics=metrics,
            instructions=instruction_mix(hot) if hot else {},
            source_lines=self._hot_line(hot),
            notes=self._notes(reports),
        )

    def _reports_on(self, loops: Sequence[Loop]) -> dict[int, LineReport] | None:
        """The compiler's remarks on innermost loops that compute, unless vectorised by hand."""
        if self._report is None:
            return None
        computing = [loop for loop in loops if loop.innermost and computes(loop)]
        lines = {source_line(loop, self._file_name) for loop in computing}
        packed = {
            source_line(loop, self._file_name)
            for loop in computing
            if any(i.packed for i in loop.instructions)
        }
        return {
            line: report
            for line, report in self._report.items()
            if line in lines and (report.vectorised or line not in packed)
        }

    def _hot_line(self, hot: Loop | None) -> tuple[SourceLine, ...]:
        line = source_line(hot, self._file_name) if hot else 0
        if hot is None or line == 0:
            return ()
        values = {"loop_instructions": float(len(hot.instructions)), "depth": float(hot.depth)}
        return (SourceLine(file=self._file_name, line=line, text=self._text(line), values=values),)

    def _notes(self, reports: dict[int, LineReport] | None) -> tuple[str, ...]:
        return tuple(
            f"{self._file_name}:{line}: not vectorised: {reason}"
            for line, report in (reports or {}).items()
            if report.missed and not report.vectorised
            for reason in report.reasons or ["the compiler gives no reason"]
        )

    def _text(self, line: int) -> str:
        return self._source[line - 1].strip() if line <= len(self._source) else ""


def _entry_points(artifact: Artifact, functions: dict[str, Function]) -> list[str]:
    """Functions the candidate asked for by name, else those that no other refers to."""
    named = [name for name in artifact.entry_points if name in functions]
    if named:
        return named
    inner = frozenset().union(*(f.references - {f.name} for f in functions.values()))
    runtime = ("_", "deregister_tm", "register_tm", "frame_dummy")
    return [name for name in functions if name not in inner and not name.startswith(runtime)]


def _vectoriser_metrics(reports: dict[int, LineReport] | None) -> dict[str, Metric]:
    if reports is None:
        return {}
    vectorised = sum(report.vectorised for report in reports.values())
    missed = sum(report.missed and not report.vectorised for report in reports.values())
    return {
        "cpu.loops_vectorised": Metric(value=float(vectorised), unit="count", source="vectoriser"),
        "cpu.loops_missed": Metric(value=float(missed), unit="count", source="vectoriser"),
    }


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []  # lines without text; the metrics do not need it
