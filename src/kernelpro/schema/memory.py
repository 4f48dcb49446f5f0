"""Entries of the search memory: what was learnt, tied to the candidate that taught it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.schema.codec import CONFIG

MemoryCategory = Literal["finding", "error", "pattern", "file", "learning", "fact"]
"""Five categories of the paper, plus the evaluator's facts, which outrank inferences."""

MEMORY_TEXT_LIMIT = 150
"""Characters per entry (paper, section 4, re-implementation)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One line of memory."""

    id: int
    category: MemoryCategory
    text: str
    candidate_id: str | None
    move: str | None = None
    """The move the entry judges, so that the playbook can skip it; None for prose."""
    conditions: str = ""
    """Fingerprint of the situation the move was tried in (recipe and other knobs)."""
    retired_by: int | None = None
    """Id of the fact that contradicts this entry."""

    __pydantic_config__ = CONFIG

    def __post_init__(self) -> None:
        if len(self.text) > MEMORY_TEXT_LIMIT:
            raise ValueError(f"memory entry longer than {MEMORY_TEXT_LIMIT} characters")
