"""The memory keeper: what an attempt teaches beyond its verdict, as notes for the search memory."""

from __future__ import annotations

from typing import Any, cast

from kernelpro.llm.base import ChatReply, estimate_tokens
from kernelpro.prompts.fit import Part, fit
from kernelpro.prompts.render import render
from kernelpro.proposers import views
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.call import Call
from kernelpro.proposers.llm.json_reply import json_object
from kernelpro.proposers.reply import Unusable
from kernelpro.schema.memory import MEMORY_TEXT_LIMIT, MemoryCategory, MemoryEntry
from kernelpro.schema.proposal_request import Attempt

CATEGORIES = ("error", "pattern", "learning", "file")
"""What a writer may conclude. Facts and findings are the evaluator's and the tools'."""
MOST_NOTES = 4
SCHEMA = {
    "type": "object",
    "properties": {
        "notes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "enum": list(CATEGORIES)},
                    "text": {"type": "string"},
                },
                "required": ["category", "text"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["notes"],
    "additionalProperties": False,
}


def keep(call: Call, attempt: Attempt) -> tuple[MemoryEntry, ...]:
    """Notes on ``attempt``; none if the model gave none that can be read."""

    def read(reply: ChatReply) -> tuple[MemoryEntry, ...]:
        return read_notes(reply.message.text, attempt.candidate.id)

    return call.answer(lambda limit: memory_prompt(attempt, limit), read) or ()


def memory_prompt(attempt: Attempt, limit: int) -> Prompt:
    """What the memory keeper is sent, at most ``limit`` estimated tokens."""
    system = render("memory_system")
    proposal = attempt.candidate.proposal
    parts = {
        "idea": Part.whole(f"{proposal.title}\n{proposal.rationale}".strip(), 2, label="idea"),
        "version": views.version_part(attempt, 0),
        "guidance": views.guidance_part(attempt, 1),
    }
    texts = fit(parts, max(limit - estimate_tokens(system) - 150, 200), estimate_tokens)
    tried = f"{texts['idea']}\n\n{texts['version']}"
    ended = f"{views.verdict(attempt)}\n\n{texts['guidance']}"
    return Prompt(system, render("memory", attempt=tried, outcome=ended))


def read_notes(text: str, candidate_id: str) -> tuple[MemoryEntry, ...]:
    """The notes in a reply; ``Unusable`` says what is wrong with it."""
    notes = json_object(text).get("notes")
    if not isinstance(notes, list):
        raise Unusable("'notes' must be a list")
    return tuple(_entry(note, candidate_id) for note in notes[:MOST_NOTES])


def _entry(note: Any, candidate_id: str) -> MemoryEntry:
    if not isinstance(note, dict) or note.get("category") not in CATEGORIES:
        raise Unusable(f"each note needs a 'category' of {', '.join(CATEGORIES)} and a 'text'")
    text = " ".join(str(note.get("text", "")).split())
    if not text:
        raise Unusable("a note has no 'text'")
    if len(text) > MEMORY_TEXT_LIMIT:
        text = text[: MEMORY_TEXT_LIMIT - 3] + "..."
    category = cast(MemoryCategory, note["category"])
    return MemoryEntry(id=0, category=category, text=text, candidate_id=candidate_id)
