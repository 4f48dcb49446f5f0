"""A proposal is what a writer claims; a candidate is what was admitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG

Mode = Literal["initial", "repair", "optimize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One complete candidate file as a writer hands it over."""

    source: str
    """A whole Python module with class ``ModelNew``."""
    mode: Mode
    title: str
    """One line: what this attempt does."""
    rationale: str = ""
    """Why the writer expects it to be faster."""
    recipe: str | None = None
    """Playbook recipe name; None for other writers."""
    knobs: dict[str, Any] = field(default_factory=dict)
    """The recipe's settings, as JSON."""
    acted_on: tuple[str, ...] = ()
    """Tool ids of the findings this proposal answers (for the effectiveness ledger)."""
    move: str | None = None
    """The one change made against the parent (a name of ``diagnosis.moves``); None = not said."""
    conditions: str = ""
    """Fingerprint of what the move was tried on (recipe and the other knobs): the same move under
    the same conditions is the same experiment."""
    writer: str = ""
    """``playbook``, ``external``, or ``provider:model``."""
    exchange: str | None = None
    """Blob hash of the recorded prompt and reply; None for the playbook."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An admitted proposal: content-hashed, with its place in the search tree."""

    id: str
    """Node id within the run: ``n0001``, ``n0002`` ... in order of admission."""
    parent_id: str | None
    """None = written from scratch (child of the virtual root)."""
    source_hash: str
    proposal: Proposal

    __pydantic_config__ = CONFIG
