"""A problem source's contract: recognise a reference, turn it into a ``Problem``."""

from __future__ import annotations

from typing import Any, Protocol

from kernelpro.registry import Registry
from kernelpro.schema.problem import Precision, Problem


class ProblemSource(Protocol):
    """One kind of reference that problems can be loaded from. Constructed with no arguments."""

    def accepts(self, ref: Any) -> bool:
        """True if ``ref`` is of this kind; looks at type and spelling only, runs nothing."""
        ...

    def load(self, ref: Any, *, inputs: Any, precision: Precision | None) -> Problem:
        """The problem behind ``ref``.

        ``inputs``: example inputs (callables only). ``precision``: overrides the problem's own.
        Raises ``UserError`` naming the missing piece and the next step.
        """
        ...


PROBLEM_SOURCES = Registry(
    "problem source",
    {
        "class": "kernelpro.problems.class_path:ClassPath",
        "callable": "kernelpro.problems.from_callable:FromCallable",
        "file": "kernelpro.problems.kernelbench:KernelBenchFile",
    },
)
"""Name -> class. Plug-ins are asked before the built-ins, so that they can claim a spelling."""
