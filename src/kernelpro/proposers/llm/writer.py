"""The LLM writer: which roles speak for a request, and what the coder is shown of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import get_args

from kernelpro.llm.base import ChatModel, ChatReply, Tool
from kernelpro.proposers.base import Books
from kernelpro.proposers.brief import Extras, Prompt, coder_prompt
from kernelpro.proposers.claims import proposal_of
from kernelpro.proposers.llm import analyst, librarian, memory_keeper, opinion
from kernelpro.proposers.llm.call import Call, Desk
from kernelpro.proposers.llm.scouts import Scout, scout_of
from kernelpro.proposers.llm.settings import Role, Settings, Voice
from kernelpro.proposers.reply import Answer, read_reply
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.text import truncate_middle

Models = Mapping[Voice, ChatModel]
UNREADABLE_LIMIT = 20_000
"""Characters of a useless reply that are kept as the attempt's text."""


class LlmWriter:
    """Implements ``PaidWriter`` and ``Learner``."""

    def __init__(
        self, models: Models, *, settings: Settings | None = None, tools: tuple[Tool, ...] = (),
        alone: bool = True,
    ) -> None:  # fmt: skip
        self._models = models
        self._settings = settings or Settings()
        self._tools = tools
        self._alone = alone
        self._books: Books | None = None
        self._analysing = threading.Lock()
        self._analysis: analyst.Analysis | None = None
        self._analysed = False
        self._unsaid: tuple[MemoryEntry, ...] = ()

    def attach(self, books: Books) -> None:
        """Account in ``books`` from here on."""
        self._books = books

    def usage(self) -> tuple[Usage, ...]:
        """Nothing: all cost is in the books."""
        return ()

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The coder's answer.

        If no reply within the retries held a candidate, the last one is handed in as it is: it is
        rejected, on record, and the next attempt may repair it. None would end the search here.
        """
        desk = self._desk(request)
        scout = scout_of(request, temperature=self._settings.temperature, alone=self._alone)
        extras = self._extras(desk, request, scout)
        parent = request.parent.candidate.proposal.source if request.parent else None

        def prompt(limit: int) -> Prompt:
            return coder_prompt(request, limit=limit, extras=extras, memory=scout.memory)

        last: list[str] = []

        def read(reply: ChatReply) -> Answer:
            last.append(reply.message.text)
            return read_reply(reply.message.text, parent, cut_off=reply.finish == "length")

        call = self._call(desk, "coder", request.ask.mode, scout.temperature)
        answer = call.answer(prompt, read) or Answer(
            source=truncate_middle(last[-1], UNREADABLE_LIMIT), title="no candidate in the reply",
            rationale="", answers=(), move=None,
        )  # fmt: skip
        return proposal_of(answer, request, call.model.name)

    def learn(self, request: ProposalRequest, attempt: Attempt) -> tuple[MemoryEntry, ...]:
        """The memory keeper's notes; with the first attempt also the analyst's."""
        with self._analysing:
            said, self._unsaid = self._unsaid, ()
        if "memory" not in self._models:
            return said
        call = self._call(self._desk(request), "memory", "memory", schema=memory_keeper.SCHEMA)
        return (*said, *memory_keeper.keep(call, attempt))

    def _extras(self, desk: Desk, request: ProposalRequest, scout: Scout) -> Extras:
        notes = []
        parent = request.parent
        if parent is not None and parent.outcome.ok and "profile_analyst" in self._models:
            call = self._call(desk, "profile_analyst", "profile_analyst")
            notes.append(opinion.second_opinion(call, request, parent))
        if self._tools and "librarian" in self._models:
            call = self._call(desk, "librarian", "librarian", tools=self._tools)
            notes.append(librarian.look_up(call, request))
        analysis = self._analyse(desk, request) if parent is None else None
        return Extras(
            scout=scout.instruction,
            analysis=analysis.text() if analysis else "",
            notes=tuple(note for note in notes if note),
        )

    def _analyse(self, desk: Desk, request: ProposalRequest) -> analyst.Analysis | None:
        """The analysis, asked for once per run; a resumed run has it in its memory."""
        if "analyst" not in self._models:
            return None
        with self._analysing:
            if not self._analysed and not request.seen_hashes:
                call = self._call(desk, "analyst", "analyst", schema=analyst.SCHEMA)
                self._analysis = analyst.analyse(call, request)
                self._unsaid = self._analysis.entries() if self._analysis else ()
            self._analysed = True
            return self._analysis

    def _desk(self, request: ProposalRequest) -> Desk:
        if self._books is None:
            raise RuntimeError("attach books before asking an LLM writer")
        return Desk(request.ask.id, self._books, self._settings, list(request.replies))

    def _call(
        self, desk: Desk, role: Role, voice: Voice, temperature: float | None = None, *,
        schema: dict[str, object] | None = None, tools: tuple[Tool, ...] = (),
    ) -> Call:  # fmt: skip
        return Call(desk, role, self._models[voice], temperature, schema, tools)


def voices(make: Callable[[str], ChatModel], named: Mapping[Voice, str]) -> dict[Voice, ChatModel]:
    """One model object per distinct name, by voice."""
    made = {name: make(name) for name in sorted(set(named.values()))}
    return {voice: made[named[voice]] for voice in get_args(Voice) if voice in named}
