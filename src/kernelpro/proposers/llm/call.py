"""One call of a role: render, reserve, ask, record, parse; again with a precise complaint.

Every exchange is on record before its reply is used. Replies that were recorded before a crash
are used up before a model is asked.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kernelpro.errors import BudgetExceeded
from kernelpro.llm.base import (
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Temporary,
    Tokens,
    Tool,
    TooLong,
    estimate_tokens,
)
from kernelpro.llm.keys import redact
from kernelpro.prompts.render import render
from kernelpro.proposers.base import Books
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.settings import Role, Settings
from kernelpro.proposers.reply import Unusable
from kernelpro.schema.exchange import Exchange, Message
from kernelpro.schema.usage import Usage

Result = TypeVar("Result")
Render = Callable[[int], Prompt]
"""The prompt within a limit of estimated tokens."""

SHRINK = 0.6
MARGIN = 1.3
"""What is set aside for a prompt, over the estimate of its tokens (chosen: dense code and other
alphabets have more tokens per byte)."""
BREAKS = 2
"""Replies that broke off, or services given up, before a call fails for good (chosen)."""
LEAST_PROMPT_TOKENS = 600
"""A model whose window holds less than this cannot do the work (chosen)."""


@dataclass(slots=True)
class Desk:
    """What the calls for one request share: its books, its number, replies from before a crash."""

    ask_id: int
    books: Books
    settings: Settings
    replies: list[Exchange] = field(default_factory=list)

    def recorded(self, role: Role) -> Exchange | None:
        """The next reply of ``role`` that is already on record, each once."""
        for place, exchange in enumerate(self.replies):
            if exchange.role == role and exchange.reply is not None:
                return self.replies.pop(place)
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """One role's call with one model."""

    desk: Desk
    role: Role
    model: ChatModel
    temperature: float | None = None
    schema: dict[str, Any] | None = None
    tools: tuple[Tool, ...] = ()

    def answer(self, prompt: Render, read: Callable[[ChatReply], Result]) -> Result | None:
        """What ``read`` makes of the reply; None if no reply within the retries was usable.

        ``read`` raises :class:`Unusable` with the complaint. Raises ``ProviderError`` or
        ``BudgetExceeded``.
        """
        limit = self.desk.settings.prompt_tokens
        while True:
            try:
                return self._conversation(prompt(limit), read)
            except TooLong:
                limit = int(min(limit, estimate_tokens(_text(prompt(limit)))) * SHRINK)
                if limit < LEAST_PROMPT_TOKENS:
                    raise

    def _conversation(self, prompt: Prompt, read: Callable[[ChatReply], Result]) -> Result | None:
        messages = [prompt.message()]
        for _ in range(self.desk.settings.retries + 1):
            reply = self.say(prompt.system, messages)
            try:
                return read(reply)
            except Unusable as error:
                complaint = render("complaint", complaint=str(error))
                messages += [
                    replace(reply.message, calls=(), text=reply.message.text or "(nothing)"),
                    Message(author="user", text=complaint),
                ]
        return None

    def say(self, system: str, messages: Sequence[Message]) -> ChatReply:
        """One exchange: from the record of a crashed run, else with the model."""
        recorded = self.desk.recorded(self.role)
        if recorded is not None and recorded.reply is not None:
            return ChatReply(message=recorded.reply, finish=recorded.finish, tokens=Tokens())
        # What looks like a key is neither sent nor kept, whoever wrote it into problem or reply.
        clean = tuple(replace(message, text=redact(message.text)) for message in messages)
        request = ChatRequest(
            system=system, messages=clean, tools=self.tools, schema=self.schema,
            max_tokens=self.desk.settings.reply_tokens, temperature=self.temperature,
        )  # fmt: skip
        for _ in range(BREAKS):
            # A reply that broke off is paid for and on record; another is a new reservation.
            with contextlib.suppress(Temporary):
                return self._paid(request)
        return self._paid(request)

    def _paid(self, request: ChatRequest) -> ChatReply:
        """One exchange with the model, within the budget and on record however it ends."""
        given = int(estimate_tokens(request.text()) * MARGIN)
        most = given + request.max_tokens
        most_usd = self.model.cost_usd(given, request.max_tokens)
        self.desk.books.reserve(most, most_usd)
        began = time.monotonic()
        exchange = self._exchange(request)
        try:
            reply = self.model.chat(request, lambda text: self.desk.books.check())
        except CallFailed as error:
            exchange = replace(exchange, error=str(error), partial=error.partial,
                               **self._cost(error.tokens, began))  # fmt: skip
            raise
        except BudgetExceeded as error:
            # Stopped from outside while the model spoke: what it had said is paid for.
            spent = Tokens(input=given, cost_usd=self.model.cost_usd(given, 0), estimated=True)
            exchange = replace(exchange, error=f"stopped: {error}", **self._cost(spent, began))
            raise
        else:
            reply = replace(reply, message=replace(reply.message, text=redact(reply.message.text)))
            exchange = replace(
                exchange, reply=reply.message, finish=reply.finish, settings=reply.settings,
                **self._cost(reply.tokens, began),
            )  # fmt: skip
        finally:
            self.desk.books.record(exchange, reserved=most, reserved_usd=most_usd)
        return reply

    def _exchange(self, request: ChatRequest) -> Exchange:
        return Exchange(
            ask_id=self.desk.ask_id,
            role=self.role,
            system=request.system,
            messages=request.messages,
            usage=Usage(role=self.role, model=self.model.name),
        )

    def _cost(self, tokens: Tokens, began: float) -> dict[str, Any]:
        usage = Usage(
            role=self.role, model=self.model.name, input_tokens=tokens.input,
            output_tokens=tokens.output, cached_tokens=tokens.cached, cost_usd=tokens.cost_usd,
            seconds=round(time.monotonic() - began, 3), requests=tokens.requests,
        )  # fmt: skip
        return {"usage": usage, "estimated": tokens.estimated}


def _text(prompt: Prompt) -> str:
    return prompt.system + prompt.user
