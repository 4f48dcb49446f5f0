"""The HTML report: whole, inert, self-contained, small, and reachable by keyboard."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from kernelpro.report.html import MAX_BYTES, html_report
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.labels import LABELS
from kernelpro.testing.html_page import Page
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold

ACTIVE = {"script", "iframe", "object", "embed", "form", "link", "base", "img", "video", "audio"}


@pytest.fixture(scope="module")
def text():
    return html_report(fold(sample_events()))


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_it_shows_the_result_and_every_attempt(page):
    run = fold(sample_events())
    shown = "".join(page.text)
    assert f"{run.speedup(run.best_id):.2f}" in shown
    assert set(run.nodes) <= set(page.ids())
    for heading in (
        "Is it real?", "How it got there", "The search", "How close to the limit", "The code",
        "What the tools say now", "Every attempt", "Repeat it",
    ):  # fmt: skip
        assert heading in shown


def test_every_link_leads_somewhere_on_the_page(page):
    ids = page.ids()
    assert len(ids) == len(set(ids))
    targets = {a["href"] for a in page.all("a")}
    assert targets
    assert {t for t in targets if t.removeprefix("#") not in ids} == set()


def test_it_loads_nothing(page):
    attributes = {name for _, a in page.elements for name in a}
    assert not attributes & {"src", "srcset", "style", "action", "background", "xlink:href"}
    assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import", "".join(page.styles))
    assert [tag for tag, _ in page.elements if tag in ACTIVE] == ["script"]


def test_the_policy_allows_its_own_style_and_script_only(page):
    policy = next(a["content"] for a in page.all("meta")
                  if a.get("http-equiv") == "Content-Security-Policy")  # fmt: skip
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind, inline in (("style-src", page.styles), ("script-src", page.scripts)):
        digest = hashlib.sha256("".join(inline).encode()).digest()
        assert f"{kind} 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_candidate_text_is_inert():
    plain, hostile = (Page(html_report(fold(sample_events(hostile=h)))) for h in (False, True))
    assert [t for t, _ in plain.elements if t in ACTIVE] == [
        t for t, _ in hostile.elements if t in ACTIVE
    ]
    assert plain.scripts == hostile.scripts
    shown = "".join(hostile.text)
    assert "<script>alert(1)</script>" in shown
    assert not set(shown) & set("\x1b\u202e\u202c\x07")


def test_two_hundred_attempts_stay_small():
    text = html_report(fold(sample_events(nodes=200)))
    assert len(text.encode()) <= MAX_BYTES


def test_details_are_shortened_before_the_file_grows():
    events = []
    for event in sample_events(nodes=200):
        if isinstance(event, NodeFinished) and event.guidance:
            event = replace(event, guidance=replace(event.guidance, text="advice " * 4000))
        events.append(event)
    text = html_report(fold(events))
    assert len(text.encode()) <= MAX_BYTES
    assert "characters cut" in text


def test_charts_have_text_alternatives(page):
    images = [a for tag, a in page.elements if tag == "svg" and a.get("role") in {"img", "group"}]
    assert len(images) >= 6
    assert all(a.get("aria-label") for a in images)
    tree = [a for a in page.all("a") if "pill" in (a.get("class") or "")]
    assert all(a.get("aria-label") for a in tree)


def test_a_flagged_task_is_said_to_be_one():
    started, *rest = sample_events()
    page = Page(html_report(fold([replace(started, labels=("constant", "new_label")), *rest])))
    assert f"{LABELS['constant']}; new label" in "".join(page.text)


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_a_run_that_barely_began_has_a_report(nodes):
    page = Page(html_report(fold(sample_events(nodes=nodes, stopped=False))))
    assert "It is still going on" in "".join(page.text) or "has not ended" in "".join(page.text)


def test_failures_alone_make_an_honest_headline():
    failed = next(e for e in sample_events() if isinstance(e, NodeFinished) and not e.outcome.ok)
    first = sample_events()[0]
    candidate = replace(failed.candidate, id="n0001", parent_id=None)
    page = Page(html_report(fold([first, replace(failed, candidate=candidate)])))
    assert "No attempt was accepted." in "".join(page.text)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
def test_a_browser_runs_our_script_and_no_other(tmp_path):
    file = tmp_path / "report.html"
    file.write_text(html_report(fold(sample_events(hostile=True))))
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'profile'}", f"file://{file}#n0008"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert re.search(r'<html lang="en" class="js[^"]*reading', done.stdout)
    assert re.search(r'id="n0008" class="attempt open"', done.stdout)
    assert "Refused to" not in done.stderr
