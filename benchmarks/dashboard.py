"""How soon a run of 20,000 attempts can be used in the browser.

    python benchmarks/dashboard.py --json benchmarks/results/dashboard.json

A server of its own is started for each first visit, so nothing is in its memory; later visits use
the last one. Needs Playwright and Debian's Chromium. Goal (chosen): the tree is drawn and answers
within 2 s. Times end when Playwright has seen the state, which adds its own checks to a click.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import kernelpro

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from dashboard.web import store_large_run

NODES = 20_000
RUN = "large"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-visits", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store_large_run(Path(folder) / RUN, NODES)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for number in range(arguments.first_visits):
            visits = ("first", "second") if number == arguments.first_visits - 1 else ("first",)
            rows += _visits(Path(folder), browser, visits)
        browser.close()
    for row in rows:
        print(row)
    if arguments.json is not None:
        record = {
            "what": f"seconds from asking for a run of {NODES} attempts until its page answers",
            "command": "python benchmarks/dashboard.py " + " ".join(sys.argv[1:]),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "kernelpro": kernelpro.__version__, "cores": os.cpu_count(), "visits": rows,
        }  # fmt: skip
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _visits(root: Path, browser: Browser, names: tuple[str, ...]) -> list[dict[str, Any]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "kernelpro", "serve", "--runs", str(root), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address)
        return [{"visit": name, **_visit(browser, address)} for name in names]
    finally:
        server.terminate()
        server.wait()


def _visit(browser: Browser, address: str) -> dict[str, float]:
    page = browser.new_page()
    page.goto(address)
    load, began = os.getloadavg()[0], time.perf_counter()
    page.goto(f"{address}/runs/{RUN}", wait_until="commit")
    page.wait_for_selector(f"#tree[data-nodes='{NODES}'][data-drawn='{NODES}']")
    drawn = time.perf_counter() - began
    page.click("#tree-best")
    clicked = time.perf_counter() - began
    page.wait_for_selector("#panel.open")
    panel = time.perf_counter() - began
    page.close()
    return {"drawn_s": round(drawn, 2), "clicked_s": round(clicked, 2),
            "panel_s": round(panel, 2), "load_average": load}  # fmt: skip


def _wait_for(address: str) -> None:
    """Until the server answers; ``TimeoutError`` after half a minute."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=1.0)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"{address} does not answer")


if __name__ == "__main__":
    main()
