"""Reduces compiler output to the causes a writer can act on.

Knows the message forms of gcc, clang, nvcc, NVRTC, ptxas and the linkers. Order is the
compiler's own: later errors are mostly consequences of the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.build import instantiation
from kernelpro.text import truncate_middle

MAX_CAUSES = 4
"""Chosen: past the first few, errors are mostly consequences."""
LIMIT = 2400
"""Characters of a reduced message (chosen: about 600 tokens)."""
SNIPPET_LINES = 3
SNIPPET_WIDTH = 160
BELOW_LINES = 12
CONTEXT_LINES = 80
"""Lines below an error that may be its template context: CuTe's nest some thirty deep."""
LINE_LIMIT = 2000
LOG_LIMIT = 4 << 20
"""Characters of a line and of a log that are looked at: a log may be as long as a writer likes."""
MESSAGE_LIMIT = 500
TAIL_LINES = 12

_GNU = re.compile(
    r"^(?P<file>[^\s:(][^:(]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$"
)
_EDG = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: "
    r"(?P<message>.*)$"
)
_PTXAS = re.compile(r"^ptxas (?:[^,]+, line \d+; )?(?:error|fatal)\s*: (?P<message>.*)$")
"""Its lines are those of generated PTX, which nobody wrote: left out."""
_LINK = re.compile(
    r"^.*?(?P<message>undefined (?:reference to|symbol:?) .*|multiple definition of .*)$"
)
_DRIVER = re.compile(
    r"^(?:\S*(?:g\+\+|c\+\+|clang\S*|cc1plus|nvcc|nvrtc|collect2|ld))\s*: "
    r"(?:fatal )?error\s*: (?P<message>.*)$"
)
_FORMS = (_GNU, _EDG, _PTXAS, _LINK, _DRIVER)
_REQUIRED = re.compile(
    r"^(?P<file>[^\s:(][^:(]*):(?P<line>\d+):\d+:\s+"
    r"(?:required from here|note: in instantiation of)"
)
"""gcc before the error, clang after it: the user's line that needed a header's template."""
_DURING = re.compile(r"^\s+(?:detected during|(?:implicit generation of|instantiation of) )")
"""nvcc and NVRTC, below the error: see :mod:`kernelpro.build.instantiation`."""
_SUMMARY = re.compile(
    r"\d+ errors? (?:generated|detected)|compilation terminated|returned \d+ exit status"
    r"|assembly aborted due to errors"
)
_KEYED = re.compile(r"^[0-9a-f]{24}(?=\.)")
"""The name ``inline`` keeps a source under; it means nothing to a writer."""
_ATTRIBUTE = re.compile(r"__attribute__\(\((global|device|host|shared|constant)\)\)")


@dataclass(frozen=True, slots=True)
class CompilerError:
    """One error: where, what, the source lines the compiler showed, and the user's line if the
    error is inside a template of a header."""

    file: str
    line: int | None
    message: str
    snippet: tuple[str, ...] = ()
    required_from: str = ""
    bindings: tuple[str, ...] = ()
    """The telling template arguments of the innermost instantiation."""


HINTS: tuple[tuple[str, str, str], ...] = (
    ("cpp", r"omp_\w+. was not declared", "add #include <omp.h>"),
    ("cpp", r"_mm\d*_\w+. was not declared", "add #include <immintrin.h>"),
    ("cpp", r"u?int(?:8|16|32|64)_t. (?:was not declared|does not name a type|has not been)",
     "add #include <cstdint>"),
    ("cpp", r"(?:target specific option mismatch|inlining failed in call to 'always_inline')",
     "this processor lacks the instruction set of that intrinsic: use narrower vectors"),
    ("cuda", r'(?:cannot|could not) open source file "(?:cute|cutlass)/',
     "CUTLASS headers were not found: install nvidia-cutlass or set CUTLASS_HOME"),
    ("cuda", r'(?:cannot|could not) open source file',
     "NVRTC has no host headers: drop the include or use compiler='nvcc'"),
    ("cuda", r'"u?int(?:8|16|32|64)_t" is undefined',
     "add #include <cstdint> (nvcc) or use long long and int (NVRTC)"),
    ("cuda", r"uses too much shared data", "static shared memory is limited to 48 KiB: use dynamic "
     "shared memory, given at launch"),
    ("cuda", r"not supported on .target|requires .target sm_|Feature .* not supported",
     "the instruction needs another architecture, or its 'a' variant such as sm_90a"),
    ("", r"Killed|out of memory|[Vv]irtual memory exhausted",
     "the compiler ran out of memory: fewer template instantiations or less unrolling"),
    ("", r"template instantiation depth|excessive recursion",
     "template recursion without an end: check the base case"),
)  # fmt: skip
"""(language or empty for all, pattern of a message, what to do)."""


def first_causes(log: str, language: str = "cpp", *, limit: int = LIMIT) -> str:
    """The first causes in ``log`` with their source lines, then hints, in ``limit`` characters.

    Without a recognised error the tail of the log is returned: never an empty string, unless the
    log is empty.
    """
    errors = parse_errors(log)
    if not errors:
        return truncate_middle("\n".join(log.strip().splitlines()[-TAIL_LINES:]), limit)
    shown = errors[:MAX_CAUSES]
    # What one instantiation binds is said once, however many of its assertions fail.
    repeated = [None, *(error.bindings for error in shown)]
    texts = [_render(e, bindings=e.bindings != known)
             for e, known in zip(shown, repeated, strict=False)]  # fmt: skip
    if len(errors) > MAX_CAUSES:
        texts.append(f"({len(errors) - MAX_CAUSES} more errors, mostly consequences)")
    texts += [f"Hint: {hint}" for hint in _hints(errors[:MAX_CAUSES], language)]
    return truncate_middle("\n".join(texts), limit, head_share=0.8)


def parse_errors(log: str) -> tuple[CompilerError, ...]:
    """Every distinct error of ``log`` in the compiler's order."""
    whole = log[:LOG_LIMIT].splitlines()
    lines = [line[:LINE_LIMIT] for line in whole]
    errors: dict[tuple[str, int | None, str], CompilerError] = {}
    required = ""
    for index, line in enumerate(lines):
        context = _REQUIRED.match(line)
        if context:
            required = _place(context["file"], context["line"])
        match = next((m for m in (form.match(line) for form in _FORMS) if m), None)
        if match is None:
            required = "" if ": warning:" in line else required
            continue
        if _SUMMARY.search(line):
            continue
        groups = match.groupdict()
        file = (groups.get("file") or "").strip()
        snippet, during = _below(lines[index + 1 : index + 1 + BELOW_LINES])
        template = instantiation.context(whole[index + 1 : index + 1 + CONTEXT_LINES])
        if template:
            during = _place(template.file or file, template.line)
        error = CompilerError(
            file=file,
            line=int(groups["line"]) if groups.get("line") else None,
            message=truncate_middle(match["message"].strip(), MESSAGE_LIMIT),
            snippet=snippet,
            required_from=during or required,
            bindings=template.bindings if template else (),
        )
        errors.setdefault((error.file, error.line, error.message), error)
        required = ""
    return tuple(errors.values())


def _below(following: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """(source and caret lines, the user's line that needed the template) below a message."""
    snippet: list[str] = []
    in_note = False
    for line in following:
        context = _REQUIRED.match(line)
        if not line.strip() or _DURING.match(line):
            break
        if not line[0].isspace():
            in_note = ": note" in line
            if not in_note:
                break  # the next message
            if context:
                return tuple(snippet), _place(context["file"], context["line"])
        elif not in_note and len(snippet) < SNIPPET_LINES:
            snippet.append(_ATTRIBUTE.sub(r"__\1__", line.rstrip())[:SNIPPET_WIDTH])
    return tuple(snippet), ""


def _place(file: str, line: str | int | None) -> str:
    """``name.cu:12``, without folders: the writer knows one file."""
    name = _KEYED.sub("source", file.rsplit("/", 1)[-1])
    return f"{name}:{line}" if name and line else name or f"line {line}"


def _render(error: CompilerError, *, bindings: bool = True) -> str:
    place = f"{_place(error.file, error.line)}: " if error.file else ""
    origin = f"\n    (required from {error.required_from})" if error.required_from else ""
    bound = [f"    with {binding}" for binding in error.bindings if bindings]
    return "\n".join([f"{place}{error.message}{origin}", *error.snippet, *bound])


def _hints(errors: Sequence[CompilerError], language: str) -> list[str]:
    found = []
    for scope, pattern, advice in HINTS:
        if scope in ("", language) and any(re.search(pattern, e.message) for e in errors):
            found.append(advice)
    return found[:2]
