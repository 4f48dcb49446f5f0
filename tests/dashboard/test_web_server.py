"""The dashboard over HTTP: what it shows, to whom, and that it can change nothing."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from dashboard.web import HOSTILE, SAMPLE, Served, serving, store_run
from kernelpro.dashboard.web.data import BEST
from kernelpro.dashboard.web.guard import is_loopback
from kernelpro.dashboard.web.list_page import chosen, filters_of
from kernelpro.dashboard.web.run_page import PARTS
from kernelpro.errors import UserError
from kernelpro.schema.event import Exchanged
from kernelpro.schema.exchange import Exchange, Message, ToolCall
from kernelpro.schema.usage import Usage
from kernelpro.store.listing import list_runs
from kernelpro.store.sqlite import DATABASE, RunStore
from kernelpro.testing.html_page import Page
from kernelpro.testing.sample_run import HOSTILE as HOSTILE_TEXT
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold

RUN = f"/runs/{SAMPLE}"
PAGES = ["/", "/suite", "/tools", "/machines", "/compare", RUN, f"{RUN}/nodes/n0012",
         f"/compare?first={SAMPLE}:n0001&second={SAMPLE}:n0012",
         f"/compare?run={SAMPLE}&run={HOSTILE}", f"/runs/{HOSTILE}/nodes/n0008"]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_pages_carry_a_strict_policy_and_no_inline_code(served, path):
    answer = served.get(path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    page = Page(answer.text)
    assert page.scripts == [] or not "".join(page.scripts).strip()
    assert "style" not in {tag for tag, _ in page.elements}
    attributes = {name for _, found in page.elements for name in found}
    assert not {a for a in attributes if a.startswith("on") or a == "style"}
    addresses = [v for _, found in page.elements for k, v in found.items() if k in {"href", "src"}]
    assert not [a for a in addresses if a.startswith(("http:", "https:", "//", "javascript:"))]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(served, method):
    assert {served.get(path, method).status for path in ("/", RUN, f"{RUN}/tree.json")} == {405}


def test_other_host_names_are_refused(served):
    assert served.get("/", Host=f"localhost:{served.port}").status == 200
    assert served.get("/", Host=f"[::1]:{served.port}").status == 200
    for host in ("evil.example", "evil.example:8350", "127.0.0.1.evil.example", ""):
        assert served.get("/", Host=host).status == 421


def test_beyond_loopback_a_token_is_needed(stored):
    with serving(stored, token="s3cret") as server:
        assert server.get("/").status == 401
        assert server.get(f"{RUN}/tree.json").status == 401
        assert server.get("/static/style.css").status == 401
        assert server.get("/?token=wrong").status == 401
        first = server.get("/?q=rms&token=s3cret")
        assert (first.status, first.headers["location"]) == (303, "/?q=rms")
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert server.get("/", Cookie=cookie.split(";")[0]).status == 200
        assert server.get("/", Cookie="kernelpro_token=wrong").status == 401


def test_only_loopback_is_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.0.1", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.4", "example.org", "")))


@pytest.mark.parametrize("path", [
    "/runs/no-such-run", "/runs/..", "/runs/%2e%2e", "/runs/..%2f..", f"{RUN}/nodes/n9999",
    f"{RUN}/parts/nothing", f"{RUN}/figures/nothing.svg", f"{RUN}/figures/progress.exe",
    f"{RUN}/figures/energy.svg", "/static/app.py", "/static/..%2fapp.py", "/etc/passwd",
    "/compare?first=no-such&second=" + SAMPLE,
])  # fmt: skip
def test_what_is_not_there_is_not_found(served, path):
    answer = served.get(path)
    assert answer.status == 404
    assert "Traceback" not in answer.text


def test_a_damaged_run_says_so(served):
    answer = served.get("/runs/20260117-000000-damaged")
    assert answer.status == 500
    assert "damaged" in answer.text
    assert "20260117-000000-damaged" in served.get("/").text


def test_a_damaged_event_is_named_every_time(tmp_path):
    folder = store_run(tmp_path / SAMPLE, sample_events(nodes=6))
    with closing(sqlite3.connect(folder / DATABASE)) as db:
        db.execute(
            "INSERT INTO event (at, kind, node_id, status, speedup, payload, chain) "
            "SELECT at, kind, 'n0099', status, speedup, "
            "json_set(payload, '$.tell.status', 'new'), chain FROM event WHERE node_id = 'n0004'"
        )
        db.commit()
    with serving(tmp_path) as server:
        for _ in range(2):
            answer = server.get(f"{RUN}/tree.json")
            assert answer.status == 500
            assert "damaged" in answer.text


def test_every_part_of_a_run_is_drawn(served, stored):
    run = fold(sample_events(nodes=40))
    shown = {name: served.get(f"{RUN}/parts/{name}") for name in PARTS}
    assert {answer.status for answer in shown.values()} == {200}
    assert f"{run.speedup(run.best_id):.2f}" in shown["headline"].text
    assert f"{run.charged} of 40" in shown["meters"].text
    assert "energy was measured" in shown["energy"].text
    assert shown["path"].text.count("<li") == len(run.path(run.best_id))
    assert "thread scaling" in shown["tools"].text


def test_the_tree_is_complete(served):
    run = fold(sample_events(nodes=40))
    data = json.loads(served.get(f"{RUN}/tree.json").text)
    assert sorted(data["ids"]) == sorted(run.nodes)
    for node_id, parent, speedup in zip(data["ids"], data["parent"], data["speedup"], strict=True):
        assert (data["ids"][parent] if parent >= 0 else None) == run.parent_of(node_id)
        assert speedup == pytest.approx(run.search_speedup(node_id), abs=1e-3)
    assert [i for i, f in zip(data["ids"], data["flags"], strict=True) if f & BEST] == [run.best_id]


def test_the_list_of_attempts_comes_in_windows(served):
    run = fold(sample_events(nodes=40))

    def window(query: str) -> dict:
        return json.loads(served.get(f"{RUN}/attempts.json?{query}").text)

    assert [r["id"] for r in window("limit=3")["rows"]] == ["n0040", "n0039", "n0038"]
    assert [r["id"] for r in window("offset=39")["rows"]] == ["n0001"]
    fastest = [r["speedup"] or 0.0 for r in window("sort=speedup")["rows"]]
    assert fastest == sorted(fastest, reverse=True)
    failed = window("status=build_error")
    assert failed["total"] == sum(n.outcome.status == "build_error" for n in run.nodes.values())
    assert window("q=streaming")["total"] > 0
    assert window("offset=-1&limit=x")["rows"]


def test_a_node_page_has_everything_recorded(served):
    run = fold(sample_events(nodes=40))
    text = "".join(Page(served.get(f"{RUN}/nodes/{run.best_id}").text).text)
    for part in ("What the referee found", "Measured again after the search", "What it changed",
                 "What the tools then said", "Guidance it received", "What it is made of",
                 "recorded no prompt", "What the search remembers", "Lineage",
                 "memory poisoned"):  # fmt: skip
        assert part in text
    source = served.get(f"{RUN}/nodes/{run.best_id}/source.py")
    assert source.text == run.source(run.best_id)
    assert source.headers["content-type"].startswith("text/plain")


def test_figures_are_files(served):
    svg = served.get(f"{RUN}/figures/roofline.svg")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert "var(--" not in svg.text
    assert "<a " not in svg.text
    assert served.get(f"{RUN}/figures/timing.png?node=n0001").text[1:4] == "PNG"


def test_two_attempts_are_compared(served):
    best = fold(sample_events(nodes=40)).best_id
    text = served.get(f"/compare?first={SAMPLE}:n0001&second={SAMPLE}:{best}").text
    assert "The second is" in text
    assert f'href="/runs/{SAMPLE}/nodes/{best}"' in text
    lost = served.get(f"/compare?first={SAMPLE}:n7777&second={SAMPLE}")
    assert lost.status == 404
    assert "n7777" in lost.text


def test_filters_narrow_the_list(stored):
    runs = list_runs(stored)
    assert len(chosen(runs, filters_of({}))) == 3
    assert [r.folder.name for r in chosen(runs, filters_of({"q": "0115 rms"}))] == [SAMPLE]
    assert [r.state for r in chosen(runs, filters_of({"state": "damaged"}))] == ["damaged"]
    assert chosen(runs, filters_of({"sort": "fastest"}))[-1].best_speedup is None
    assert filters_of({"sort": "'; drop"}).sort == "newest"


def test_prompts_and_replies_are_on_the_page_of_their_attempt(tmp_path):
    usage = Usage(role="coder", model="some-model", input_tokens=1200, output_tokens=300,
                  cost_usd=None, requests=1)  # fmt: skip
    call = ToolCall(id="1", name="search_code", arguments={"query": "<b>swizzle</b>"})
    told = Exchange(
        ask_id=3, role="coder", system="Write kernels.", usage=usage,
        messages=(Message(author="user", text="Make it faster. " + HOSTILE_TEXT),),
        reply=Message(author="assistant", text="class ModelNew: ...", calls=(call,)),
    )  # fmt: skip
    broken = replace(told, reply=None, error="the connection broke", partial="class Mod")
    started, *rest = sample_events(nodes=4)
    store_run(tmp_path / SAMPLE, [started, Exchanged(exchange=broken), Exchanged(exchange=told),
                                  *rest])  # fmt: skip
    with serving(tmp_path) as server:
        page = Page(server.get(f"{RUN}/nodes/n0003").text)
        other = server.get(f"{RUN}/nodes/n0004").text
    text = "".join(page.text)
    for part in ("Write kernels.", "Make it faster.", "class ModelNew: ...", "search_code",
                 "1,200 tokens in", "price not known", "the connection broke", "class Mod",
                 "<b>swizzle</b>"):  # fmt: skip
        assert part in text
    assert not {"b", "img"} & {tag for tag, _ in page.elements}
    assert not set(text) & set("\x1b\u202e")
    assert "recorded no prompt" in other


def test_events_tell_of_changes_and_of_the_end(tmp_path):
    *before, last = sample_events(nodes=6, stopped=False)
    folder = store_run(tmp_path / SAMPLE, before)
    with serving(tmp_path) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"{RUN}/events")
        stream = connection.getresponse()
        assert stream.getheader("content-type").startswith("text/event-stream")
        assert _event(stream) == ("change", {"seq": len(before), "state": "unfinished"})
        with RunStore.open(folder, writable=True) as store:
            store.append(last)
        kind, data = _event(stream)
        assert (kind, data["seq"]) == ("change", len(before) + 1)
        while data["state"] == "running":
            kind, data = _event(stream)
        shutil.rmtree(folder)
        assert _event(stream)[0] == "gone"
        assert stream.read() == b""
        connection.close()
        assert server.get(RUN).status == 404


def _event(stream) -> tuple[str, dict]:
    lines = []
    while line := stream.readline().decode().rstrip("\n"):
        lines.append(line)
    found = dict(line.split(": ", 1) for line in lines)
    return found["event"], json.loads(found["data"])


def test_a_port_in_use_is_the_users_to_mend(served, stored):
    from kernelpro.api import serve

    with pytest.raises(UserError, match="--port"):
        serve(port=served.port, runs_root=stored)
    with pytest.raises(UserError, match="no folder of runs"):
        serve(runs_root=stored / "missing")


def test_the_command_serves_until_interrupted(tmp_path):
    store_run(tmp_path / SAMPLE, sample_events(nodes=4))
    command = [sys.executable, "-m", "kernelpro", "serve", "--port", "0", "--runs", tmp_path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as going:  # fmt: skip
        try:
            said = going.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/ ", said)[1])
            assert Served(tmp_path, port).get(RUN).status == 200
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"{RUN}/events")
            assert _event(connection.getresponse())[0] == "change"
            going.send_signal(signal.SIGINT)
            assert going.wait(60) == 0
            assert going.stderr.read() == ""
        finally:
            going.kill()
