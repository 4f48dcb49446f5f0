"""Figures as files: they stand alone, in both schemes, and say why they cannot be drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from kernelpro.errors import UserError
from kernelpro.report.figures import FIGURES, figure, png
from kernelpro.report.suite import suite_html, suite_json, suite_markdown
from kernelpro.schema.codec import dumps
from kernelpro.testing.html_page import Page
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold
from kernelpro.views.suite_view import suite_view

DRAWN = sorted(FIGURES.keys() - {"energy", "mix"})


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("dark", [False, True])
def test_a_figure_needs_no_page(name, dark):
    text = figure(fold(sample_events(hostile=True)), name, dark=dark)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in text
    assert not re.search(r"<(a|script|image|foreignObject)\b|href=|url\(", text)
    assert ("#131414" in text) == dark


def test_a_png_is_twice_as_large():
    pytest.importorskip("resvg_py")
    svg = figure(fold(sample_events(nodes=10)), "rounds")
    width = float(ElementTree.fromstring(svg).get("width"))
    data = png(svg)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == pytest.approx(2 * width, abs=2)


def test_what_cannot_be_drawn_says_why():
    run = fold(sample_events(nodes=10))
    for name, reason in (("energy", "measured"), ("mix", "profiled"), ("nothing", "Known:")):
        with pytest.raises(UserError, match=reason):
            figure(run, name)
    failed = next(n for n, e in run.nodes.items() if not e.outcome.ok)
    with pytest.raises(UserError, match="not timed"):
        figure(run, "histogram", node_id=failed)


def test_a_suite_report_is_inert_and_links_to_every_run():
    runs = [("one", fold(sample_events(hostile=True))), ("two", fold(sample_events(seed=5)))]
    view = suite_view(runs)
    page = Page(suite_html(view))
    assert {a["href"] for a in page.all("a")} == {"one/report.html", "two/report.html"}
    assert not {"script", "img", "iframe"} & {tag for tag, _ in page.elements}
    text = "".join(page.text)
    for part in ("Geometric mean", "Median and quartiles", "Share slower than 1.0×"):
        assert part.lower() in text.lower()
    assert "[rms\\_norm](one/report.html)" in suite_markdown(view)
    assert dumps(suite_json(view))
