"""The coder's prompt for one request: the same for chat models, people and coding agents."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.llm.base import estimate_tokens
from kernelpro.prompts.fit import Part, fit
from kernelpro.prompts.render import as_data, render
from kernelpro.proposers import views
from kernelpro.schema.exchange import Message
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.problem import Precision
from kernelpro.schema.proposal_request import ProposalRequest

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
        name=problem.name,
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
        name=request.problem.name,
        system=prompt.system,
        context=prompt.user[: prompt.stable],
        task=prompt.user[prompt.stable :],
    )


_FRAME_TOKENS = 400
"""What templates and the device's line add to the parts (chosen: they are about 200)."""


def _parts(
    request: ProposalRequest, extras: Extras, memory: tuple[MemoryEntry, ...] | None
) -> dict[str, Part]:
    parent, best = request.parent, request.best
    other_best = best is not None and (parent is None or best.candidate.id != parent.candidate.id)
    remembered = request.memory if memory is None else memory
    notes = [as_data(note, "note") for note in extras.notes if note]
    return {
        "problem": Part.whole(as_data(request.problem.source, "reference"), PROBLEM),
        "workload": Part((views.workload_text(request),), WORKLOAD),
        "knowledge": Part(views.knowledge_text(request.device), KNOWLEDGE),
        "parent": Part.whole(views.version_text(parent) if parent else "", PARENT),
        "guidance": Part.whole(views.guidance_text(parent) if parent else "", GUIDANCE),
        "siblings": Part(tuple(map(views.attempt_line, reversed(request.siblings))), SIBLINGS),
        "best": Part((views.version_text(best),) if best and other_best else (), BEST),
        "memory": Part(tuple(map(views.memory_line, _newest_last_cut(remembered))), MEMORY),
        "notes": Part(tuple(notes), NOTES),
        "analysis": Part((extras.analysis,) if extras.analysis else (), ANALYSIS),
    }


def _newest_last_cut(memory: tuple[MemoryEntry, ...]) -> list[MemoryEntry]:
    """Verdicts on moves before plain facts, newer before older: what is cut first comes last."""
    return sorted(memory, key=lambda e: (e.category == "fact", -e.id))


def _task(request: ProposalRequest, texts: dict[str, str], extras: Extras) -> str:
    values = {
        "scout": extras.scout,
        "siblings": _listed("## Already tried from here", texts["siblings"], "attempts"),
        "best": _headed("## The best version so far", texts["best"]),
        "memory": _listed("## Learnt so far in this run", texts["memory"], "memory"),
        "notes": _headed("## Found for this task", texts["notes"]),
    }
    if request.parent is None:
        analysis = _listed("## A first analysis", texts["analysis"], "analysis")
        return render("coder_initial", analysis=analysis, **values)
    values |= {
        "parent_id": request.parent.candidate.id,
        "parent": texts["parent"],
        "guidance": texts["guidance"],
    }
    return render("coder_repair" if request.ask.mode == "repair" else "coder_optimize", **values)


def _headed(title: str, text: str) -> str:
    return f"{title}\n\n{text}" if text else ""


def _listed(title: str, text: str, label: str) -> str:
    return _headed(title, as_data(text, label)) if text else ""
