"""The search tree: nodes, requests in flight, and what is known below each node.

Holds state and keeps it consistent; decides nothing. All updates cost the depth of the node,
never the size of the tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelpro.errors import UserError
from kernelpro.schema.candidate import Mode
from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.incumbent import Incumbent
from kernelpro.search.reward import FAILURE_REWARD, WRONG_REWARD, accepted, reward


@dataclass(slots=True, eq=False)
class Node:
    """One candidate in the tree; the virtual root (``id`` None) means "write from scratch"."""

    id: str | None
    parent: Node | None
    tell: Tell | None
    reward: float = 0.0
    ok: bool = False
    children: int = 0
    visits: int = 0
    """Results told at or below this node, its own included."""
    total: float = 0.0
    """Sum of the rewards of those results."""
    successes: int = 0
    """Accepted candidates at or below this node."""
    peak: float = -math.inf
    """Largest reward of them; minus infinity if there is none."""
    stalled: int = 0
    """Results told below this node since its peak last rose."""
    starts: float = 0.0
    """Sum of the rewards of its children, theirs alone."""
    pending: int = 0
    """Requests in flight at or below this node."""
    pending_here: int = 0
    exhausted: bool = False
    """The writer has nothing more to propose from here."""
    dead: bool = False
    """Given up: a failure whose repairs all failed."""
    askable: bool = True
    """A request may still be made at or below this node."""
    live: dict[str, Node] = field(default_factory=dict)
    """Askable children by id, in the order they became so."""

    @property
    def mode(self) -> Mode:
        """What a request with this node as parent asks for."""
        if self.parent is None:
            return "initial"
        return "optimize" if self.ok else "repair"

    @property
    def name(self) -> str:
        """How decisions call it in text."""
        return self.id or "scratch"

    def lineage(self) -> Iterator[Node]:
        """This node, its parent, ... up to the virtual root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


class Tree:
    """Nodes by id, open asks by id, and the best candidate."""

    def __init__(
        self, objective: Objective, *, dead_end_children: int | None = None,
        wrong_reward: float = WRONG_REWARD, failure_reward: float = FAILURE_REWARD,
    ) -> None:  # fmt: skip
        self._wrong_reward = wrong_reward
        self._failure_reward = failure_reward
        self.objective: Objective = objective
        self.dead_end_children = dead_end_children
        """Children, all failed, after which a failed node is given up; None = never."""
        self.root = Node(id=None, parent=None, tell=None)
        self.nodes: dict[str, Node] = {}
        self.open: dict[int, Node] = {}
        """Parent of every ask in flight."""
        self.incumbent = Incumbent(objective)
        self._last_ask = 0

    def node(self, node_id: str | None) -> Node:
        """The node called ``node_id`` (None = the virtual root); ``UserError`` if unknown."""
        if node_id is None:
            return self.root
        try:
            return self.nodes[node_id]
        except KeyError:
            raise UserError(f"The search knows no node {node_id!r}") from None

    def request(self, parent: Node, decision: Decision) -> Ask:
        """A new ask at ``parent``, now in flight."""
        ask = Ask(id=self._last_ask + 1, parent_id=parent.id, mode=parent.mode, decision=decision)
        self.reopen(ask)
        return ask

    def reopen(self, ask: Ask) -> Node:
        """Put a recorded ask in flight; returns its parent."""
        if ask.id in self.open or ask.id <= self._last_ask:
            raise UserError(f"Ask {ask.id} was already handed out")
        parent = self.node(ask.parent_id)
        self._last_ask = ask.id
        self.open[ask.id] = parent
        parent.pending_here += 1
        for node in parent.lineage():
            node.pending += 1
        return parent

    def close(self, tell: Tell) -> Node | None:
        """Take the result of an ask in; returns the new node, None if the writer had nothing."""
        if tell.ask_id not in self.open:
            raise UserError(f"Ask {tell.ask_id} is not open: it was never asked, or already told")
        if tell.node_id is not None and tell.node_id in self.nodes:
            raise UserError(f"Node {tell.node_id!r} was already told")
        parent = self.open.pop(tell.ask_id)
        parent.pending_here -= 1
        if tell.node_id is None:
            parent.exhausted = True
        node = None if tell.node_id is None else self._grow(parent, tell)
        for ancestor in parent.lineage():
            ancestor.pending -= 1
            if node is not None:
                ancestor.visits += 1
                ancestor.total += node.reward
                ancestor.successes += node.ok
                _climb(ancestor, node)
        self._refresh(parent, keep_going=node is not None and node.ok)
        return node

    def path(self, node: Node) -> tuple[str, ...]:
        """Ids from the first real node down to ``node``; empty for the virtual root."""
        return tuple(n.id for n in node.lineage() if n.id is not None)[::-1]

    def _grow(self, parent: Node, tell: Tell) -> Node:
        assert tell.node_id is not None
        value = reward(tell, self.objective, wrong=self._wrong_reward, failure=self._failure_reward)
        ok = accepted(tell)
        node = Node(
            id=tell.node_id, parent=parent, tell=tell, reward=value, ok=ok,
            visits=1, total=value, successes=int(ok), peak=value if ok else -math.inf,
        )  # fmt: skip
        self.nodes[tell.node_id] = node
        parent.children += 1
        parent.starts += value
        parent.live[tell.node_id] = node
        self.incumbent.add(tell)
        return node

    def _refresh(self, node: Node, *, keep_going: bool) -> None:
        """Re-derive dead ends and askability upwards from ``node``.

        Stops where nothing changed, unless a success below may revive given-up ancestors
        (results may be told in any order, so a success can arrive after its branch was pruned).
        """
        for current in node.lineage():
            current.dead = self._is_dead_end(current)
            askable = not current.dead and (not current.exhausted or bool(current.live))
            if askable != current.askable:
                current.askable = askable
                if current.parent is not None and current.id is not None:
                    if askable:
                        current.parent.live[current.id] = current
                    else:
                        del current.parent.live[current.id]
            elif not keep_going:
                return

    def _is_dead_end(self, node: Node) -> bool:
        return (
            self.dead_end_children is not None
            and node.parent is not None
            and node.successes == 0
            and node.children >= self.dead_end_children
        )


def _climb(ancestor: Node, node: Node) -> None:
    """Note at ``ancestor`` whether the new ``node`` is the best below it."""
    if node.peak > ancestor.peak:
        ancestor.peak, ancestor.stalled = node.peak, 0
    else:
        ancestor.stalled += 1
