"""The contract between the referee and the process a candidate runs in.

A *subject* is a module under test (a candidate, or the reference as baseline) in a process of its
own. The referee talks to it through this protocol only. Everything that comes back is bytes the
referee interprets itself; nothing is unpickled. The subject's process never holds reference
outputs, tolerances or seeds of the referee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kernelpro.schema.build import Artifact
from kernelpro.schema.config import SandboxMode
from kernelpro.schema.outcome import Stage, Status

if TYPE_CHECKING:
    import torch


class SubjectFailure(Exception):
    """The subject ended in a way that decides its status; evaluation turns it into an Outcome."""

    def __init__(self, status: Status, stage: Stage, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.stage = stage
        self.message = message
        self.log = log
        """Tail of the subject's stdout and stderr, capped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a subject's process group."""

    load_timeout_s: float = 180.0
    """Import, build and construction together."""
    call_timeout_s: float = 60.0
    memory_bytes: int | None = None
    max_processes: int = 512
    max_file_bytes: int = 4 << 30
    max_disk_bytes: int = 16 << 30
    """Scratch and build directory together."""
    log_bytes: int = 1 << 20
    """Captured stdout plus stderr; more is counted and dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectJob:
    """What a subject's process is started with."""

    source: str
    entry: str
    """Class to construct: ``ModelNew``, or the problem's reference class for a baseline."""
    device: str
    """``cpu`` or ``cuda:N``."""
    init_args: tuple[Any, ...]
    """Constructor arguments: JSON values and torch tensors."""
    init_kwargs: dict[str, Any] = field(default_factory=dict)
    construction_seed: int
    """Seeds torch before construction, equal on both sides."""
    build_root: Path
    """Private build directory of this source; the only cache it can write."""
    threads: int
    compile_mode: str | None = None
    """None = as written; else the torch.compile mode to wrap the module in (baseline only)."""
    tf32: bool = False
    device_mail_bytes: int = 0
    """Of the GPU's memory, to pass the tensors of one call in; larger ones, and all at 0, go
    through host memory."""
    limits: Limits = field(default_factory=Limits)
    sandbox: SandboxMode = "best-effort"
    trusted: bool = False
    """True for the reference: no sandbox, same harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """One parameter or buffer as the subject declares it, in registration order."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    buffer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The subject is imported, built and constructed."""

    state: tuple[StateTensor, ...]
    artifacts: tuple[Artifact, ...]
    seconds: dict[str, float]
    """``import`` (with builds), ``construct``."""
    active_sandbox: tuple[str, ...]
    """Layers in force: ``landlock``, ``rlimits``, ``no_network`` ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of forward within a block."""

    slot: int
    """Which written inputs to use."""
    fresh_address: bool = False
    """True: the inputs are copied to new memory first (outside the timed region)."""
    idle: bool = False
    """GPU. False: the call is queued behind other work, so the events around it hold no launch
    latency. True: the queue is empty, and ``host_us`` is what a caller who waits sees."""
    repeat: int = 1
    """Calls made back to back within the one timing, with warm caches: for energy, whose sensors
    need seconds. The last one's output counts."""

    def to_json(self) -> dict[str, Any]:
        """What the subject is told."""
        return {"slot": self.slot, "fresh": self.fresh_address, "idle": self.idle,
                "repeat": self.repeat}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Timing of one call as the subject's process saw it."""

    host_us: float
    """Monotonic clock around the call and, on a GPU, the device-wide synchronise, without what
    the call was queued behind."""
    device_us: float | None = None
    """CUDA events around the call."""
    issue_us: float | None = None
    """On a GPU: host time until forward returned, its launches issued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Result of a block of calls."""

    samples: tuple[Sample, ...]
    wall_us: float
    """The referee's own clock from sending the block to the reply: bounds what samples claim."""
    flags: dict[str, Any]
    """State after the block as the harness saw it: threads, children, torch flags, identity of
    critical functions, allocator peaks."""
    digests: tuple[tuple[int | None, ...], ...] = ()
    """Of each call's outputs: equal for equal bytes. None = an output without bytes."""
    delivered_us: float = 0.0
    """The referee's clock, while the block's new inputs were written into the process."""
    started_s: float = 0.0
    """When the referee sent the block, by ``time.perf_counter``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Torch's own operators in one call, as the subject's process saw it."""

    call_us: float
    operators_us: dict[str, float]
    """By name, only operators that compute."""
    kernels_us: float | None = None
    """On a GPU: all kernels' time in a call with a cold L2, as CUPTI tells it."""

    @property
    def evidence(self) -> dict[str, float]:
        """What an outcome keeps of it."""
        cupti = {} if self.kernels_us is None else {"cupti_us": self.kernels_us}
        return {"library_share": self.share, **cupti}

    @property
    def share(self) -> float:
        """Share of the call's time that is spent in them."""
        return min(1.0, sum(self.operators_us.values()) / max(self.call_us, 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorBytes:
    """One output tensor as bytes, copied out of the subject."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    type_name: str
    """Exact Python type, ``torch.Tensor`` for an honest one."""
    data: torch.Tensor
    """uint8, dense, row-major; on the subject's GPU if the bytes came that way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What one call returned: structure and tensors."""

    structure: Any
    """JSON: ``{"t": i}`` is tensor i; lists, tuples (``{"tuple": [...]}``), dicts, scalars."""
    tensors: tuple[TensorBytes, ...]


class Subject(Protocol):
    """A module under test in its own process. Every method may raise ``SubjectFailure``."""

    def load(self) -> Loaded:
        """Import, build, construct. Must be called first, once."""
        ...

    def write_state(self, tensors: Mapping[str, Any]) -> None:
        """Load parameters and buffers (torch CPU tensors by the subject's own names)."""
        ...

    def write_inputs(self, slot: int, inputs: Sequence[Any]) -> None:
        """Put forward's arguments (torch CPU tensors and JSON values) into ``slot``."""
        ...

    def run(self, calls: Sequence[Call]) -> Block:
        """Run a block back to back, each call timed; outputs of all calls are kept until the
        next block, so that the referee can decide afterwards which to check."""
        ...

    def audit(self, slot: int) -> Operators:
        """One more call on ``slot`` under watch: time in torch's own operators."""
        ...

    def keep(self, call: int) -> None:
        """Hold what call number ``call`` of the last block returned until the end."""
        ...

    def read_kept(self) -> Outputs:
        """What was kept, as it is now."""
        ...

    def read_outputs(self, call: int) -> Outputs:
        """Outputs of call number ``call`` of the last block, as they are now."""
        ...

    def read_inputs(self, call: int) -> Outputs:
        """The inputs that call number ``call`` was given, as they are now (mutation check)."""
        ...

    def read_state(self) -> Mapping[str, TensorBytes]:
        """Parameters and buffers as they are now (training-mode buffers)."""
        ...

    def cpu_us(self) -> float | None:
        """CPU time that its processes have taken, as the referee's kernel counts it; None =
        unknown."""
        ...

    def at_work(self) -> bool | None:
        """True if a thread of its processes runs or waits for a core now, as the referee's kernel
        sees it; None = unknown."""
        ...

    def log(self) -> str:
        """Captured stdout and stderr so far, capped."""
        ...

    def close(self) -> None:
        """Kill the process group and remove its scratch; never raises."""
        ...
