"""A real server on loopback and stored runs for it."""

from __future__ import annotations

import http.client
import re
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import uvicorn

from kernelpro.dashboard.web.app import application
from kernelpro.dashboard.web.guard import Access
from kernelpro.schema.config import Budget
from kernelpro.schema.event import Asked, Event, NodeFinished, RunStarted
from kernelpro.store.rows import to_row
from kernelpro.store.sqlite import DATABASE, RunStore
from kernelpro.testing.sample_run import sample_events

SAMPLE, HOSTILE = "20260115-093000-rms_norm", "20260116-101500-hostile"


def store_run(folder: Path, events: list[Event]) -> Path:
    """A run folder that holds ``events``."""
    with RunStore.create(folder) as store:
        for event in events:
            store.append(event)
    return folder


def store_large_run(folder: Path, nodes: int) -> Path:
    """A run of ``nodes`` attempts: copies of a small run with new ids, written in one go."""
    events = sample_events(nodes=400)
    started = events[0]
    assert isinstance(started, RunStarted)
    started = replace(started, config=replace(started.config, budget=Budget(evaluations=2 * nodes)))
    with RunStore.create(folder) as store:
        store.append(started)
        body = [e for e in events if isinstance(e, Asked | NodeFinished)]
        rows = [to_row(event, store.blobs.write) for event in body]
    with closing(sqlite3.connect(folder / DATABASE)) as db:
        for shift in range(0, nodes, 400):
            for row in rows:
                payload = _shifted(row.payload, shift)
                node_id = row.node_id and f"n{int(row.node_id[1:]) + shift:05d}"
                db.execute(
                    "INSERT INTO event (at, kind, node_id, status, speedup, payload, chain) "
                    "VALUES ('2026-01-15T09:30:00.000+00:00', ?, ?, ?, ?, ?, '')",
                    (row.kind, node_id, row.status, row.speedup, payload),
                )
        db.commit()
    return folder


def _shifted(payload: str, shift: int) -> str:
    text = re.sub(r'"n(\d{4})"', lambda m: f'"n{int(m[1]) + shift:05d}"', payload)
    text = re.sub(r'("ask_id":|\{"id":)(\d+)', lambda m: f"{m[1]}{int(m[2]) + shift}", text)
    # Later copies grow from the first attempt, so that it is one tree.
    return text.replace('"parent_id":null', '"parent_id":"n00001"') if shift else text


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


class Served(NamedTuple):
    """A running server."""

    root: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """One request, redirects not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, text)


@contextmanager
def serving(root: Path, token: str | None = None, *, port: int = 0) -> Iterator[Served]:
    """The dashboard of ``root`` on ``port``; 0 = a free one."""
    listener = socket.create_server(("127.0.0.1", port))
    app = application(root, Access(host="127.0.0.1", token=token))
    config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=10)
    server = uvicorn.Server(config)
    app.state.library.closing = lambda: server.should_exit
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield Served(root, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
