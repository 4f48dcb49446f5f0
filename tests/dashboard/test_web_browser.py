"""The dashboard in Debian's Chromium: live, linked, quick with 20,000 nodes, inert, accessible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dashboard.conftest import PHONE, WIDE
from dashboard.web import HOSTILE, SAMPLE, serving, store_large_run, store_run
from kernelpro.report.html import html_report
from kernelpro.report.suite import suite_html
from kernelpro.store.sqlite import DATABASE, RunStore
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold
from kernelpro.views.suite_view import suite_view

pytestmark = pytest.mark.slow
both_widths = pytest.mark.parametrize("watched", [WIDE, PHONE], ids=["desktop", "phone"],
                                      indirect=True)  # fmt: skip
LARGE = "20260115-093000-large"
INTERACTIVE_S = 2.0
READY = "main[data-renewed]"
ADDRESSES = {
    "list": "/", "suite": "/suite", "tools": "/tools", "machines": "/machines",
    "run": f"/runs/{SAMPLE}", "open": f"/runs/{SAMPLE}#n0005",
    "node": f"/runs/{SAMPLE}/nodes/n0005", "failed": f"/runs/{SAMPLE}/nodes/n0002",
    "compare": f"/compare?first={SAMPLE}:n0001&second={SAMPLE}:n0005",
    "hostile": f"/runs/{HOSTILE}#n0008", "hostile-node": f"/runs/{HOSTILE}/nodes/n0008",
}  # fmt: skip


def ready(page) -> None:
    """Everything the page fetches is there."""
    if page.locator("main.run").count():
        page.wait_for_selector(READY)
    if "#n" in page.url:
        page.wait_for_selector("#panel.open")


def test_a_click_through_every_view(served, watched):
    page = watched.open(served.url)
    page.select_option("select[name=problem]", "rms_norm")
    page.wait_for_url("**problem=rms_norm**")
    page.click(f'a[href="/runs/{SAMPLE}"]')
    ready(page)
    for part in (
        "headline",
        "meters",
        "progress",
        "roofline",
        "path",
        "tools",
        "energy",
        "cost",
        "use",
    ):
        assert len(page.inner_text(f"[data-part={part}]")) > 10
    page.click("#tree-best")
    page.wait_for_selector("#panel.open")
    best = fold(sample_events()).best_id
    assert page.url.endswith(f"#{best}")
    assert best in page.inner_text("#panel")
    for colour in ("status", "order", "speedup"):
        page.select_option("#tree-colour", colour)
    page.click("#panel a:text('Open page')")
    page.wait_for_url(f"**/nodes/{best}")
    assert page.inner_text("h1")
    page.click("a:text('Compare with parent')")
    page.wait_for_url("**/compare?**")
    assert page.locator("table.compare tbody tr").count() > 5
    page.click("a:text('All speed-ups')")
    page.wait_for_url("**/suite")
    page.click(f'table a[href="/runs/{SAMPLE}"]')
    ready(page)


def test_the_tree_answers_to_mouse_and_keyboard(served, watched):
    page = watched.open(f"{served.url}/runs/{SAMPLE}")
    ready(page)
    page.locator("#tree").click(position={"x": 3, "y": 3})
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    said = page.inner_text("#tree-said")
    node_id = re.match(r"n\d+", said)[0]
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel.open")
    assert node_id in page.inner_text("#panel")
    page.keyboard.press("Escape")
    page.wait_for_selector("#panel:not(.open)", state="attached")
    drawn = page.get_attribute("#tree", "data-drawn")
    for _ in range(6):
        page.keyboard.press("+")
    page.wait_for_function(f"() => document.getElementById('tree').dataset.drawn !== '{drawn}'")


def test_deep_links_open_what_they_name(served, watched):
    page = watched.open(f"{served.url}/runs/{SAMPLE}#n0005")
    page.wait_for_selector("#panel.open")
    assert "n0005" in page.inner_text("#panel")
    page.evaluate("location.hash = '#n0006'")
    page.wait_for_function("() => document.getElementById('panel').innerText.includes('n0006')")
    page.go_back()
    page.wait_for_function("() => document.getElementById('panel').innerText.includes('n0005')")
    other = watched.open(f"{served.url}/?state=damaged")
    assert other.locator("table.runs tbody tr").count() == 1


def test_two_tabs_follow_a_run_until_it_is_deleted(tmp_path, watched):
    events = sample_events(nodes=12)
    folder = store_run(tmp_path / SAMPLE, events[:13])
    with serving(tmp_path) as server:
        tabs = [watched.open(f"{server.url}/runs/{SAMPLE}") for _ in range(2)]
        listing = watched.open(server.url)
        for tab in tabs:
            tab.wait_for_selector("#tree[data-nodes='6']")
        with RunStore.open(folder, writable=True) as store:
            for event in events[13:]:
                store.append(event)
        for tab in tabs:
            tab.wait_for_selector("#tree[data-nodes='12']")
            tab.wait_for_selector("main[data-state='stopped']")
            tab.wait_for_function("() => document.querySelector('[data-part=meters]').innerText"
                                  ".includes('of 12')")  # fmt: skip
        shutil.rmtree(folder)
        for tab in tabs:
            tab.wait_for_selector("main[data-state='gone']")
            assert "deleted" in tab.inner_text("#live")
            assert tab.get_attribute("#tree", "data-nodes") == "12"
        listing.wait_for_function("() => !document.querySelector('table.runs')")


REAL_RUN = """
import sys, kernelpro
from kernelpro.schema.config import EvaluationConfig
short = EvaluationConfig(checks="fast", correctness_trials=1, timing_rounds=2, min_time_ms=5.0,
                         max_time_s=2.0, compile_baseline=False)
kernelpro.optimize(sys.argv[1], device="cpu", evaluations=3, evaluation=short,
                   runs_root=sys.argv[2])
"""


@pytest.mark.timeout(900)
def test_a_real_run_is_followed_while_it_goes_on(tmp_path, watched):
    problem = Path(__file__).parents[2] / "examples" / "rms_norm.py"
    runs = tmp_path / "runs"
    runs.mkdir()
    with (
        serving(runs) as server,
        subprocess.Popen([sys.executable, "-c", REAL_RUN, problem, runs], cwd=tmp_path,
                         stderr=subprocess.PIPE, text=True) as going,
    ):  # fmt: skip
        try:
            while not list(runs.glob(f"*/{DATABASE}")):
                assert going.poll() is None, going.stderr.read()
                time.sleep(0.2)
            page = watched.open(server.url)
            page.context.set_default_timeout(400_000)
            page.click("table.runs a")
            # A busy machine's page is renewed less often than attempts end: it may skip a number.
            page.wait_for_selector("#tree[data-nodes]:not([data-nodes='0'])")
            assert page.get_attribute("main", "data-state") == "running"
            first = page.get_attribute("#tree", "data-nodes")
            page.wait_for_selector(f"#tree[data-nodes]:not([data-nodes='{first}'])")
            page.wait_for_selector("main[data-state='stopped']")
            page.wait_for_selector("#tree[data-nodes='3']")
            page.wait_for_function("() => document.querySelector('.headline').innerText"
                                   ".match(/×|No attempt was accepted/)")  # fmt: skip
            assert going.wait(120) == 0
        finally:
            going.kill()


def test_a_page_goes_on_when_the_server_comes_back(tmp_path, watched):
    events = sample_events(nodes=12)
    folder = store_run(tmp_path / SAMPLE, events[:13])
    with serving(tmp_path) as server:
        page = watched.open(f"{server.url}/runs/{SAMPLE}")
        ready(page)
    page.wait_for_function("() => document.getElementById('live').innerText.includes('answer')")
    with RunStore.open(folder, writable=True) as store:
        for event in events[13:]:
            store.append(event)
    with serving(tmp_path, port=server.port):
        page.wait_for_selector("#tree[data-nodes='12']")
        page.wait_for_selector("main[data-state='stopped']")
        assert page.inner_text("#live") == ""


def test_twenty_thousand_nodes_stay_fluid(tmp_path, watched):
    store_large_run(tmp_path / LARGE, 20_000)
    with serving(tmp_path) as server:
        watched.open(server.url)  # what every later page has: a browser that is up
        page = watched.context.new_page()
        began = time.perf_counter()
        page.goto(f"{server.url}/runs/{LARGE}", wait_until="commit")
        page.wait_for_selector("#tree[data-nodes='20000'][data-drawn='20000']")
        page.click("#tree-best")
        took = time.perf_counter() - began
        # Two seconds are for a machine of its own; one that others use gets its share of them.
        assert took < INTERACTIVE_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)) * 1.5
        page.wait_for_selector("#panel.open")
        assert page.get_attribute("main", "data-renewed") is None, "a click waits for every part"
        ready(page)
        assert page.locator("#attempts .row").count() < 60
        page.evaluate("document.getElementById('attempts').scrollTop = 300000")
        page.wait_for_function("() => [...document.querySelectorAll('#attempts .row')]"
                               ".some(row => row.innerText.length > 8)")  # fmt: skip
        assert page.locator("svg circle").count() < 6000
        assert len(page.content()) < 2_000_000


@both_widths
def test_every_page_fits_and_is_accessible(served, watched):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = {}
    for name, address in ADDRESSES.items():
        page = watched.open(served.url + address)
        ready(page)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{name} is {over} pixels too wide"
        found[name] = serious(axe.run(page).response)
        page.close()
    assert {name: faults for name, faults in found.items() if faults} == {}


@both_widths
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_and_is_accessible(tmp_path, watched, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = watched.context.new_page()
    page.emulate_media(color_scheme=scheme)
    runs = [("one", fold(sample_events())), ("two", fold(sample_events(seed=5)))]
    for name, text in (
        ("report", html_report(runs[0][1])),
        ("suite", suite_html(suite_view(runs))),
    ):
        file = tmp_path / f"{name}.html"
        file.write_text(text)
        page.goto(file.as_uri())
        assert serious(axe.run(page).response) == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


def test_dark_colours_keep_their_contrast(served, watched):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = watched.context.new_page()
    page.emulate_media(color_scheme="dark")
    for name in ("list", "suite", "open", "node", "compare"):
        page.goto(served.url + ADDRESSES[name])
        ready(page)
        assert serious(axe.run(page).response) == [], name


def serious(response: dict) -> list[str]:
    """Violations that keep somebody out, with the element."""
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:160]}"
        for v in response["violations"]
        if v["impact"] in {"serious", "critical"}
    ]


def test_hostile_text_is_shown_and_does_nothing(served, stored, watched):
    run = fold(RunStore.open(stored / HOSTILE).events())
    page = watched.open(f"{served.url}/runs/{HOSTILE}")
    ready(page)
    for address in ("", *(f"/nodes/{n}" for n in run.nodes)):
        page.goto(f"{served.url}/runs/{HOSTILE}{address}")
        if not address:
            ready(page)
            page.fill("#list-search", "script")
            page.wait_for_function("() => document.querySelector('#attempts .row')"
                                   "?.innerText.includes('<script>alert(1)</script>')")  # fmt: skip
        text = page.inner_text("body")
        assert "<script>alert(1)</script>" in text
        assert not set(text) & set("\x1b\u202e\u202c\x07")
        assert page.evaluate("document.scripts.length") == 1
        assert page.locator("img").count() == 0


def test_a_report_of_hostile_text_does_nothing(tmp_path, watched):
    run = fold(sample_events(nodes=24, seed=5, hostile=True))
    file = tmp_path / "report.html"
    file.write_text(html_report(run))
    page = watched.open(file.as_uri())
    for node_id in run.nodes:
        page.evaluate("id => { location.hash = id; }", node_id)
        page.wait_for_selector(f"#{node_id}")
    text = page.evaluate("document.body.textContent")
    assert "<script>alert(1)</script>" in text
    assert not set(text) & set("\x1b\u202e\u202c\x07")
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator("img, iframe, object").count() == 0
