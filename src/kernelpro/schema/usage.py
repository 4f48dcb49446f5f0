"""What a step cost: tokens, money, wall time."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.schema.codec import CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Cost of one writer call, zero for the playbook."""

    role: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = 0.0
    """None = the price is not known."""
    seconds: float = 0.0
    requests: int = 0

    __pydantic_config__ = CONFIG
