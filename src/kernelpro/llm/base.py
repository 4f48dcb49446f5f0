"""What the rest of kernelpro knows of a chat model: one request, one reply, and how it may fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernelpro.errors import ProviderError
from kernelpro.schema.exchange import Message

Watch = Callable[[str], None]
"""Called with all text received so far, at least twice a second; raising ends the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may ask for."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments, an object."""
    run: Callable[[dict[str, Any]], str]
    """Answers in text; a wrong argument is answered, not raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """Everything one call needs. A model without a parameter ignores or rejects it."""

    system: str
    messages: tuple[Message, ...]
    max_tokens: int
    """Most tokens of the reply."""
    temperature: float | None = None
    schema: dict[str, Any] | None = None
    """JSON Schema that the reply should follow; None = free text."""
    tools: tuple[Tool, ...] = ()

    def text(self) -> str:
        """All text that is sent, for estimates."""
        return "\n".join((self.system, *(m.text for m in self.messages)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a call was billed, or an estimate of it."""

    input: int = 0
    """All input tokens, the cached ones included."""
    output: int = 0
    cached: int = 0
    requests: int = 1
    cost_usd: float | None = 0.0
    """None = the price is not known."""
    estimated: bool = False


NO_TOKENS = Tokens(requests=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A whole reply."""

    message: Message
    finish: str
    """``stop``, ``length`` (cut off at ``max_tokens``), ``tool_call``, ``content_filter`` ..."""
    tokens: Tokens
    settings: dict[str, Any] = field(default_factory=dict)
    """The parameters that were sent in the end."""


class ChatModel(Protocol):
    """A model that can be talked to; safe to call from several threads."""

    @property
    def name(self) -> str:
        """``provider:model``, as the user wrote it."""
        ...

    def chat(self, request: ChatRequest, watch: Watch | None = None) -> ChatReply:
        """One reply, streamed to ``watch``. Raises a :class:`CallFailed`."""
        ...

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price of a call of this size; None = not known."""
        ...


class CallFailed(ProviderError):
    """A call brought no whole reply. ``tokens``: what it cost all the same."""

    def __init__(self, message: str, *, tokens: Tokens = NO_TOKENS, partial: str = "") -> None:
        super().__init__(message)
        self.tokens = tokens
        self.partial = partial


class Temporary(CallFailed):
    """Busy, over a rate limit, or the connection broke: the same call may succeed later."""

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, tokens: Tokens = NO_TOKENS,
        partial: str = "",
    ) -> None:  # fmt: skip
        super().__init__(message, tokens=tokens, partial=partial)
        self.retry_after_s = retry_after_s


class Rejected(CallFailed):
    """The service understood the call and will not take it as it is."""


class TooLong(Rejected):
    """The prompt does not fit the model's context window."""


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` is: one per 3.2 bytes (chosen: common tokenizers make one of
    3 to 4 bytes of English, Python and C++)."""
    return int(len(text.encode("utf-8", "replace")) / 3.2) + 1
