"""The reference analyst: a plan before anything is written, checked against the computed class."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.llm.base import ChatReply, estimate_tokens
from kernelpro.prompts.fit import Part, fit
from kernelpro.prompts.render import render
from kernelpro.proposers import views
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.call import Call
from kernelpro.proposers.llm.json_reply import json_object, strings
from kernelpro.proposers.reply import Unusable
from kernelpro.schema.memory import MEMORY_TEXT_LIMIT, MemoryEntry
from kernelpro.schema.proposal_request import ProposalRequest

CLASSES = ("memory", "compute", "mixed")
SCHEMA = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "enum": list(CLASSES)},
        "why": {"type": "string"},
        "plan": {"type": "array", "items": {"type": "string"}},
        "risks": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["class", "why", "plan", "risks"],
    "additionalProperties": False,
}


class Analysis(NamedTuple):
    """What limits the problem and what to do about it."""

    roofline_class: str
    why: str
    plan: tuple[str, ...]
    risks: tuple[str, ...]
    objection: str = ""
    """What the computed class says against the analyst's; empty if they agree."""

    def text(self) -> str:
        """For the coder: the objection first, because it is computed and the rest is opinion."""
        lines = [self.objection] if self.objection else [f"{self.roofline_class}-bound: {self.why}"]
        lines += [f"- {step}" for step in self.plan]
        lines += [f"- Careful: {risk}" for risk in self.risks]
        return "\n".join(lines)

    def entries(self) -> tuple[MemoryEntry, ...]:
        """For the search memory, where later attempts and a resumed run find it."""
        texts = [self.objection] if self.objection else []
        texts += [f"plan: {step}" for step in self.plan] + [f"risk: {risk}" for risk in self.risks]
        return tuple(
            MemoryEntry(id=0, category="learning", text=text[:MEMORY_TEXT_LIMIT], candidate_id=None)
            for text in texts
        )


def analyse(call: Call, request: ProposalRequest) -> Analysis | None:
    """The model's analysis; None if it gave none that can be read."""

    def prompt(limit: int) -> Prompt:
        return analyst_prompt(request, limit)

    def read(reply: ChatReply) -> Analysis:
        return checked(read_analysis(reply.message.text), request)

    return call.answer(prompt, read)


def analyst_prompt(request: ProposalRequest, limit: int) -> Prompt:
    """What the analyst is sent, at most ``limit`` estimated tokens."""
    system = render("analyst_system")
    parts = {
        "problem": Part.whole(request.problem.source, 1, label="reference"),
        "workload": Part((views.workload_text(request),), 0),
    }
    room = max(limit - estimate_tokens(system) - 200, 200)
    texts = fit(parts, room, estimate_tokens)
    device = views.device_text(request.device, request.peaks)
    name = views.name_of(request.problem)
    return Prompt(system, render("analyst", name=name, device=device, **texts))


def read_analysis(text: str) -> Analysis:
    """The analysis in a reply; ``Unusable`` says what is wrong with it."""
    data = json_object(text)
    named = str(data.get("class", "")).lower().removesuffix("-bound")
    if named not in CLASSES:
        raise Unusable(f"'class' must be one of {', '.join(CLASSES)}, not {named!r}")
    why = " ".join(str(data.get("why", "")).split())[:300]
    plan, risks = strings(data, "plan", 5), strings(data, "risks", 3)
    return Analysis(named, why, tuple(plan), tuple(risks))


def checked(analysis: Analysis, request: ProposalRequest) -> Analysis:
    """``analysis``, with an objection where the computed class contradicts it."""
    bound = views.bound_of(request)
    if bound is None or "mixed" in (bound.roofline_class, analysis.roofline_class):
        return analysis
    if bound.roofline_class == analysis.roofline_class:
        return analysis
    objection = (
        f"By its bytes and operations the problem is {bound.roofline_class}-bound (memory "
        f"{bound.memory_us:.3g} us, arithmetic {bound.compute_us:.3g} us), not "
        f"{analysis.roofline_class}-bound."
    )
    return analysis._replace(objection=objection)
