"""The search tree: nodes, requests in flight, and what is known below each node.

Holds state and keeps it consistent; decides nothing. All updates cost the depth of the node (and
the logarithm of the children beside it), never the size of the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kernelpro.errors import UserError
from kernelpro.schema.candidate import Mode
from kernelpro.schema.search import Ask, Decision, Objective, Tell
from kernelpro.search.incumbent import Incumbent
from kernelpro.search.ranking import Entry, Ranking
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
    live: Ranking[Node] = field(default_factory=Ranking)
    """Askable children, in order of what they are worth to the strategy, then of becoming so."""
    rank: Entry[Node] | None = None
    """Its own entry among its parent's askable children; None if it is not one of them."""

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


def unranked(_: Node) -> float:
    """Every child is worth the same: for strategies that do not compare children."""
    return 0.0


class Tree:
    """Nodes by id, open asks by id, and the best candidate."""

    def __init__(
        self, objective: Objective, *, dead_end_children: int | None = None,
        wrong_reward: float = WRONG_REWARD, failure_reward: float = FAILURE_REWARD,
        worth: Callable[[Node], float] = unranked,
    ) -> None:  # fmt: skip
        self._wrong_reward = wrong_reward
        self._failure_reward = failure_reward
        self.objective: Objective = objective
        self.dead_end_children = dead_end_children
        """Children, all failed, after which a failed node is given up; None = never."""
        self._worth = worth
        """Of a node to its parent, from what was told at or below it; orders ``live``."""
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
        node: Node | None = parent
        while node is not None:
            node.pending += 1
            node = node.parent
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
            self._take_back(parent)
            self._refresh(parent)
            return None
        node = self._grow(parent, tell)
        self._take_in(node)
        self._refresh(parent, success=node.ok)
        return node

    def _take_back(self, parent: Node) -> None:
        """A request at ``parent`` came to nothing."""
        for ancestor in parent.lineage():
            ancestor.pending -= 1

    def _take_in(self, node: Node) -> None:
        """Count the new ``node`` at all above it: the innermost loop of a long search."""
        gained, peak, ok, worth_of = node.reward, node.peak, node.ok, self._worth
        ancestor = node.parent
        while ancestor is not None:
            ancestor.pending -= 1
            ancestor.visits += 1
            ancestor.total += gained
            ancestor.successes += ok
            if peak > ancestor.peak:
                ancestor.peak, ancestor.stalled = peak, 0
            else:
                ancestor.stalled += 1
            above, rank = ancestor.parent, ancestor.rank
            if above is not None and rank is not None:
                worth = worth_of(ancestor)
                if worth != -rank[0]:
                    ancestor.rank = above.live.move(rank, worth)
            ancestor = above

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
        node.rank = parent.live.add(node, self._worth(node))
        self.incumbent.add(tell)
        return node

    def _refresh(self, node: Node, *, success: bool = False) -> None:
        """Re-derive dead ends and askability upwards from ``node``.

        Stops where nothing changed, unless a ``success`` just told below may revive given-up
        ancestors (results may be told in any order, so one can arrive after its branch was
        pruned). Where it is not the first success, nothing above was given up.
        """
        for current in node.lineage():
            current.dead = self._is_dead_end(current)
            askable = not current.dead and (not current.exhausted or bool(current.live))
            if askable != current.askable:
                current.askable = askable
                self._enter_or_leave(current)
            elif not success or current.successes > 1:
                return

    def _enter_or_leave(self, node: Node) -> None:
        """Put ``node`` among its parent's askable children, or take it out."""
        if node.parent is None:
            return
        if node.rank is None:
            node.rank = node.parent.live.add(node, self._worth(node))
        else:
            node.parent.live.drop(node.rank)
            node.rank = None

    def _is_dead_end(self, node: Node) -> bool:
        return (
            self.dead_end_children is not None
            and node.parent is not None
            and node.successes == 0
            and node.children >= self.dead_end_children
        )
