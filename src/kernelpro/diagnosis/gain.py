"""Expected gains computed from evidence. Pure arithmetic; tools say which formula they used."""

from __future__ import annotations

import math

from kernelpro.schema.finding import Severity

CAUTION = 0.4
"""The low end of a predicted interval is ``high ** CAUTION``: 40 % of the gain in log space
(chosen; the effectiveness ledger then corrects each tool's predictions by what was realised)."""

MOST = 64.0
"""No prediction above this factor: beyond it the model, not the kernel, is wrong (chosen)."""


def amdahl(share: float, factor: float = math.inf) -> float:
    """Speed-up when ``share`` (0..1) of the time becomes ``factor`` times faster."""
    share = min(max(share, 0.0), 1.0)
    rest = (1.0 - share) + (0.0 if math.isinf(factor) else share / max(factor, 1.0))
    return MOST if rest * MOST <= 1.0 else 1.0 / rest


def interval(high: float, headroom: float | None = None) -> tuple[float, float]:
    """``(low, high)`` with ``high`` capped by the headroom to the roofline and by ``MOST``."""
    capped = min(high, MOST)
    if headroom is not None:
        capped = min(capped, max(headroom, 1.0))
    capped = max(capped, 1.0)
    return (round(capped**CAUTION, 3), round(capped, 3))


def middle(gain: tuple[float, float]) -> float:
    """Geometric mean of a predicted interval: the point prediction."""
    return math.sqrt(gain[0] * gain[1])


def of_call(gain: float, time_share: float | None) -> float:
    """Speed-up of the whole call when a kernel with ``time_share`` of it gains ``gain``."""
    return gain if time_share is None else amdahl(time_share, gain)


CRITICAL_GAIN, HIGH_GAIN, MEDIUM_GAIN = 3.0, 1.5, 1.1
"""Expected high end from which a finding is critical, high, medium; below, information (chosen:
1.5 is the paper's hit; 1.1 is what a person would still get up for)."""


def severity(high: float) -> Severity:
    """Severity that follows from the high end of the expected gain alone."""
    if high >= CRITICAL_GAIN:
        return Severity.CRITICAL
    if high >= HIGH_GAIN:
        return Severity.HIGH
    return Severity.MEDIUM if high >= MEDIUM_GAIN else Severity.INFO
