"""The planted-fault suite: finds the cases and reads their headers. No GPU, no torch.

A ``.cu`` case starts with a comment that holds one JSON object and a sentence; a ``.py`` case in
``torch_cases`` has the same object as ``CASE`` and a function ``make()`` that returns the call.

Keys: ``fault`` (tool id, null = clean), ``severity`` (``severe``, ``mild``, ``clean``), ``also``
(ids that are as right as the planted one), and for ``.cu`` files ``grid``, ``block``, ``shared``,
``args``, ``flags``; optional ``compulsory_bytes`` and ``matmul`` describe the problem.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
FRESH = "cuda_fresh"
_HEADER = re.compile(r"/\*\s*(\{.*?\})\n(?=[A-Z0-9])(.*?)\*/", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One kernel or program with one planted fault, or none."""

    id: str
    path: Path
    fault: str | None
    severity: str
    also: tuple[str, ...] = ()
    about: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Tool ids that count as naming the fault."""
        return () if self.fault is None else (self.fault, *self.also)

    @property
    def system(self) -> bool:
        """True for faults that only a timeline of the whole call shows."""
        return bool(self.options.get("system", False))


def _case(path: Path, data: dict[str, Any], about: str) -> Case:
    known = {"fault", "severity", "also"}
    return Case(
        id=path.stem,
        path=path,
        fault=data["fault"],
        severity=data["severity"],
        also=tuple(data.get("also", ())),
        about=" ".join(about.split()),
        options={key: value for key, value in data.items() if key not in known},
    )


def cuda_cases() -> list[Case]:
    """All ``.cu`` cases, those of the first suite before the fresh ones, each sorted by id."""
    found = []
    for path in (*sorted((ROOT / "cuda").glob("*.cu")), *sorted((ROOT / FRESH).glob("*.cu"))):
        header = _HEADER.search(path.read_text(encoding="utf-8"))
        if header is None:
            raise ValueError(f"{path} has no JSON header")
        found.append(_case(path, json.loads(header.group(1)), header.group(2)))
    return found


def torch_cases() -> list[Case]:
    """All ``.py`` cases, sorted by id; read without importing them."""
    found = []
    for path in sorted((ROOT / "torch_cases").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        data = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CASE"
        )
        found.append(_case(path, data, ast.get_docstring(tree) or ""))
    return found


def all_cases() -> list[Case]:
    """The whole suite."""
    return cuda_cases() + torch_cases()


def split() -> dict[str, str]:
    """Case id -> ``tuning``, ``set_aside`` (both fixed before anything was recorded) or ``fresh``.

    The fresh cases were written after the set-aside half had been used up, by nobody's thresholds
    and before they were recorded.
    """
    data: dict[str, str] = json.loads((ROOT / "split.json").read_text(encoding="utf-8"))["cases"]
    return {**data, **{case.id: "fresh" for case in cuda_cases() if case.path.parent.name == FRESH}}
