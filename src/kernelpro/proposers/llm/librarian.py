"""The librarian: looks facts up in a source tree for the coder, through a few read-only tools."""

from __future__ import annotations

from kernelpro.llm.base import ChatReply, Tool, TooLong, estimate_tokens
from kernelpro.prompts.fit import Part, fit
from kernelpro.prompts.render import as_data, render
from kernelpro.proposers import views
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.call import Call
from kernelpro.schema.exchange import Message, ToolCall
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.text import truncate_middle

RESULT_LIMIT = 6_000
"""Characters of one look-up's result (chosen: about 2,000 tokens)."""
MOST_CHARACTERS = 2_500
"""Of the report that are passed on (the prompt asks for 250 words)."""
_NOTHING = "nothing found"


def look_up(call: Call, request: ProposalRequest) -> str:
    """The librarian's report; empty if it found nothing. ``call.tools`` are all it can use."""
    # Half of a prompt's length, so that there is room for what the look-ups bring.
    prompt = librarian_prompt(request, call.desk.settings.prompt_tokens // 2)
    messages = [prompt.message()]
    left = call.desk.settings.lookups
    while True:
        try:
            reply = call.say(prompt.system, messages)
        except TooLong:
            return ""  # on record; the coder can do without
        wanted = reply.message.calls
        if not wanted:
            return _report(reply)
        if left <= 0:
            return ""
        messages.append(reply.message)
        for place, one in enumerate(wanted):
            text = _run(one, call.tools) if place < left else "No more look-ups: report now."
            messages.append(Message(author="tool", text=text, call_id=one.id))
        left -= len(wanted)


def librarian_prompt(request: ProposalRequest, limit: int) -> Prompt:
    """What the librarian is sent, at most ``limit`` estimated tokens."""
    system, parent = render("librarian_system"), request.parent
    parts = {"problem": Part.whole(request.problem.source, 0, label="reference")}
    if parent is not None:
        parts["guidance"] = views.guidance_part(parent, 1)
    texts = fit(parts, max(limit - estimate_tokens(system) - 200, 200), estimate_tokens)
    task = texts["problem"]
    if parent is not None:
        works_on = f"It works on version {parent.candidate.id} ({request.ask.mode})."
        task = f"{task}\n\n{works_on}\n\n{texts['guidance']}"
    device = views.device_text(request.device, request.peaks)
    return Prompt(system, render("librarian", device=device, task=task))


def _run(wanted: ToolCall, tools: tuple[Tool, ...]) -> str:
    """The result of one look-up, as data; a wrong name is answered, not run."""
    tool = next((tool for tool in tools if tool.name == wanted.name), None)
    if tool is None:
        return f"There is no tool {wanted.name!r}; there are: {', '.join(t.name for t in tools)}"
    return as_data(truncate_middle(tool.run(wanted.arguments), RESULT_LIMIT), wanted.name)


def _report(reply: ChatReply) -> str:
    text = reply.message.text.strip()
    return "" if text.lower().startswith(_NOTHING) else text[:MOST_CHARACTERS]
