"""What a back end offers the writer: settings, moves on them, and text.

Adding a device means one ``Backend`` in ``recipes`` and one line in ``writer.BACKENDS``; planning
and the choice of moves are shared.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Protocol

from kernelpro.proposers.playbook.candidate import Body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.plan.ir import Kernel, MatmulKernel, Plan
from kernelpro.proposers.playbook.plan.planner import Grouping
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem


@dataclass(frozen=True)
class Task:
    """The problem with its plans, as recipes look at it."""

    problem: Problem
    graphs: tuple[Graph, ...]
    device: Device
    peaks: Peaks
    _plans: dict[Grouping, tuple[Plan, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def plans(self, grouping: Grouping) -> tuple[Plan, ...]:
        """One plan per input set; raises ``Unplannable``."""
        if grouping not in self._plans:
            self._plans[grouping] = tuple(make_plan(g, grouping) for g in self.graphs)
        return self._plans[grouping]

    @functools.cached_property
    def kernels(self) -> tuple[Kernel | MatmulKernel, ...]:
        """Native steps under full fusion."""
        steps = (s for plan in self.plans("full") for s in plan.steps)
        return tuple(s for s in steps if isinstance(s, Kernel | MatmulKernel))

    @property
    def products(self) -> tuple[MatmulKernel, ...]:
        """Matrix products a recipe may take over."""
        return tuple(k for k in self.kernels if isinstance(k, MatmulKernel))


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings to try, and the words for it."""

    knobs: Any
    title: str
    rationale: str
    move: str | None = None
    acted_on: tuple[str, ...] = ()


class Backend(Protocol):
    """A recipe family for one kind of device. Pure: same arguments, same answers."""

    name: str
    """Recipe name in proposals."""
    knobs_type: type[Any]
    """Frozen dataclass of settings; every field JSON (tuples of strings allowed)."""
    neighbours: tuple[str, ...]
    """Moves to try when no finding asks for one, most promising first."""

    def initial(self, task: Task) -> Iterator[Variant]:
        """Recipes to start from, best first."""
        ...

    def designs(self, task: Task) -> Iterator[Any]:
        """Every combination of the settings that choose an algorithm: starts beyond the best."""
        ...

    def drafts(self, task: Task) -> Iterator[Any]:
        """Plain starts: what is written before anything is tuned (see :func:`few_habits`)."""
        ...

    def move(self, name: str, knobs: Any, task: Task) -> Any | None:
        """``knobs`` after move ``name`` of ``diagnosis.moves``; None if it does not apply."""
        ...

    def repairs(self, knobs: Any, outcome: Outcome, task: Task) -> Iterator[Variant]:
        """Settings that avoid what made ``outcome`` fail, most specific first."""
        ...

    def grouping(self, knobs: Any) -> Grouping:
        """How far to fuse."""
        ...

    def owns_products(self, knobs: Any) -> bool:
        """True if these settings multiply matrices without the library (for coverage)."""
        ...

    def body(self, plan: Plan, knobs: Any, number: int, task: Task) -> Body:
        """Native code for one plan. Raises ``Unplannable`` if it cannot be written."""
        ...


def few_habits(plain: Any, habits: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """``plain`` settings with none, one or two of the good ``habits``, each a change of settings.

    Stands for the drafts of a writer of little experience. Habits that change nothing are left
    out, so that no draft comes twice.
    """
    real = [h for h in habits if replace(plain, **h) != plain]
    yield plain
    for habit in real:
        yield replace(plain, **habit)
    for one, other in itertools.combinations(real, 2):
        if not one.keys() & other.keys():
            yield replace(plain, **one, **other)


def from_record(kind: type[Any], record: Mapping[str, Any]) -> Any:
    """Settings from ``Proposal.knobs``; unknown names are ignored, missing ones default."""
    names = {f.name for f in fields(kind)}
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items() if k in names}
    return kind(**plain)


def to_record(knobs: Any) -> dict[str, Any]:
    """Settings as JSON."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(knobs).items()}


def fingerprint(recipe: str, knobs: Any) -> str:
    """The conditions of a move: recipe and every setting that is not the default."""
    default = to_record(type(knobs)())
    changed = (f"{k}={v}" for k, v in to_record(knobs).items() if v != default[k])
    return " ".join([recipe, *changed])
