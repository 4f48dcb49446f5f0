"""Measures what the GPU can really do: the roofline that a CUDA kernel is held against.

Copy bandwidth, FMA rates and launch cost with own kernels; tensor-core rates through torch's
library matmul, the best that is installed. Best of several repeats; no setting is changed.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kernelpro import inline
from kernelpro.errors import MachineError
from kernelpro.hardware.nvml import read_state
from kernelpro.schema.hardware import Device, Peaks

COPY_BYTES = 2 << 30
"""Each buffer, or an eighth of the memory: far above any L2."""
MATMUL_SIZE = 8192
REPEATS = 8
WARM_UP = 3
CHAINS = 8
"""Independent accumulators a thread: enough for 4 cycles of latency with full occupancy."""
FMA_ROUNDS = 4096
LAUNCHES = 2000
CACHE_PASSES = 64
HOLD_CYCLES = 400_000
"""Some 200 us: what is issued meanwhile is queued, so that events wait for no host."""
OVERHEAD_ELEMENTS = 1 << 22
"""Of the kernel between two events: about 10 us, from L2."""


def measure(device: Device) -> Peaks:
    """Measured ceilings of a GPU, in about 5 seconds; ``MachineError`` if it cannot be used."""
    import torch

    if not torch.cuda.is_available():
        raise MachineError(f"torch cannot use {device.id}: its CUDA build or the driver is missing")
    source = Path(__file__).with_name("peaks_cuda.cu").read_text(encoding="utf-8")
    try:
        with torch.cuda.device(device.index):
            module = inline.cuda(source, flags=(f"-DCHAINS={CHAINS}",))
            copy, copy_bytes, how = _copy(torch, module, device)
            flops = {
                "float32": _fma(torch, module.fma_float, device, torch.float32),
                "float64": _fma(torch, module.fma_double, device, torch.float64),
                **_matmuls(torch, device),
            }
            cache, cache_bytes = _cache(torch, module, device)
            launch_us = _launch_us(torch, module)
            overhead_us, overhead_how = _event_overhead_us(torch)
    except RuntimeError as error:  # torch's, and inline's build and driver errors
        raise MachineError(f"The peaks of {device.id} cannot be measured: {error}") from error
    state = read_state(device.uuid)
    return Peaks(
        copy_gb_s=copy, flops=flops, source="measured", cache_gb_s=cache, launch_us=launch_us,
        event_overhead_us=overhead_us,
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        conditions={
            "copy": f"two buffers of {copy_bytes >> 20} MiB, {how}, best of {REPEATS}",
            "flops": f"{CHAINS} chains a thread; tensor rates: torch matmul of {MATMUL_SIZE}^3 on "
            f"random data, best of {REPEATS}",
            "cache": f"{cache_bytes >> 20} MiB read and {cache_bytes >> 20} MiB written in L2",
            "launch": f"{LAUNCHES} empty kernels back to back",
            "event overhead": overhead_how,
            "clock": f"SM {state.sm_clock_mhz} MHz at the end of the measurement",
        },
    )  # fmt: skip


def _best_ms(torch: Any, call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Shortest time of one ``call`` between CUDA events, in milliseconds."""
    for _ in range(WARM_UP):
        call()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for start, stop in pairs:
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize()
    return min(float(start.elapsed_time(stop)) for start, stop in pairs)


def _copy(torch: Any, module: inline.CudaModule, device: Device) -> tuple[float, int, str]:
    size = min(COPY_BYTES, device.memory_bytes // 8) >> 20 << 20
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    vectors = size // 16
    ways: dict[str, Callable[[], object]] = {"torch copy_": lambda: target.copy_(source)}
    for blocks in (8, 32):
        launch = module.copy[device.units * blocks, 256]
        ways[f"own kernel, {blocks} blocks a unit"] = partial(launch, source, target, vectors)
    rates = {name: 2.0 * size / _best_ms(torch, call) / 1e6 for name, call in ways.items()}
    best = max(rates, key=lambda name: rates[name])
    return rates[best], size, best


def _cache(torch: Any, module: inline.CudaModule, device: Device) -> tuple[float, int]:
    size = max(1 << 20, (device.l2_bytes or 4 << 20) // 8) >> 20 << 20
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    launch = module.copy_again[device.units * 4, 512]
    ms = _best_ms(torch, lambda: launch(source, target, size // 16, CACHE_PASSES))
    return 2.0 * size * CACHE_PASSES / ms / 1e6, size


def _fma(torch: Any, kernel: inline.Kernel, device: Device, dtype: Any) -> float:
    blocks, threads = device.units * 8, 256
    out = torch.empty(blocks * threads, dtype=dtype, device="cuda")
    ms = _best_ms(torch, lambda: kernel[blocks, threads](out, FMA_ROUNDS))
    return 2.0 * CHAINS * FMA_ROUNDS * blocks * threads / ms * 1e3


def _matmuls(torch: Any, device: Device) -> dict[str, float]:
    rates = {}
    for name in ("float16", "bfloat16", "tf32"):
        dtype = torch.float32 if name == "tf32" else getattr(torch, name)
        a = torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(dtype)
        b = torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(dtype)
        out = torch.empty_like(a)
        with _tf32(torch, name == "tf32"):
            ms = _best_ms(torch, partial(torch.matmul, a, b, out=out))
        rates[name] = 2.0 * MATMUL_SIZE**3 / ms * 1e3
    if device.capability and device.capability >= (8, 9):
        rate = _float8(torch)
        if rate is not None:
            rates["float8"] = rate
    return rates


def _float8(torch: Any) -> float | None:
    """Rate of torch's scaled float8 matmul; None where this torch or GPU refuses it."""
    a = torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    try:
        ms = _best_ms(
            torch, lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16,
                                            use_fast_accum=True)
        )  # fmt: skip
    except (AttributeError, RuntimeError, ValueError):
        return None
    return 2.0 * MATMUL_SIZE**3 / ms * 1e3


@contextmanager
def _tf32(torch: Any, allowed: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _launch_us(torch: Any, module: inline.CudaModule) -> float:
    """Cost of one launch in a long row of empty kernels, in microseconds."""
    launch = module.empty[1, 32]

    def row() -> None:
        for _ in range(LAUNCHES):
            launch()

    return _best_ms(torch, row, repeats=3) * 1e3 / LAUNCHES


def _event_overhead_us(torch: Any) -> tuple[float | None, str]:
    """What two events say of one kernel beyond CUPTI's time of it, and how that was found.

    The events stand behind work that holds the stream, as in the timing of candidates. Nothing is
    taken off where CUPTI gives no times (None) or more than the events.
    """
    from torch.autograd.profiler import profile

    x = torch.rand(OVERHEAD_ELEMENTS, device="cuda")
    out = torch.empty_like(x)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def events_us() -> float:
        torch.cuda._sleep(HOLD_CYCLES)
        first.record()
        torch.neg(x, out=out)
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e3

    seen = statistics.median(events_us() for _ in range(3 * REPEATS))
    with profile(use_device="cuda", use_kineto=True) as recorded:
        for _ in range(REPEATS):
            events_us()
    kernels = [
        float(event.time_range.elapsed_us())
        for event in recorded.function_events
        if "CUDA" in str(event.device_type) and "neg" in event.name
    ]
    if not kernels:
        return None, "CUPTI gave no times of kernels"
    told = statistics.median(kernels)
    return max(0.0, seen - told), f"{seen:.2f} us by events, {told:.2f} us by CUPTI"
