"""The task lint's vocabulary: what makes a problem degenerate, in words."""

from __future__ import annotations

LABELS = {
    "stochastic": "two calls on the same inputs differ (dropout, random numbers)",
    "nonfinite": "the output holds NaN or infinity on the problem's own inputs",
    "zero": "all zeros pass as the answer",
    "constant": "one number, one number per channel, or one row passes as the answer",
    "input_independent": "the answer to other inputs passes",
    "weight_independent": "the answer under other weights passes",
    "identity": "the input passes as the answer",
    "affine": "a straight line with fixed coefficients passes as the answer",
    "truncatable": "most of an axis can be left out",
    "dead_parameters": "parameters that no output depends on",
    "too_small": "launch and dispatch overhead dominate the time",
    "not_exportable": "the computation could not be exported, so its work is not known",
}
"""Label -> meaning, in the order they are reported; the last one is the loop's, not the lint's."""
