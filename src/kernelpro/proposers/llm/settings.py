"""How an LLM writer works: its models by role, and the sizes of what it sends and takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kernelpro.errors import UserError
from kernelpro.proposers.brief import LIMIT
from kernelpro.schema.config import RunConfig

Role = Literal["coder", "analyst", "profile_analyst", "librarian", "memory"]
Voice = Literal["initial", "repair", "optimize", "analyst", "profile_analyst", "librarian",
                "memory"]  # fmt: skip
"""What a model can be chosen for: the coder by mode, every other role as one."""
OFF = "none"
BY_DEFAULT_OFF: tuple[Voice, ...] = ("profile_analyst", "librarian")
"""Roles that only work if a model is named for them: they cost more than they are known to bring
(the findings go to the coder word for word anyway)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``RunConfig.writer_options``, resolved."""

    prompt_tokens: int = LIMIT
    """Longest prompt, estimated; what is least useful is cut first."""
    reply_tokens: int = 16_000
    """Longest reply (chosen: a 1,000-line file with its reasoning)."""
    retries: int = 2
    """Times a model is told precisely what was wrong with its reply, and asked again."""
    temperature: float | None = None
    """None = the model's own, varied between scouts."""
    lookups: int = 12
    """Tool calls of the librarian per request (chosen)."""
    code_root: str | None = None
    """Source tree that the librarian searches."""
    price: str | None = None
    """``INPUT/OUTPUT`` in US dollars per million tokens, where the price list has none."""

    def __post_init__(self) -> None:
        if self.prompt_tokens < 500 or self.reply_tokens < 16 or self.retries < 0:
            raise UserError(
                "An LLM writer needs prompt_tokens >= 500, reply_tokens >= 16 and retries >= 0"
            )


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings in a run's ``writer_options``; ``UserError`` for an unknown name."""
    known = {field.name for field in dataclasses.fields(Settings)}
    if unknown := sorted(set(options) - known):
        raise UserError(f"Unknown writer option {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return Settings(**options)


def models_of(config: RunConfig) -> dict[Voice, str]:
    """Model by voice; one that is off is not in it. ``UserError`` for an unknown role."""
    known: tuple[Voice, ...] = get_args(Voice)
    if unknown := sorted(set(config.models) - set(known)):
        raise UserError(f"Unknown role {unknown[0]!r}; known: {', '.join(known)}")
    found: dict[Voice, str] = {}
    for voice in known:
        chosen = config.models.get(voice, OFF if voice in BY_DEFAULT_OFF else config.writer)
        if chosen != OFF:
            found[voice] = chosen
    for voice in ("initial", "repair", "optimize"):
        if voice not in found:
            raise UserError(f"The coder cannot be switched off (--model-{voice} none)")
    return found
