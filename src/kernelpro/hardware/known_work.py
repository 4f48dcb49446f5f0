"""Work of known size for a device: what energy costs are calibrated with, and meters checked by.

Each piece launches and returns; :attr:`KnownWork.wait` waits for the device. Nothing is timed here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kernelpro import inline
from kernelpro.hardware.peaks_cuda import CHAINS, FMA_ROUNDS, MATMUL_SIZE
from kernelpro.schema.hardware import Device

Kind = Literal["active", "dram", "l2", "flop"]
COPY_BYTES = 1 << 30
"""Each buffer, or an eighth of the memory: far above any cache."""
SPIN_CYCLES = 2_000_000
"""About a millisecond of one spinning thread."""
CPU_MATMUL_SIZE = 1024


@dataclass(frozen=True, slots=True)
class KnownWork:
    """One piece of work."""

    name: str
    kind: Kind
    amount: float
    """Bytes or FLOPs of one launch; 0 for ``active``."""
    launch: Callable[[], object]
    wait: Callable[[], object]
    dtype: str = ""
    """Arithmetic class of ``flop``."""
    dram_bytes: float = 0.0
    """Traffic of ``flop`` work beside its arithmetic."""


def known_work(device: Device) -> Iterator[KnownWork]:
    """The pieces for ``device``, each made when it is asked for; ``active`` first."""
    yield from _cuda(device) if device.kind == "cuda" else _cpu(device)


def copies(device: Device, times: int) -> KnownWork:
    """A launch that copies the same buffers ``times`` times: a rung of a ladder of work."""
    piece = next(work for work in known_work(device) if work.kind == "dram")

    def launch() -> None:
        for _ in range(times):
            piece.launch()

    return KnownWork(f"copy x{times}", "dram", times * piece.amount, launch, piece.wait)


def _cuda(device: Device) -> Iterator[KnownWork]:
    import torch

    torch.cuda.set_device(device.index)
    wait = torch.cuda.synchronize
    spin = functools.partial(torch.cuda._sleep, SPIN_CYCLES)
    yield KnownWork("one spinning thread", "active", 0.0, spin, wait)
    yield _copy(torch, device, "cuda", wait)
    source = Path(__file__).with_name("peaks_cuda.cu").read_text(encoding="utf-8")
    module = inline.cuda(source, flags=(f"-DCHAINS={CHAINS}",))
    yield _cached_copy(torch, module, device)
    for name, kernel, dtype in (("float32", module.fma_float, torch.float32),
                                ("float64", module.fma_double, torch.float64)):  # fmt: skip
        yield _fma(torch, kernel, device, name, dtype)
    for name in ("float16", "bfloat16", "tf32"):
        yield _matmul(torch, name)


def _cpu(device: Device) -> Iterator[KnownWork]:
    import torch

    yield KnownWork("one spinning thread", "active", 0.0, _spin_cpu, _nothing)
    yield _copy(torch, device, "cpu", _nothing)
    size = CPU_MATMUL_SIZE
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty_like(a)
    launch = functools.partial(torch.matmul, a, b, out=out)
    yield KnownWork("matmul float32", "flop", 2.0 * size**3, launch, _nothing, "float32")


def _copy(torch: Any, device: Device, where: str, wait: Callable[[], object]) -> KnownWork:
    size = min(COPY_BYTES, device.memory_bytes // 16)
    source = torch.ones(size, dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    return KnownWork(f"copy of {size >> 20} MiB", "dram", 2.0 * size,
                     functools.partial(target.copy_, source), wait)  # fmt: skip


def _cached_copy(torch: Any, module: inline.CudaModule, device: Device) -> KnownWork:
    size, passes = max(1 << 20, (device.l2_bytes or 4 << 20) // 8) >> 20 << 20, 64
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    launch = module.copy_again[device.units * 4, 512]
    return KnownWork(
        f"copy of {size >> 20} MiB in L2", "l2", 2.0 * size * passes,
        functools.partial(launch, source, target, size // 16, passes), torch.cuda.synchronize,
    )  # fmt: skip


def _fma(torch: Any, kernel: inline.Kernel, device: Device, name: str, dtype: Any) -> KnownWork:
    blocks, threads = device.units * 8, 256
    out = torch.empty(blocks * threads, dtype=dtype, device="cuda")
    return KnownWork(
        f"FMA {name}", "flop", 2.0 * CHAINS * FMA_ROUNDS * blocks * threads,
        functools.partial(kernel[blocks, threads], out, FMA_ROUNDS), torch.cuda.synchronize, name,
    )  # fmt: skip


def _matmul(torch: Any, name: str) -> KnownWork:
    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    a, b = (torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty_like(a)

    def launch() -> None:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        try:
            torch.matmul(a, b, out=out)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    return KnownWork(
        f"matmul {name}", "flop", 2.0 * MATMUL_SIZE**3, launch, torch.cuda.synchronize, name,
        dram_bytes=3.0 * a.numel() * a.element_size(),
    )  # fmt: skip


def _spin_cpu() -> None:
    for _ in range(20_000):
        pass


def _nothing() -> None:
    """A CPU's calls return when they are done."""
