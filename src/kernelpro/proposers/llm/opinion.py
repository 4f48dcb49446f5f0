"""The profile analyst: a second opinion on a profile, beside the findings, never in their place."""

from __future__ import annotations

from kernelpro.llm.base import ChatReply, estimate_tokens
from kernelpro.prompts.fit import fit
from kernelpro.prompts.render import render
from kernelpro.proposers import views
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.call import Call
from kernelpro.proposers.reply import Unusable
from kernelpro.schema.proposal_request import Attempt, ProposalRequest

MOST_CHARACTERS = 1_500
"""Of an opinion that are passed on (the prompt asks for 150 words)."""
_NOTHING = "nothing to add"


def second_opinion(call: Call, request: ProposalRequest, parent: Attempt) -> str:
    """The opinion; empty if there is none."""
    return call.answer(lambda limit: opinion_prompt(request, parent, limit), _read) or ""


def opinion_prompt(request: ProposalRequest, parent: Attempt, limit: int) -> Prompt:
    """What the profile analyst is sent, at most ``limit`` estimated tokens."""
    system = render("profile_analyst_system")
    parts = {"parent": views.version_part(parent, 0), "guidance": views.guidance_part(parent, 1)}
    room = max(limit - estimate_tokens(system) - 200, 200)
    texts = fit(parts, room, estimate_tokens)
    device = views.device_text(request.device, request.peaks)
    kernel = f"{views.verdict(parent)}\n\n{texts['parent']}"
    user = render("profile_analyst", device=device, parent=kernel, guidance=texts["guidance"])
    return Prompt(system, user)


def _read(reply: ChatReply) -> str:
    text = reply.message.text.strip()
    if not text:
        raise Unusable("it is empty")
    return "" if text.lower().startswith(_NOTHING) else text[:MOST_CHARACTERS]
