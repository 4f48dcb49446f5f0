"""Monte-Carlo tree search over candidates: UCT with a virtual child and progressive widening.

Follows PAPER section 4, with a choice of backup and bonus (``schema.presets``). Going down from the
virtual root, the best child by UCT competes, while the widening gate is open, with a *virtual
child* that stands for "write one more here". Requests in flight count as visits that fall short of
the mean (virtual loss), so parallel scouts spread.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from kernelpro.errors import UserError
from kernelpro.schema.presets import MCTS_PRESETS, MctsConstants
from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.tree import Node, Tree
from kernelpro.search.widening import gate_open, width


class Step(NamedTuple):
    """What was weighed at one node on the way down."""

    mean: float
    """Worth of the virtual child."""
    bonus: float
    gate: bool
    child: Node | None
    """Best child by UCT, None if none can be asked."""
    child_score: float


class Mcts:
    """Ask/tell tree search. Without ties in score it needs no randomness at all."""

    def __init__(
        self, *, seed: int = 0, objective: Objective = "latency", preset: str = "default",
        **overrides: Any,
    ) -> None:  # fmt: skip
        self.constants = mcts_constants(preset, overrides)
        self.tree = Tree(
            objective,
            dead_end_children=self.constants.dead_end_children,
            wrong_reward=self.constants.wrong_reward,
            failure_reward=self.constants.failure_reward,
            worth=best_or_mean if self.constants.backup == "best" else mean,
        )

    def ask(self, count: int = 1) -> list[Ask]:
        """Up to ``count`` requests; fewer or none when nothing is left to expand."""
        asks: list[Ask] = []
        while len(asks) < count and self.tree.root.askable:
            node, decision = self._select()
            asks.append(self.tree.request(node, decision))
        return asks

    def restore(self, asks: list[Ask]) -> None:
        """Put recorded asks in flight again."""
        for ask in asks:
            self.tree.reopen(ask)

    def tell(self, result: Tell) -> None:
        """Attach the result and back-propagate its reward."""
        self.tree.close(result)

    def best(self) -> str | None:
        """Fastest accepted node."""
        return self.tree.incumbent.best()

    def _select(self) -> tuple[Node, Decision]:
        node = self.tree.root
        while True:
            step = self._weigh(node)
            may_expand = not node.exhausted
            wins = step.gate and step.mean + step.bonus >= step.child_score
            if step.child is None or (may_expand and (wins or self._still_starting(node))):
                return node, self._decision(node, step)
            node = step.child

    def _still_starting(self, node: Node) -> bool:
        """True at the root until enough was written from scratch to choose from."""
        begun = node.children + node.pending_here
        return node.parent is None and begun < self.constants.root_first

    def _weigh(self, node: Node) -> Step:
        visits = max(1, node.visits + node.pending)
        log_visits = math.log(visits)
        child, child_score = self._best_child(node, log_visits)
        children = node.children + node.pending_here
        by_stall = self.constants.bonus_counts == "stalled"
        n_here = children + 1 if by_stall else max(1.0, visits / (children + 1))
        bonus = self.constants.exploration * math.sqrt(log_visits / n_here)
        return Step(
            self._worth_here(node), bonus, gate_open(node, self.constants), child, child_score
        )

    def _best_child(self, node: Node, log_visits: float) -> tuple[Node | None, float]:
        """The child of the highest score, of equals the one that could be asked first.

        Looks at children in order of worth and stops where not even the largest bonus helps.
        """
        c, loss = self.constants.exploration, self.constants.virtual_loss
        by_stall = self.constants.bonus_counts == "stalled"
        largest_bonus = c * math.sqrt(log_visits)
        best, best_score, best_joined = None, -math.inf, 0
        for negative_worth, joined, child in node.live.entries:
            worth = -negative_worth
            if worth + largest_bonus < best_score:
                break
            n = child.pending + (1 + child.stalled if by_stall else child.visits)
            score = worth - loss * child.pending / n
            score += c * math.sqrt(log_visits / n)
            if score > best_score or (score == best_score and joined < best_joined):
                best, best_score, best_joined = child, score, joined
        return best, best_score

    def _worth_here(self, node: Node) -> float:
        """Of the virtual child: one more candidate from ``node`` itself."""
        if self.constants.backup == "mean":
            return mean(node)
        if node.parent is None:
            return node.starts / node.children if node.children else 0.0
        return node.reward

    def _decision(self, node: Node, step: Step) -> Decision:
        children = node.children + node.pending_here
        limit = width(node, self.constants)
        score = step.mean + step.bonus
        if self._still_starting(node):
            rival = f"one of the first {self.constants.root_first} from scratch"
        elif step.child is None:
            rival = "no child can be asked" if node.children else "it has no child yet"
        else:
            rival = f"beats the best child {step.child.name} ({step.child_score:.2f})"
        word = "mean" if self.constants.backup == "mean" else "worth"
        gate = "open" if step.gate else "closed, but nowhere else is left"
        text = (
            f"expand {node.name}: {word} {step.mean:.2f} + bonus {step.bonus:.2f}, {rival}; "
            f"gate {gate} ({children} of {limit} children)"
        )
        return Decision(
            mean=step.mean, bonus=step.bonus, gate_open=step.gate, score=score,
            path=self.tree.path(node), text=text,
        )  # fmt: skip


def mean(node: Node) -> float:
    """Of all rewards told at or below ``node``; 0 if there is none."""
    return node.total / node.visits if node.visits else 0.0


def best_or_mean(node: Node) -> float:
    """The best success at or below ``node``; the mean if all failed."""
    return node.peak if node.successes else mean(node)


def mcts_constants(preset: str, overrides: dict[str, Any]) -> MctsConstants:
    """The constants of ``preset`` with single ones replaced; ``UserError`` names a wrong one."""
    if preset not in MCTS_PRESETS:
        raise UserError(f"Unknown mcts preset {preset!r}. Known: {', '.join(MCTS_PRESETS)}")
    known = {f.name for f in dataclasses.fields(MctsConstants)}
    if unknown := sorted(set(overrides) - known):
        raise UserError(
            f"Unknown mcts option {unknown[0]!r}. Known: preset, {', '.join(sorted(known))}"
        )
    constants = dataclasses.replace(MCTS_PRESETS[preset], **overrides)
    for name in ("exploration", "virtual_loss"):  # the descent stops early because neither can be
        if not getattr(constants, name) >= 0:
            raise UserError(f"The mcts option {name!r} must not be negative")
    return constants
