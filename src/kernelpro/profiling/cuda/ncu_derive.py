"""Canonical metrics that a report holds only in another form: calculated, and marked so.

``--set full`` reports arithmetic as rates per cycle and matrix work as operations; and the counter
of warp-level matrix instructions counts packed half arithmetic as well. Facts only.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.schema.profile import Metric

CYCLES = "smsp__cycles_elapsed.max"
_RATED = (m.FFMA, m.FADD, m.FMUL, m.HFMA, m.DFMA, m.DADD, m.DMUL)
_TENSOR_OPS = "sm__ops_path_tensor_op_"
OPS_PER_MMA = 4096.0
"""Multiplications and additions of one m16n8k16 instruction: 2 x 16 x 8 x 16."""

INPUTS = frozenset({CYCLES, *(f"{name}.per_cycle_elapsed" for name in _RATED)})


def is_input(name: str) -> bool:
    """True for columns that only the calculations below read."""
    return name in INPUTS or (name.startswith(_TENSOR_OPS) and name.endswith(".sum"))


def derived(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """What can be calculated: to be added to ``metrics``, or to replace what is there."""
    found = _from_rates(metrics)
    for name, kinds in ((m.TENSOR_HMMA, ("hmma_", "imma_", "bmma_")),
                        (m.TENSOR_GMMA, ("hgmma_", "igmma_", "bgmma_", "qgmma_"))):  # fmt: skip
        total = _operations(metrics, kinds)
        if total is not None:
            found[name] = _calculated(total / OPS_PER_MMA)
    counted, half = metrics.get(m.TENSOR_HMMA), metrics.get(m.TENSOR_HFMA2)
    if counted is not None and half is not None:
        found[m.TENSOR_HMMA] = _calculated(max(counted.value - half.value, 0.0))
    return found


def _from_rates(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    cycles = metrics.get(CYCLES)
    if cycles is None:
        return {}
    rates = {name: metrics.get(f"{name}.per_cycle_elapsed") for name in _RATED}
    return {
        name: _calculated(rate.value * cycles.value)
        for name, rate in rates.items()
        if rate is not None and name not in metrics
    }


def _operations(metrics: Mapping[str, Metric], kinds: tuple[str, ...]) -> float | None:
    """Matrix operations of these kinds; None if the report does not list them."""
    starts = tuple(_TENSOR_OPS + kind for kind in kinds)
    parts = [
        metric.value
        for name, metric in metrics.items()
        if name.startswith(starts) and name.endswith(".sum")
    ]
    return sum(parts) if parts else None


def _calculated(value: float) -> Metric:
    return Metric(value=value, source="ncu, calculated")
