"""What a build left behind: objects to load, disassemble and explain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kernelpro.schema.codec import CONFIG

Language = Literal["cpp", "cuda", "triton", "cute", "python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """Compiler-reported resources of one GPU kernel."""

    kernel: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    static_shared_bytes: int | None = None

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One compiled object of a candidate, as recorded next to it in ``manifest.jsonl``."""

    key: str
    """Content hash of source, flags and compiler."""
    language: Language
    object_path: str
    source_path: str
    log_path: str
    """Compiler output, vectorisation report included."""
    command: tuple[str, ...]
    compiler: str
    seconds: float
    cached: bool = False
    resources: tuple[KernelResources, ...] = ()
    entry_points: tuple[str, ...] = ()
    """Functions the candidate asked for by name."""
    extra: dict[str, str] = field(default_factory=dict)

    __pydantic_config__ = CONFIG
