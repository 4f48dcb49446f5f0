"""A few calls of a module under torch's profiler: how much of them its own operators take.

Decoy kernels and library fallbacks show here, whatever the source calls them and however it wraps
them (EVAL_PITFALLS 26-28). Runs in the subject's process, so it is a claim; and native code that
calls a library by itself is not seen on a CPU.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.profiler import profile, record_function

FREE = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "new_zeros", "zeros",
    "zeros_like", "ones", "ones_like", "full", "full_like", "new_full", "fill", "zero", "copy",
    "clone", "detach", "_to_copy", "to", "contiguous", "resize", "set", "lift_fresh", "alias",
    "pin_memory", "record_stream", "arange", "_local_scalar_dense", "item", "scalar_tensor",
    "_reshape_alias", "view", "reshape", "as_strided", "slice", "select", "t", "transpose",
    "permute", "expand", "squeeze", "unsqueeze", "chunk", "split", "narrow", "unbind", "flatten",
})  # fmt: skip
"""Operators that make, fill, move or describe memory: no result is computed by them."""
CALLS = 3
"""Chosen: the largest share of several calls is what a busy machine distorts least."""
MARK = "kernelpro call"


def audit(
    call: Callable[..., Any],
    arguments: Any,
    device: torch.device,
    synchronize: Callable[[], None],
    cool: Callable[[], None],
) -> dict[str, Any]:
    """``call_us`` and, by operator, ``operators_us`` of the call with the largest share of them.

    On a GPU both are times of kernels, by the operator that launched them, and ``kernels_us`` is
    the median over the calls of all kernels' time, as CUPTI tells it: without the gaps between
    them, since here the host's launches are waited for. cool: empties the caches.
    """
    on_gpu = device.type == "cuda"
    found: list[dict[str, Any]] = []
    for _ in range(CALLS):
        cool()
        synchronize()  # what empties the caches is no kernel of the call
        # Without Kineto a GPU's times are of events around operators, not CUPTI's of kernels.
        with (
            _stderr_aside(),
            profile(use_device="cuda" if on_gpu else None, use_kineto=on_gpu) as seen,
        ):
            with record_function(MARK):
                call(*arguments)
            synchronize()
        found.append(_split(seen.key_averages(), on_gpu=on_gpu))
    kernels_us = statistics.median(one["call_us"] for one in found) if on_gpu else None
    chosen = max(found, key=_share)
    return {**chosen, "kernels_us": kernels_us}


@contextlib.contextmanager
def _stderr_aside() -> Iterator[None]:
    """The profiler's library says on stderr that it starts and stops, every time."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def _split(averages: Any, *, on_gpu: bool) -> dict[str, Any]:
    operators = {}
    total = 0.0
    for event in averages:
        # The mark has a row of its own among the GPU's, as long as the kernels inside it.
        if on_gpu and "CUDA" in str(event.device_type) and event.key != MARK:
            total += float(event.self_device_time_total)
        elif not on_gpu and event.key == MARK:
            total = float(event.cpu_time_total)
        name = event.key.removeprefix("aten::")
        if name != event.key and name.rstrip("_") not in FREE:
            spent = event.self_device_time_total if on_gpu else event.self_cpu_time_total
            operators[name] = float(spent)
    return {"call_us": total, "operators_us": operators}


def _share(found: dict[str, Any]) -> float:
    return float(sum(found["operators_us"].values()) / max(found["call_us"], 1e-9))
