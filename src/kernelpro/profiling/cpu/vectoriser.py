"""Reads the compiler's vectorisation report out of a build log: gcc's and clang's forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kernelpro.schema.build import Artifact
from kernelpro.schema.profile import Missing

LOG_LIMIT_BYTES = 64 << 20

_GCC = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<kind>optimized|missed):\s+(?P<text>.*)"
)
_GCC_WIDTH = re.compile(r"(?:loop|basic block part|epilogue loop) vectorized using (\d+) byte")
_GCC_REASON = re.compile(r"not vectorized: (.+)")
_CLANG = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: remark: (?P<text>.*) \[-Rpass(?P<missed>-missed)?="
)
_CLANG_WIDTH = re.compile(r"vectorized loop \(vectorization width: (\d+)")
_VAGUE = {"no vectype for stmt", "unsupported", ""}


@dataclass(slots=True)
class LineReport:
    """What the compiler said about the loop at one source line."""

    vector_bytes: int = 0
    """Widest vector used; 0 = not vectorised. For clang, elements instead of bytes."""
    missed: bool = False
    reasons: list[str] = field(default_factory=list)

    @property
    def vectorised(self) -> bool:
        """True if any version of the loop was vectorised."""
        return self.vector_bytes > 0


def read_report(artifact: Artifact) -> dict[int, LineReport] | Missing:
    """Report by line of the artifact's own source; ``Missing`` if the log holds none."""
    what = f"vectorisation report of {PurePath(artifact.source_path).name}"
    log = Path(artifact.log_path)
    try:
        if log.stat().st_size > LOG_LIMIT_BYTES:
            return Missing(what=what, reason=f"the log is over {LOG_LIMIT_BYTES >> 20} MB")
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return Missing(what=what, reason=f"the build log cannot be read: {error.strerror}")
    report = parse(text, PurePath(artifact.source_path).name)
    if report is None:
        return Missing(
            what=what,
            reason="the build log holds no vectorisation remarks",
            remedy="build through kernelpro.inline, which asks the compiler for them",
        )
    return report


def parse(text: str, file_name: str) -> dict[int, LineReport] | None:
    """Reports by line for ``file_name``; None if the text has no remarks at all."""
    lines: dict[int, LineReport] = {}
    seen = False
    for row in text.splitlines():
        found = _GCC.match(row) or _CLANG.match(row)
        if found is None:
            continue
        seen = True
        if PurePath(found["file"]).name == file_name:
            _read(found, lines.setdefault(int(found["line"]), LineReport()))
    kept = {line: r for line, r in lines.items() if r.vectorised or r.missed}
    return dict(sorted(kept.items())) if seen else None


def _read(found: re.Match[str], report: LineReport) -> None:
    text = found["text"]
    width = _GCC_WIDTH.search(text) or _CLANG_WIDTH.search(text)
    if width:
        report.vector_bytes = max(report.vector_bytes, int(width[1]))
        return
    is_gcc = found.re is _GCC
    if is_gcc and found["kind"] == "missed" and "couldn't vectorize loop" in text:
        report.missed = True
    reason = _GCC_REASON.search(text) if is_gcc else None
    if not is_gcc and found["missed"] and text.startswith("loop not vectorized"):
        report.missed = True
        reason = re.match(r"loop not vectorized:? ?(.*)", text)
    if reason:
        _add_reason(report, reason[1].strip().rstrip("."))


def _add_reason(report: LineReport, reason: str) -> None:
    if reason not in _VAGUE and reason not in report.reasons:
        report.reasons.append(reason)
