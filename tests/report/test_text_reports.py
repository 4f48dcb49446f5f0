"""Markdown and JSON: the same facts, and candidate text that stays text."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.report.environment import commands_for
from kernelpro.report.json import json_report, plain_json
from kernelpro.report.markdown import cell, fenced, markdown_report
from kernelpro.schema.codec import dumps
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold
from kernelpro.views.run_summary import run_summary


def test_json_is_strict_and_complete():
    run = fold(sample_events())
    data = json.loads(dumps(json_report(run)))
    assert data["summary"]["speedup"] == run.speedup(run.best_id)
    assert [a["id"] for a in data["attempts"]] == list(run.nodes)
    assert data["best"]["source"] == run.source(run.best_id)
    assert data["path"][-1] == run.best_id


def test_named_tuples_become_objects_at_any_depth():
    summary = run_summary(fold(sample_events()))
    data = plain_json({"a": [summary]})
    assert data["a"][0]["best_id"] == summary.best_id


def test_markdown_names_the_result():
    run = fold(sample_events())
    text = markdown_report(run)
    assert f"**{run.speedup(run.best_id):.2f}× as fast as eager PyTorch**" in text
    assert run.source(run.best_id).rstrip() in text


def test_markdown_keeps_candidate_text_out_of_markup():
    text = markdown_report(fold(sample_events(hostile=True)))
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)
    assert not re.search(r"(?<!\\)<", outside)
    assert not set(text) & set("\x1b\u202e\x07")


@given(st.text(max_size=80))
def test_cells_have_no_live_markup(text):
    shown = cell(text)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)[|<`\[]", shown.replace("\\\\", ""))


@given(st.text(alphabet="`a\n", max_size=40))
def test_fences_cannot_be_closed_from_inside(text):
    lines = fenced(text, "python").splitlines()
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert not any(line.strip().startswith(fence) for line in lines[1:-1])


def test_commands_repeat_what_was_run():
    run = fold(sample_events())
    first, *rest = commands_for(run.started, run_summary(run))
    assert first == (
        "kernelpro optimize examples/rms_norm.py --device cpu --seed 0 --evaluations 40"
    )
    assert rest[-1].startswith("kernelpro runs verify ")
