"""Stored runs behind a real server, and Debian's Chromium driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.web import HOSTILE, SAMPLE, Served, serving, store_run
from kernelpro.store.sqlite import DATABASE
from kernelpro.testing.sample_run import sample_events

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDE, PHONE = (1360, 900), (390, 844)


@pytest.fixture(scope="session")
def stored(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("served")
    store_run(root / SAMPLE, sample_events(nodes=40))
    store_run(root / HOSTILE, sample_events(nodes=24, seed=5, hostile=True))
    (root / "20260117-000000-damaged").mkdir()
    (root / "20260117-000000-damaged" / DATABASE).write_bytes(b"not a database")
    return root


@pytest.fixture(scope="session")
def served(stored) -> Iterator[Served]:
    with serving(stored) as server:
        yield server


# Of a module, not of the session: while Playwright is up its event loop counts as running, and no
# other test of this process could start one.
@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page that remembers everything that must not happen."""

    def __init__(self, context) -> None:
        self.context = context
        self.requests: list[str] = []
        self.faults: list[str] = []
        context.on("request", lambda r: self.requests.append(r.url))
        context.on("dialog", lambda d: (self.faults.append(f"dialog {d.message}"), d.dismiss()))
        context.on("console", self._console)
        context.on("weberror", lambda e: self.faults.append(str(e.error)))

    def _console(self, message) -> None:
        # Chromium reports every answer of 4xx here; tests that provoke one say so.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def open(self, url: str):
        """A new tab at ``url``."""
        page = self.context.new_page()
        page.goto(url)
        return page


@pytest.fixture(params=[WIDE], ids=["desktop"])
def watched(chromium, request) -> Iterator[Watched]:
    width, height = request.param
    context = chromium.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(30_000)
    seen = Watched(context)
    yield seen
    context.close()
    assert seen.faults == []
    assert [u for u in seen.requests if not u.startswith(("http://127.0.0.1:", "file:"))] == []
