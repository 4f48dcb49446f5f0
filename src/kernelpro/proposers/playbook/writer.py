"""The playbook: an offline writer that turns findings into changes of a recipe's settings.

Deterministic: the same request, its seed included, gives the same proposal. It claims only what
the planner covers, and says in the title what stays with torch.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator

from kernelpro.errors import UserError
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.moves import improvements
from kernelpro.proposers.playbook.plan.coverage import plan_coverage
from kernelpro.proposers.playbook.plan.ir import Coverage
from kernelpro.proposers.playbook.plan.library import Unplannable
from kernelpro.proposers.playbook.recipes.base import (
    Backend,
    Task,
    Variant,
    fingerprint,
    from_record,
    to_record,
)  # fmt: skip
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.text import content_hash

BACKENDS = {
    "cpu": "kernelpro.proposers.playbook.recipes.cpu:CpuBackend",
    "cuda": "kernelpro.proposers.playbook.recipes.cuda:CudaBackend",
}
"""Device kind -> back end."""


START = ("expert", "plain")
"""Where runs begin: at the recipes known to be good, or at plain drafts that need the advice."""

POOL = 128
"""Other designs, or drafts, that one problem gets at most (chosen: no search needs more)."""
_REASON = {
    False: "The best guesses are tried; this one differs from them.",
    True: "A first version, before anything is tuned.",
}
"""Of a start that no recipe names; True: of a plain draft."""


class PlaybookWriter:
    """Implements ``proposers.base.Proposer``."""

    def __init__(self, start: str = "expert") -> None:
        """``start``: ``expert``, or ``plain`` to study search and advice (``playbook:plain``)."""
        if start not in START:
            raise UserError(f"playbook:{start} is not known; there are {', '.join(START)}")
        self._start = start
        self._task: Task | None = None
        """Of the last request: its plans serve the next one on the same problem."""
        self._hashes: dict[tuple[str, int, object], str | None] = {}
        """Source hash by problem, cores and settings: what was tried need not be written again."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The next candidate not yet seen, or None if recipes and moves are exhausted."""
        if not request.graphs:
            return None
        module, _, name = BACKENDS[request.device.kind].partition(":")
        backend: Backend = getattr(importlib.import_module(module), name)()
        task = self._task_of(request)
        base = _settings(request.parent, backend)
        for variant in self._variants(request, base, backend, task):
            source = self._fresh(request, backend, task, variant.knobs)
            if source is None:
                continue
            return Proposal(
                source=source, mode=request.ask.mode, title=variant.title,
                rationale=_rationale(variant, task, backend), recipe=backend.name,
                knobs=to_record(variant.knobs), acted_on=variant.acted_on, move=variant.move,
                conditions=fingerprint(backend.name, base) if variant.move and base else "",
                writer="playbook",
            )  # fmt: skip
        return None

    def usage(self) -> tuple[Usage, ...]:
        """The playbook costs nothing."""
        return ()

    def _task_of(self, request: ProposalRequest) -> Task:
        task = Task(request.problem, request.graphs, request.device, request.peaks)
        if self._task != task:
            self._task = task
        assert self._task is not None
        return self._task

    def _fresh(
        self, request: ProposalRequest, backend: Backend, task: Task, knobs: object
    ) -> str | None:
        """The candidate file, None if it cannot be written or was tried before."""
        key = (request.problem.source_hash, request.device.units, knobs)
        known = self._hashes.get(key, "")
        if known is None or known in request.seen_hashes:
            return None
        source = _source(backend, task, knobs)
        self._hashes[key] = None if source is None else content_hash(source)
        return None if self._hashes[key] in request.seen_hashes else source

    def _variants(
        self, request: ProposalRequest, base: object | None, backend: Backend, task: Task
    ) -> Iterator[Variant]:
        if base is None or request.parent is None:
            yield from self._starts(request, backend, task)
        elif request.ask.mode == "repair":
            yield from backend.repairs(base, request.parent.outcome, task)
        else:
            yield from improvements(request, request.parent, base, backend, task)

    def _starts(self, request: ProposalRequest, backend: Backend, task: Task) -> Iterator[Variant]:
        """The recipes, then other designs; or drafts. Which, the problem and the seed decide."""
        plain = self._start == "plain"
        if not plain:
            yield from backend.initial(task)
        every = list(backend.drafts(task) if plain else backend.designs(task))
        pool = random.Random(request.problem.source_hash).sample(every, min(len(every), POOL))
        for knobs in random.Random(f"{request.seed}:start").sample(pool, len(pool)):
            kind = "plain draft" if plain else "another design"
            yield Variant(knobs, f"{kind} ({fingerprint(backend.name, knobs)})", _REASON[plain])


def _settings(parent: Attempt | None, backend: Backend) -> object | None:
    """The parent's settings; None if it is not this recipe's."""
    if parent is None or parent.candidate.proposal.recipe != backend.name:
        return None
    settings: object = from_record(backend.knobs_type, parent.candidate.proposal.knobs)
    return settings


def _source(backend: Backend, task: Task, knobs: object) -> str | None:
    """The candidate file; None if this fusion cannot be written or nothing would be native."""
    try:
        plans = task.plans(backend.grouping(knobs))
        bodies = [backend.body(plan, knobs, i, task) for i, plan in enumerate(plans)]
    except Unplannable:
        return None
    if not any(body.setup for body in bodies):
        return None
    covered = _coverage(backend, task, knobs)
    native = sum(len(c.native) for c in covered)
    library = sorted({name for c in covered for name, _ in c.library})
    note = f"{native} operators in native kernels"
    note += f"; left to torch: {', '.join(library)}." if library else "; none left to torch."
    return candidate_source(task.problem, plans, bodies, note)


def _coverage(backend: Backend, task: Task, knobs: object) -> list[Coverage]:
    owns = backend.owns_products(knobs)
    return [plan_coverage(p, own_products=owns) for p in task.plans(backend.grouping(knobs))]


def _rationale(variant: Variant, task: Task, backend: Backend) -> str:
    covered = _coverage(backend, task, variant.knobs)
    left = [f"{name} ({reason})" for c in covered for name, reason in c.library]
    text = variant.rationale
    return f"{text} Left to torch: {'; '.join(left)}." if left else text
