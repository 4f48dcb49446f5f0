"""From an answer to a proposal: the file, and of its claims what refers to the request.

The same for chat models and for people and agents outside.
"""

from __future__ import annotations

import ast
import re

from kernelpro.diagnosis.moves import MOVES
from kernelpro.proposers import patch
from kernelpro.proposers.reply import Answer, headers_of, read_reply
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.text import short_hash

_FENCED = re.compile(r"^[ \t]*(```|~~~)", re.M)
_LEADING_COMMENTS = re.compile(r"\A(?:[ \t]*(?:#.*)?\n)*")


def proposal_of(answer: Answer, request: ProposalRequest, writer: str) -> Proposal:
    """``answer`` as ``writer``'s proposal; claims are kept only as far as they refer to what the
    request showed."""
    shown = request.parent.guidance.items if request.parent and request.parent.guidance else ()
    tools = {item.tool for item in shown}
    parent_hash = request.parent.candidate.source_hash if request.parent else ""
    return Proposal(
        source=answer.source,
        mode=request.ask.mode,
        title=answer.title or f"answer to request {request.ask.id}",
        rationale=answer.rationale,
        acted_on=tuple(name for name in answer.answers if name in tools),
        move=answer.move if answer.move in MOVES else None,
        conditions=short_hash(parent_hash) if parent_hash else "",
        writer=writer,
    )


def read_answer(text: str, parent_source: str | None) -> Answer:
    """A file that was handed in: Python as it is, with ``Title``, ``Answers`` and ``Move`` from
    the comments at its top, or a reply in the form that chat models use.

    A broken Python file is an answer, too: its verdict says what is wrong. Raises
    :class:`kernelpro.proposers.reply.Unusable` for a reply without a candidate.
    """
    if not _is_python(text) and (_FENCED.search(text) or patch.MARK.search(text)):
        return read_reply(text, parent_source)
    comments = _LEADING_COMMENTS.match(text)
    return headers_of(comments[0] if comments else "")._replace(source=text)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
