"""A run folder as a :class:`Run` that stays current: light facts of all nodes, the rest on demand.

Reading 20,000 whole records takes most of a minute; their facts come out of SQLite in about one
second, and a page shows whole records of a few nodes only.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic_core import from_json

from kernelpro.errors import StoreError
from kernelpro.schema.codec import from_jsonable
from kernelpro.schema.event import Asked, Exchanged, NodeFinished, RunStarted
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Ask, Tell
from kernelpro.schema.usage import Usage
from kernelpro.store.listing import State
from kernelpro.store.lock import is_locked
from kernelpro.store.sqlite import DATABASE, LOCK, RunStore
from kernelpro.views.node_facts import Advice, NodeFacts
from kernelpro.views.run import Run
from kernelpro.views.utilisation_view import UtilisationView, usage_of, utilisation_view

Key = TypeVar("Key")
Value = TypeVar("Value")

KEPT_RECORDS = 64
"""Whole records kept per run: a node page needs the node, its parent and the best."""
KEPT_RESULTS = 16
"""Computed results kept per run: the tree and the latest orders of the attempts list."""
PAGE = 2000
"""Rows per query, so that other requests get their turn between."""
MAX_PAYLOAD_TITLE = 300
"""Characters of a title that whole-run views keep."""

_FACTS = """
SELECT json_group_array(json_array(seq, kind, json(facts))) FROM (SELECT seq, kind, CASE kind
  WHEN 'node_finished' THEN json_extract(payload, '$.tell', '$.candidate.parent_id',
    '$.candidate.proposal.title', '$.candidate.proposal.mode', '$.candidate.proposal.acted_on',
    '$.duplicate_of', '$.seconds', '$.outcome.seconds', '$.usage', '$.candidate.id')
  WHEN 'exchanged' THEN json_extract(payload, '$.exchange.ask_id', '$.exchange.usage')
  ELSE 'null' END AS facts
FROM event WHERE seq > ? AND seq <= ? AND kind <> 'asked' ORDER BY seq LIMIT ?)
"""
"""Every event but the asks, which follow in :meth:`StoredRun._open_asks`. A page is one text:
SQLite makes it without Python's lock, and one text is parsed in half the time of its parts."""
_ADVICE = """
SELECT node_id, (SELECT json_group_array(json_extract(i.value, '$.tool', '$.expected_gain'))
                 FROM json_each(payload, '$.guidance.items') AS i)
FROM event WHERE kind = 'node_finished' AND node_id IS NOT NULL
"""


class OnDemand(MutableMapping[Key, Value]):
    """Values by key, loaded when asked for; the latest few are kept."""

    def __init__(self, load: Callable[[Key], Value]) -> None:
        self._load = load
        self._kept: OrderedDict[Key, Value] = OrderedDict()

    def __getitem__(self, key: Key) -> Value:
        if key not in self._kept:
            self[key] = self._load(key)
        self._kept.move_to_end(key)
        return self._kept[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        self._kept[key] = value
        while len(self._kept) > KEPT_RECORDS:
            self._kept.popitem(last=False)

    def __delitem__(self, key: Key) -> None:
        del self._kept[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


class StoredRun:
    """One run folder, open for reading. Every use of ``run`` belongs under ``guard``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.guard = threading.RLock()
        self._store = RunStore.open(folder)
        self._file = (folder / DATABASE).stat().st_ino
        self._seq_of: dict[str, int] = {}
        self._advice: dict[str, tuple[Advice, ...]] = {}
        self._advice_seq = -1
        self._made: dict[tuple[str, int], object] = {}
        self.seq = 0
        """The latest event taken in."""
        self.run = Run(
            nodes=OnDemand(self._node), asks=OnDemand(self._ask), advice=OnDemand(self._advised)
        )

    def refresh(self) -> bool:
        """Take in what was recorded since; True if there was anything. ``StoreError`` if damaged
        or deleted."""
        if not self.present():
            raise StoreError(f"The run in {self.folder} was deleted")
        with self.guard:
            last = self._store.last_seq
            if last == self.seq:
                return False
            with _uncollected():
                self._take_events(last)
            self._open_asks()
            self.seq = last
            return True

    def state(self) -> State:
        """Whether a controller is at it, as ``kernelpro runs list`` says."""
        if is_locked(self.folder / LOCK):
            return "running"
        return "stopped" if self.run.stopped is not None else "unfinished"

    def started(self) -> RunStarted | None:
        """The first event, without the rest."""
        first = self._store.event(1) if self._store.last_seq else None
        return first if isinstance(first, RunStarted) else None

    def elapsed_s(self) -> float:
        """Seconds worked on the run; to this moment if a controller is at it."""
        if self.run.stopped is not None:
            return self.run.stopped.elapsed_s
        rows = self._store.query(
            "SELECT at, kind FROM event WHERE kind IN ('run_started', 'resumed', 'stopped') "
            "OR seq = (SELECT MAX(seq) FROM event) ORDER BY seq"
        )
        return _worked(rows, running=self.state() == "running")

    def cached(self, name: str, make: Callable[[], Value]) -> Value:
        """``make()``'s result until the run changes: several readers, one computation."""
        with self.guard:
            key = (name, self.seq)
            if key not in self._made:
                current = [(k, v) for k, v in self._made.items() if k[1] == self.seq]
                self._made = dict(current[-KEPT_RESULTS:])
                self._made[key] = make()
            return cast(Value, self._made[key])

    def present(self) -> bool:
        """False once the folder is gone or holds another run."""
        try:
            return (self.folder / DATABASE).stat().st_ino == self._file
        except OSError:
            return False

    def exchanges(self, node_id: str) -> tuple[Exchange, ...]:
        """What models were asked for an attempt, and answered; none for the playbook."""
        rows = self._store.query(
            "SELECT seq FROM event WHERE kind = 'exchanged' "
            "AND json_extract(payload, '$.exchange.ask_id') = ? ORDER BY seq",
            (self.run.facts[node_id].tell.ask_id,),
        )
        events = [self._store.event(int(str(seq))) for (seq,) in rows]
        return tuple(event.exchange for event in events if isinstance(event, Exchanged))

    def utilisation(self) -> UtilisationView:
        """How well the machines of the run were used so far."""
        found = self.cached("usage", lambda: usage_of(self._store))
        return utilisation_view([found], worked=self.elapsed_s())

    def close(self) -> None:
        """Close the store."""
        with self.guard:
            self._store.close()

    def _take_events(self, last: int) -> None:
        """Everything after ``seq`` up to ``last``, in the order it was recorded."""
        with ThreadPoolExecutor(1) as reader:
            # The next page is read while this one is taken in.
            page = reader.submit(self._store.query, _FACTS, (self.seq, last, PAGE))
            while rows := _page(str(page.result()[0][0])):
                page = reader.submit(self._store.query, _FACTS, (rows[-1][0], last, PAGE))
                self._take_page(rows)

    def _take_page(self, rows: list[Any]) -> None:
        for seq, kind, values in rows:
            try:
                if kind == "node_finished":
                    self._take_node(seq, values)
                elif kind == "exchanged":
                    ask_id, usage = values
                    self.run.add_call(ask_id, from_jsonable(Usage, usage))
                else:
                    self.run.add(self._store.event(seq))
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"Event {seq} of the run in {self.folder} is damaged: {error!r}"
                ) from error

    def _take_node(self, seq: int, values: list[Any]) -> None:
        told, parent, title, mode, acted_on, duplicate_of, seconds, stages, usage, node_id = values
        tell = _tell(told)
        if node_id is None or tell.node_id is None:
            self.run.add_unanswered(tell.ask_id)
            return
        self._seq_of[tell.node_id] = seq
        self.run.add_facts(
            NodeFacts(
                tell=tell, parent_id=parent, title=self._title(title), mode=mode,
                acted_on=tuple(acted_on), duplicate_of=duplicate_of, seconds=seconds,
                stage_seconds=stages or {},
                usage=tuple(from_jsonable(Usage, u) for u in usage) if _paid(usage) else (),
            )
        )  # fmt: skip

    def _title(self, title: Any) -> str:
        text = title if isinstance(title, str) else self._store.get_blob(title["$blob"]).decode()
        return text[:MAX_PAYLOAD_TITLE]

    def _open_asks(self) -> None:
        """Asks are handed out a round at a time, so only the latest round can be open."""
        rows = self._store.query("SELECT MAX(seq) FROM event WHERE kind = 'asked'")
        if rows[0][0] is None:
            return
        latest = self._store.event(int(str(rows[0][0])))
        assert isinstance(latest, Asked)
        done = self._store.query(
            "SELECT json_extract(payload, '$.tell.ask_id') FROM event "
            "WHERE kind = 'node_finished' AND seq > ?",
            (int(str(rows[0][0])),),
        )
        answered = {int(str(ask_id)) for (ask_id,) in done}
        self.run.asks.update({ask.id: ask for ask in latest.asks})
        self.run.open_asks = {ask.id for ask in latest.asks} - answered

    def _node(self, node_id: str) -> NodeFinished:
        event = self._store.event(self._seq_of[node_id])
        assert isinstance(event, NodeFinished)
        return event

    def _ask(self, ask_id: int) -> Ask:
        """The request behind a node: in the latest round asked before its answer."""
        rows = self._store.query(
            "SELECT asked.seq FROM event AS asked, json_each(asked.payload, '$.asks') AS a "
            "WHERE asked.kind = 'asked' AND json_extract(a.value, '$.id') = ? LIMIT 1",
            (ask_id,),
        )
        if not rows:
            raise KeyError(ask_id)
        event = self._store.event(int(str(rows[0][0])))
        assert isinstance(event, Asked)
        return next(ask for ask in event.asks if ask.id == ask_id)

    def _advised(self, node_id: str) -> tuple[Advice, ...]:
        """One pass for all nodes: whoever asks for one asks for many."""
        if self._advice_seq != self.seq:
            self._advice = {
                str(node): tuple(Advice(tool, (low, high)) for tool, (low, high) in _items(text))
                for node, text in self._store.query(_ADVICE)
            }
            self._advice_seq = self.seq
        return self._advice.get(node_id, ())


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection: 20,000 records that all stay are searched for garbage over and over,
    a third of the time that they take to read."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _worked(rows: list[tuple[object, ...]], *, running: bool) -> float:
    """Sum of the sittings: each from its start to its stop, the last one to its last sign."""
    total, begin, last = 0.0, None, None
    for at, kind in rows:
        moment = datetime.datetime.fromisoformat(str(at))
        if kind == "stopped" and begin is not None:
            total, begin = total + (moment - begin).total_seconds(), None
        elif begin is None or kind == "resumed":
            begin = moment
        last = moment
    if begin is not None and last is not None:
        end = datetime.datetime.now(datetime.UTC) if running else last
        total += (end - begin).total_seconds()
    return max(0.0, total)


def _items(text: object) -> list[tuple[str, list[float]]]:
    return [json.loads(item) if isinstance(item, str) else item for item in json.loads(str(text))]


def _paid(usage: list[dict[str, Any]]) -> bool:
    """Whether a call cost anything: the playbook's are 20,000 records of nothing."""
    return any(u["requests"] or u["input_tokens"] or u["cost_usd"] != 0 for u in usage)


def _page(text: str) -> list[Any]:
    """A page of facts: by a parser twice as quick as the standard library's, which alone takes half
    a surrogate pair (hostile text may hold one)."""
    try:
        rows: list[Any] = from_json(text)
    except ValueError:
        rows = json.loads(text)
    return rows


_STATUS = {status.value: status for status in Status}
_STAGE = {stage.value: stage for stage in Stage}


def _tell(told: dict[str, Any]) -> Tell:
    """As the codec would, without its checks: there are 20,000 of them."""
    interval, status, stage = told["speedup_ci95"], told["status"], told["stage"]
    return Tell(
        ask_id=told["ask_id"], node_id=told["node_id"],
        status=_STATUS[status] if status else None, stage=_STAGE[stage] if stage else None,
        speedup=told["speedup"], speedup_ci95=(interval[0], interval[1]) if interval else None,
        energy_j=told["energy_j"], latency_us=told["latency_us"],
        baseline_energy_j=told.get("baseline_energy_j"),
    )  # fmt: skip
