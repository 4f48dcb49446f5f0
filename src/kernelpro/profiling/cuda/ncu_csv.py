"""Reads what ``ncu --csv`` prints: the raw page, the details page, or plain ``--metrics`` output.

Tolerates what surrounds the table (``==PROF==`` lines, the program's own output); refuses with
one ``UserError`` what cannot be read right: truncated, localised, empty or foreign files.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelpro.errors import UserError
from kernelpro.profiling.cuda.ncu_derive import derived, is_input
from kernelpro.profiling.cuda.ncu_metrics import ALIASES, DETAILS, USED, canonical_names
from kernelpro.profiling.cuda.units import Unit, base_unit
from kernelpro.schema.profile import Metric

_IDENTITY = ("ID", "Kernel Name", "Block Size", "Grid Size")
_NOT_METRICS = frozenset(
    {
        "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
        "Stream", "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name",
        "Metric Unit", "Metric Value", "Rule Name", "Rule Type", "Rule Description",
        "Estimated Speedup Type", "Estimated Speedup", "Invocations",
    }
)  # fmt: skip
_NUMBER = re.compile(r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?$")
_LOCALISED = re.compile(
    r"^[+-]?(\d{1,3}([.\s\u00a0\u202f]\d{3})+|\d+),\d+$|^[+-]?\d{1,3}(\.\d{3}){2,}$"
)
_RERUN = "Record it again with LC_ALL=C, for example: LC_ALL=C ncu --import REPORT --csv --page raw"

DEVICE_NAME = "device__attribute_display_name"
WHOLE_UP_TO = 64
"""Launches up to which every metric of a raw page is kept (for plug-in tools and the raw arm);
beyond, only those that built-in tools read: 500 launches of 2,000 columns take 2.5 s otherwise."""

MAX_RECORD = 1 << 20
"""Characters after which a record whose quotes never close is given up as damaged."""

SYMPTOMS: tuple[tuple[str, str], ...] = (
    ("ERR_NVGPUCTRPERM", "the profiler had no permission to read the GPU's counters; run as root "
     "or let the administrator set NVreg_RestrictProfilingToAdminUsers=0"),
    ("No kernels were profiled", "no kernel was captured; check the kernel filter and launches"),
    ("==ERROR==", "the profiler stopped with an error"),
)  # fmt: skip
"""What a report without a table may contain instead, and what it means."""


@dataclass(slots=True)
class NcuKernel:
    """One profiled launch as the report has it, in base units and canonical names."""

    name: str
    block: tuple[int, int, int] | None = None
    grid: tuple[int, int, int] | None = None
    capability: tuple[int, int] | None = None
    device: str = ""
    """Name of the GPU, where the report has it."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """Metrics the report names without a number (``n/a``, NaN): missing, not zero."""
    rules: list[dict[str, str]] = field(default_factory=list)


def read_csv(text: str, *, name: str = "the report") -> list[NcuKernel]:
    """All launches in the order of the report.

    Raises ``UserError`` for an empty, truncated, localised or foreign file, naming the line or
    the value, and for a report in which the profiler says that it failed.
    """
    if not text.strip():
        raise UserError(f"{name} is empty: nothing was recorded in it")
    rows = _rows(text, name)
    header = next(rows, None)
    if header is None:
        raise UserError(_no_table(text, name))
    columns = header.cells
    if "Metric Name" in columns:
        kernels = _long(columns, rows, name)
    else:
        kernels = _wide(columns, rows, name)
    if not kernels:
        raise UserError(_no_table(text, name, "has the header of an ncu table but no kernel in it"))
    for kernel in kernels:
        complete(kernel)
    return kernels


def complete(kernel: NcuKernel) -> None:
    """Add canonical names and what can be calculated."""
    for old, new in canonical_names(kernel.metrics).items():
        kernel.metrics[new] = kernel.metrics[old]
    kernel.metrics.update(derived(kernel.metrics))
    replaced = {alias for name in kernel.metrics for alias in ALIASES.get(name, ())}
    kernel.unreadable = [name for name in kernel.unreadable if name not in replaced]


@dataclass(slots=True)
class _Row:
    line: int
    cells: list[str]


def _rows(text: str, name: str) -> Iterator[_Row]:
    """The header, then every record of the table; lines of other origin are passed over."""
    columns: list[str] | None = None
    widths: tuple[int, ...] = ()
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if columns is None:
            columns = _header(line)
            if columns is not None:
                widths = _widths(columns)
                yield _Row(number, columns)
            continue
        if not pending:
            if not _starts_record(line) or _header(line) == columns:
                continue
            pending, start = line, number
        else:
            pending += "\n" + line
        if pending.count('"') % 2 and len(pending) < MAX_RECORD:
            continue
        cells = _cells(pending, start, name)
        cut = pending.endswith(",")  # ncu quotes every field, empty ones too
        pending = ""
        if cut or len(cells) not in widths:
            _damaged(name, start, cells, columns)
        yield _Row(start, cells + [""] * (len(columns) - len(cells)))
    if pending:
        raise UserError(f"{name} is truncated: the record that starts in line {start} never ends")


def _header(line: str) -> list[str] | None:
    """Column names if ``line`` is the header of an ncu table."""
    if "Kernel Name" not in line or not line.lstrip("\ufeff").startswith('"ID",'):
        return None
    cells = next(csv.reader([line.lstrip("\ufeff")]))
    return cells if all(column in cells for column in _IDENTITY[:2]) else None


def _cells(record: str, line: int, name: str) -> list[str]:
    try:
        return next(csv.reader([record]))
    except csv.Error as error:
        raise UserError(f"{name} is damaged in line {line}: {error}") from None


def _widths(columns: Sequence[str]) -> tuple[int, ...]:
    """Field counts of a whole record: metric rows of a details page end after the rule's name."""
    if "Rule Name" in columns and "Metric Value" in columns:
        return (len(columns), columns.index("Rule Name") + 1)
    return (len(columns),)


def _starts_record(line: str) -> bool:
    """Records start with a quoted launch number, the units row with an empty cell."""
    return bool(re.match(r'^"\d*",', line))


def _damaged(name: str, line: int, cells: Sequence[str], columns: Sequence[str]) -> None:
    raise UserError(
        f"{name} is truncated or damaged: line {line} has {len(cells)} fields, the header has "
        f"{len(columns)}"
    )


def _no_table(text: str, name: str, found: str = "is not an ncu CSV report") -> str:
    for symptom, meaning in SYMPTOMS:
        if symptom in text:
            at = text.find(symptom)
            line = text[text.rfind("\n", 0, at) + 1 :].splitlines()[0].strip()
            return f"{name} {found}: {meaning} ({line[:200]})"
    if re.search(r'^"?ID"?;', text, re.MULTILINE):
        return f"{name} is separated by semicolons, as localised exports are. {_RERUN}"
    if re.search(r'^"ID",', text, re.MULTILINE):
        return f"{name} {found}: its header has no Kernel Name column"
    return (
        f'{name} {found}: no line starts with "ID","Process ID",... Expected the output of '
        "ncu --csv --page raw (or details)"
    )


def _wide(columns: Sequence[str], rows: Iterator[_Row], name: str) -> list[NcuKernel]:
    """``--page raw``: one row a launch, the units in a row of their own."""
    records = list(rows)
    whole = len(records) <= WHOLE_UP_TO
    wanted = [
        (i, c) for i, c in enumerate(columns)
        if c not in _NOT_METRICS and is_evidence(c, whole=whole)
    ]  # fmt: skip
    units = [base_unit("")] * len(columns)
    kernels = []
    for row in records:
        cells = row.cells
        if not cells[0]:
            units = [base_unit(cell) for cell in cells]
            continue
        kernel = _identity(dict(zip(columns, cells, strict=True)))
        if DEVICE_NAME in columns:
            kernel.device = cells[columns.index(DEVICE_NAME)].strip()
        for index, column in wanted:
            _add(kernel, column, cells[index], units[index], row.line, name)
        kernels.append(kernel)
    return kernels


def is_evidence(column: str, *, whole: bool) -> bool:
    """True for the columns some tool reads; ``whole`` adds all but device and time-series ones."""
    if column in USED or is_input(column):
        return True
    return whole and not column.startswith(("device__attribute_", "pmsampling:"))


def _long(columns: Sequence[str], rows: Iterator[_Row], name: str) -> list[NcuKernel]:
    """Details page and ``--metrics`` output: one row a metric or rule result."""
    kernels: dict[str, NcuKernel] = {}
    for row in rows:
        cells = dict(zip(columns, row.cells, strict=True))
        key = f"{cells.get('Process ID', '')}:{cells['ID']}"
        kernel = kernels.get(key)
        if kernel is None:
            kernel = kernels[key] = _identity(cells)
        if cells.get("Rule Name"):
            kernel.rules.append(_rule(cells))
        label = cells["Metric Name"]
        if label:
            unit = cells.get("Metric Unit", "")
            key = DETAILS.get((label, base_unit(unit).kind), label)
            _add(kernel, key, cells["Metric Value"], base_unit(unit), row.line, name)
    return list(kernels.values())


def _rule(cells: dict[str, str]) -> dict[str, str]:
    return {
        "section": cells.get("Section Name", ""),
        "rule": cells["Rule Name"],
        "type": cells.get("Rule Type", ""),
        "text": cells.get("Rule Description", ""),
        "speedup_type": cells.get("Estimated Speedup Type", ""),
        "speedup_percent": cells.get("Estimated Speedup", ""),
    }


def _identity(cells: dict[str, str]) -> NcuKernel:
    kernel = NcuKernel(
        name=cells["Kernel Name"],
        block=_dim3(cells.get("Block Size", "")),
        grid=_dim3(cells.get("Grid Size", "")),
    )
    capability = re.match(r"^(\d+)\.(\d+)$", cells.get("CC", ""))
    if capability:
        kernel.capability = (int(capability.group(1)), int(capability.group(2)))
    return kernel


def _dim3(text: str) -> tuple[int, int, int] | None:
    """``(256, 1, 1)`` as three numbers; also ``256`` alone."""
    found = [int(part) for part in re.findall(r"\d+", text)]
    if not found or len(found) > 3:
        return None
    x, y, z = (*found, 1, 1)[:3]
    return (x, y, z)


def _add(kernel: NcuKernel, column: str, text: str, unit: Unit, line: int, name: str) -> None:
    """Store one value in base units; a value that is no number is remembered as unreadable."""
    value = parse_number(text)
    if value is not None:
        kernel.metrics.setdefault(
            column, Metric(value=value * unit.factor, unit=unit.name, source="ncu")
        )
    elif text.strip() and column not in kernel.metrics:
        if _LOCALISED.match(text.strip()):
            where = f"{name}, line {line}, {column}"
            raise UserError(f"{where}: {text.strip()!r} has a decimal comma. {_RERUN}")
        kernel.unreadable.append(column)


def parse_number(text: str) -> float | None:
    """A number, thousands separators allowed; None for ``n/a``, NaN, infinity and other text.

    Never guesses at a decimal comma: ``1.234,5`` is None.
    """
    try:
        value = float(text)
    except ValueError:
        stripped = text.strip()
        if not _NUMBER.match(stripped):
            return None
        value = float(stripped.replace(",", ""))
    return value if math.isfinite(value) else None
