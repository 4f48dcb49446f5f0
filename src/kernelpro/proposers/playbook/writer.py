"""The playbook: an offline writer that turns findings into changes of a recipe's settings.

Deterministic: the same request gives the same proposal. It claims only what the planner covers,
and says in the title what stays with torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from kernelpro.proposers.playbook.candidate import candidate_source
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


class PlaybookWriter:
    """Implements ``proposers.base.Proposer``."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The next candidate not yet seen, or None if recipes and moves are exhausted."""
        if not request.graphs:
            return None
        module, _, name = BACKENDS[request.device.kind].partition(":")
        backend: Backend = getattr(importlib.import_module(module), name)()
        task = Task(request.problem, request.graphs, request.device, request.peaks)
        base = _settings(request.parent, backend)
        for variant in _variants(request, backend, task):
            source = _source(backend, task, variant.knobs)
            if source is None or content_hash(source) in request.seen_hashes:
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


def _settings(parent: Attempt | None, backend: Backend) -> object | None:
    """The parent's settings; None if it is not this recipe's."""
    if parent is None or parent.candidate.proposal.recipe != backend.name:
        return None
    settings: object = from_record(backend.knobs_type, parent.candidate.proposal.knobs)
    return settings


def _variants(request: ProposalRequest, backend: Backend, task: Task) -> Iterator[Variant]:
    base = _settings(request.parent, backend)
    if base is None or request.parent is None:
        yield from backend.initial(task)
        return
    if request.ask.mode == "repair":
        yield from backend.repairs(base, request.parent.outcome, task)
        return
    failed = {
        (e.move, e.conditions) for e in request.memory
        if e.move and e.category in ("learning", "error") and e.retired_by is None
    }  # fmt: skip
    here = fingerprint(backend.name, base)
    asked = [(m, tool, why) for m, tool, why in _asked(request.parent) if (m, here) not in failed]
    for move, tool, why in asked:
        changed = backend.move(move, base, task)
        if changed is not None:
            yield Variant(changed, f"{move.replace('_', ' ')} ({tool})", why, move, (tool,))
    order = _neighbour_order(request, backend)
    for move in order:
        changed = backend.move(move, base, task)
        if changed is not None and (move, here) not in failed:
            yield Variant(changed, move.replace("_", " "), "No finding asks for it: tried because "
                          "it often pays on this kind of kernel.", move)  # fmt: skip
    yield from _pairs(base, order, backend, task)


def _asked(parent: Attempt) -> list[tuple[str, str, str]]:
    """(move, tool, reason) from the parent's advice, first thing to do first."""
    if parent.guidance is not None and parent.guidance.items:
        return [(m, i.tool, i.body) for i in parent.guidance.items for m in i.moves]
    if parent.diagnosis is not None:
        return [(m, f.tool, f.summary) for f in parent.diagnosis.ranked() for m in f.moves]
    return []


def _neighbour_order(request: ProposalRequest, backend: Backend) -> list[str]:
    """The recipe's order, moves that gained elsewhere in this run first."""
    gained = {e.move for e in request.memory if e.category == "pattern" and e.move}
    return sorted(backend.neighbours, key=lambda m: m not in gained)


def _pairs(base: object, order: list[str], backend: Backend, task: Task) -> Iterator[Variant]:
    """Two moves at once, when every single one has been tried."""
    for i, first in enumerate(order):
        for second in order[i + 1 :]:
            once = backend.move(first, base, task)
            twice = None if once is None else backend.move(second, once, task)
            if twice is not None and twice != base:
                names = f"{first.replace('_', ' ')} and {second.replace('_', ' ')}"
                yield Variant(twice, names, "Every single move from here has been tried.")


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
