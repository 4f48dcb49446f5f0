"""Named sets of search constants: the only place of their default numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.schema.codec import CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class MctsConstants:
    """Constants of the tree search (PAPER section 4)."""

    exploration: float
    """c of UCT."""
    backup: Literal["mean", "best"]
    """What a node is worth to its parent: the mean of all rewards below it, or the best of them.
    The search wants the best candidate, not a good average, and one bad move says nothing against
    the version it was made on. With ``best``, "one more here" is worth what is to be improved: the
    node's own reward, and at the virtual root the mean of the starts."""
    bonus_counts: Literal["visits", "stalled"]
    """What wears the bonus of a child off: every result below it, or only those since its best
    last rose. With ``stalled`` a branch that still gains keeps its bonus, and one that is stuck
    loses it to others, however good it is."""
    root_first: int
    """Candidates written from scratch before any is improved."""
    root_width: float
    """C of the widening gate at the virtual root; a gate is open while
    ``children < max(1, floor(C * visits ** width_exponent))``."""
    failed_width: float
    success_width: float
    width_exponent: float
    dead_end_children: int
    """A failed node with this many children and no success below it is given up."""
    wrong_reward: float
    """Reward of a wrong result."""
    failure_reward: float
    """Reward of any other failure. 0 is the reward of eager: a failure then costs an evaluation
    and nothing else, and does not push the search away from a fast but fragile parent."""
    virtual_loss: float
    """Reward that an attempt in flight is assumed to lose against its node's mean (chosen: one
    e-fold of speed-up); steers parallel scouts apart and is zero once the result is told."""

    __pydantic_config__ = CONFIG


MCTS_PRESETS: dict[str, MctsConstants] = {
    "paper": MctsConstants(
        exploration=1.414,
        backup="mean",
        bonus_counts="visits",
        root_first=0,
        root_width=2.0,
        failed_width=2.0,
        success_width=3.0,
        width_exponent=0.5,
        dead_end_children=3,
        wrong_reward=-2.0,
        failure_reward=-3.0,
        virtual_loss=1.0,
    ),
    "default": MctsConstants(
        exploration=0.5,
        backup="best",
        bonus_counts="stalled",
        root_first=7,
        root_width=1.0,
        failed_width=2.0,
        success_width=3.0,
        width_exponent=0.5,
        dead_end_children=3,
        wrong_reward=0.0,
        failure_reward=0.0,
        virtual_loss=1.0,
    ),
}
"""``paper``: PAPER section 4. ``default``: backup, bonus, exploration, first starts and failure
rewards chosen on simulated landscapes below 1000 (``docs/search.md``), where the paper's values
lose to greedy at small budgets: its failure rewards outweigh any speed-up in a node's mean.

``search_options={"preset": NAME}`` chooses one, single constants can be overridden."""

GREEDY_RESTART_FAILURES = 3
"""Greedy starts from scratch after this many failed attempts in a row (chosen; the paper's N is
not known)."""

BEAM_WIDTH = 3
BEAM_CHILDREN = 3
"""Beam: nodes kept and children per node and generation (the paper's k = 3)."""
