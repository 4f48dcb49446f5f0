"""The coder's prompt for one request: the same for chat models, people and coding agents."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kernelpro.llm.base import estimate_tokens
from kernelpro.prompts.fit import Part, fit
from kernelpro.prompts.render import render
from kernelpro.proposers import views
from kernelpro.schema.exchange import Message
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.problem import Precision
from kernelpro.schema.proposal_request import Attempt, ProposalRequest

LIMIT = 24_000
"""Tokens of a prompt, estimated (chosen: what models read attentively; an attempt needs a few
thousand, and 24,000 hold a 1,500-line version with everything about it)."""

KNOWLEDGE, SIBLINGS, MEMORY, BEST, NOTES, ANALYSIS, WORKLOAD, GUIDANCE, PROBLEM, PARENT = range(10)
"""Worth of the parts: the first is cut first."""


ROUNDING: dict[Precision, str] = {
    "strict": "that of the reference's own types, float32 sums included (no TF32, no half)",
    "tf32": "that of TF32 matrix products; everything else as in the reference",
    "half": "that of float16 or bfloat16 products with float32 sums",
}
"""What a problem's precision class allows, in words."""


class Prompt(NamedTuple):
    """What a model is sent."""

    system: str
    user: str
    stable: int = 0
    """Leading characters of ``user`` that other requests of the run share."""

    def message(self) -> Message:
        """The conversation's first message."""
        return Message(author="user", text=self.user, stable=self.stable)


class Extras(NamedTuple):
    """What else than the request goes into a coder's prompt."""

    scout: str = ""
    """An instruction that sets this attempt apart from the others of its round."""
    analysis: str = ""
    """What the reference analyst said."""
    notes: tuple[str, ...] = ()
    """What other roles found for this request: a second opinion, facts from a library."""


def coder_prompt(
    request: ProposalRequest, *, limit: int = LIMIT, extras: Extras = Extras(),  # noqa: B008
    memory: tuple[MemoryEntry, ...] | None = None,
) -> Prompt:  # fmt: skip
    """The prompt, at most ``limit`` estimated tokens. ``memory`` replaces the request's."""
    problem = request.problem
    system = render("coder_system", precision=ROUNDING[problem.precision])
    room = max(limit - estimate_tokens(system) - _FRAME_TOKENS, 200)
    texts = fit(_parts(request, extras, memory), room, estimate_tokens)
    context = render(
        "coder_context",
        name=views.name_of(problem),
        reference_class=problem.reference_class,
        problem=texts["problem"],
        workload=texts["workload"],
        device=views.device_text(request.device, request.peaks),
        knowledge=texts["knowledge"],
    )
    task = _task(request, texts, extras)
    return Prompt(system, f"{context}\n{task}", len(context) + 1)


def request_text(request: ProposalRequest) -> str:
    """The request as one Markdown page, complete for a reader who knows nothing else."""
    prompt = coder_prompt(request)
    return render(
        "external",
        request=str(request.ask.id),
        name=views.name_of(request.problem),
        system=prompt.system,
        context=prompt.user[: prompt.stable],
        task=prompt.user[prompt.stable :],
    )


_FRAME_TOKENS = 400
"""What templates and the device's line add to the parts (chosen: they are about 200)."""


def _parts(
    request: ProposalRequest, extras: Extras, memory: tuple[MemoryEntry, ...] | None
) -> dict[str, Part]:
    remembered = request.memory if memory is None else memory
    parts = {
        "problem": Part.whole(request.problem.source, PROBLEM, label="reference"),
        "workload": Part((views.workload_text(request),), WORKLOAD),
        "knowledge": Part(views.knowledge_text(request), KNOWLEDGE),
        "siblings": Part(tuple(map(views.attempt_line, reversed(request.siblings))), SIBLINGS,
                         label="attempts"),
        "memory": Part(tuple(map(views.memory_line, _newest_last_cut(remembered))), MEMORY,
                       label="memory"),
        "notes": Part(tuple(note for note in extras.notes if note), NOTES, label="notes"),
        "analysis": Part((extras.analysis,) if extras.analysis else (), ANALYSIS,
                         label="analysis"),
    }  # fmt: skip
    if request.parent is not None:
        parts["parent"] = views.version_part(request.parent, PARENT)
        parts["guidance"] = views.guidance_part(request.parent, GUIDANCE)
    if (best := _other_best(request)) is not None:
        parts["best"] = replace(views.version_part(best, BEST), least=0)
    return parts


def _other_best(request: ProposalRequest) -> Attempt | None:
    """The best version, if it is another than the one to work on."""
    best, parent = request.best, request.parent
    if best is None or (parent is not None and best.candidate.id == parent.candidate.id):
        return None
    return best


def _newest_last_cut(memory: tuple[MemoryEntry, ...]) -> list[MemoryEntry]:
    """Verdicts on moves before plain facts, newer before older: what is cut first comes last."""
    return sorted(memory, key=lambda e: (e.category == "fact", -e.id))


def _task(request: ProposalRequest, texts: dict[str, str], extras: Extras) -> str:
    best, parent = _other_best(request), request.parent
    shown = f"{views.verdict(best)}\n\n{texts['best']}" if best and texts["best"] else ""
    values = {
        "scout": extras.scout,
        "siblings": _headed("## Already tried from here", texts["siblings"]),
        "best": _headed("## The best version so far", shown),
        "memory": _headed("## Learnt so far in this run", texts["memory"]),
        "notes": _headed("## Found for this task", texts["notes"]),
    }
    if parent is None:
        analysis = _headed("## A first analysis", texts["analysis"])
        return render("coder_initial", analysis=analysis, **values)
    values |= {
        "parent_id": parent.candidate.id,
        "parent": f"{views.verdict(parent)}\n\n{texts['parent']}",
        "guidance": f"{texts['guidance']}\n\n{views.moves_text(parent)}",
    }
    return render("coder_repair" if request.ask.mode == "repair" else "coder_optimize", **values)


def _headed(title: str, text: str) -> str:
    return f"{title}\n\n{text}" if text else ""
