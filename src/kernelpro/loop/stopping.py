"""Decides when a run is over, and says why."""

from __future__ import annotations

from kernelpro.loop.budget import exceeded
from kernelpro.loop.finalists import beats_eager
from kernelpro.loop.state import RunState
from kernelpro.schema.proposal_request import Attempt
from kernelpro.schema.search import StopReason

NEAR_ROOFLINE_SHARE = 0.95
"""Attainable over measured time from which more search cannot pay (the project's goal)."""
UNPRODUCTIVE_LIMIT = 25
"""Answers in a row that are repeats or nothing, after which a writer has run dry (chosen)."""
PAID_LIMIT = 8
"""The same where a model is asked for each (chosen: the search begins with seven versions from
scratch; one that goes on from an earlier version shall have been asked for as well)."""


def reason_to_stop(state: RunState, elapsed_s: float) -> tuple[StopReason, str] | None:
    """Why to stop now, with the sentence the report prints; None = go on.

    A candidate at its roofline that the noise does not tell from eager ends nothing: the ceiling
    it is held to is measured too, and the next candidate may be the one that wins.
    """
    best = state.best()
    target = state.budget.target_speedup
    speedup = best.outcome.speedup if best else None
    if target is not None and speedup is not None and speedup >= target:
        return "target_met", f"{speedup:.3g}x reaches the target of {target:g}x"
    held = best if best and state.budget.stop_at_roofline else None
    share = attained_share(held) if held and beats_eager(held.outcome) else None
    if share is not None and share >= NEAR_ROOFLINE_SHARE:
        return "near_roofline", f"the best candidate is at {share:.0%} of the attainable speed"
    if state.spending.unproductive >= UNPRODUCTIVE_LIMIT:
        return "exhausted", f"{UNPRODUCTIVE_LIMIT} answers in a row brought nothing new"
    if state.spending.paid_in_vain >= PAID_LIMIT:
        return "exhausted", f"{PAID_LIMIT} answers of a model in a row brought nothing new"
    return exceeded(state.budget, state.spending, elapsed_s)


def attained_share(attempt: Attempt) -> float | None:
    """Time at the roofline over the latency of the whole call, 0..1.

    The latency is taken at the upper end of its 95 % interval: a lucky measurement must not end a
    run. The time at the roofline is the sum over kernels of duration / headroom, so time outside
    the kernels counts as lost. None if a kernel's headroom or duration is not known.
    """
    diagnosis, latency = attempt.diagnosis, attempt.outcome.latency
    if diagnosis is None or not diagnosis.kernels or latency is None:
        return None
    attainable_us = 0.0
    for kernel in diagnosis.kernels:
        if not kernel.headroom or not kernel.duration_us:
            return None
        attainable_us += kernel.duration_us / kernel.headroom
    return min(1.0, attainable_us / max(latency.median_us, latency.ci95_us[1]))
