"""One exchange with a chat model, as it is recorded: what was asked, what came back, what it cost.

Keys never reach these records: ``llm.keys`` redacts them first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG
from kernelpro.schema.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to run one of the tools it was offered."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    author: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    """What an assistant's message wants to run."""
    call_id: str = ""
    """The call that a tool's message answers."""
    stable: int = 0
    """Leading characters that other requests of the run share: what a provider may cache."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request to a model and its answer, or how it failed."""

    ask_id: int
    """The request of the search that it served."""
    role: str
    """``coder``, ``analyst``, ``profile_analyst``, ``librarian`` or ``memory``."""
    system: str
    messages: tuple[Message, ...]
    usage: Usage
    """All attempts at this call together; ``Usage.model`` names the model."""
    reply: Message | None = None
    """None = no reply arrived whole: see ``error``."""
    finish: str = ""
    """Why the model ended: ``stop``, ``length``, ``tool_call`` ..."""
    error: str = ""
    partial: str = ""
    """What had arrived of a reply that broke off."""
    estimated: bool = False
    """True if some tokens were counted here because no bill came with them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters that were sent: temperature, limits ..."""

    __pydantic_config__ = CONFIG
