"""Keeps the best accepted candidate so far, whatever the order of the results."""

from __future__ import annotations

from kernelpro.schema.search import Objective, Tell
from kernelpro.search.reward import accepted, gain, ranked, tied


class Incumbent:
    """The best of all tells; a tie in ``lexicographic`` goes to the candidate of least energy."""

    def __init__(self, objective: Objective) -> None:
        self._objective: Objective = objective
        self._accepted: list[Tell] = []
        self._fastest: Tell | None = None
        self._contenders: list[Tell] = []
        """Those that tie with the fastest, it included; only kept for ``lexicographic``."""

    def add(self, tell: Tell) -> None:
        """Take one more result into account."""
        if not accepted(tell):
            return
        self._accepted.append(tell)
        if self._fastest is None or self._order(tell) < self._order(self._fastest):
            self._fastest = tell
            if self._objective == "lexicographic":
                self._contenders = [t for t in self._accepted if tied(t, tell)]
        elif self._objective == "lexicographic" and tied(tell, self._fastest):
            self._contenders.append(tell)

    def best(self) -> str | None:
        """Node id of the best candidate, None if there is none."""
        if self._fastest is None:
            return None
        if self._objective == "lexicographic":
            return ranked(self._contenders, "lexicographic")[0].node_id
        return self._fastest.node_id

    def _order(self, tell: Tell) -> tuple[float, str]:
        return (-gain(tell, self._objective), tell.node_id or "")
