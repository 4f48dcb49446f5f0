"""The live view: right at 80 columns, inert, and plain lines where there is no terminal."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from kernelpro import stages
from kernelpro.dashboard.drawing import clock, closing, tree_lines
from kernelpro.dashboard.terminal import (
    LiveView,
    PlainView,
    QuietView,
    progress_line,
    seconds_left,
    terminal_view,
)
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold


def console(*, terminal: bool, width: int = 80, height: int = 24) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=height,
                   highlight=False, markup=False, _environ={"TERM": "xterm"})  # fmt: skip


def printed(target: Console) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", target.file.getvalue())


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("hostile", [False, True])
def test_the_live_view_fits_the_terminal(width, hostile):
    target = console(terminal=True, width=width)
    view = LiveView(target)
    for event in sample_events(hostile=hostile):
        view(event)
    view.stage("timing", "n0041 \x1b[2J")
    target.print(view)
    lines = printed(target).splitlines()
    assert len(lines) <= 24
    assert max(cell_len(line) for line in lines) <= width
    assert "\x1b" not in printed(target)
    assert any("best 5.95x" in line for line in lines)


def test_the_view_can_be_drawn_after_every_event():
    target = console(terminal=True)
    view = LiveView(target)
    target.print(view)
    for event in sample_events(nodes=10):
        view(event)
        target.print(view)
    assert "5/10 evaluations" in printed(target)


def test_plain_lines_name_every_attempt():
    target = console(terminal=False)
    view = PlainView(target)
    events = sample_events(nodes=12, hostile=True)
    for event in events:
        view(event)
    text = target.file.getvalue()
    assert "\x1b" not in text
    lines = text.splitlines()
    assert sum(line.startswith("[") for line in lines) == 12
    assert lines[0].startswith("run 20260115-093000-rms_norm")


@pytest.mark.parametrize(
    ("terminal", "plain", "quiet", "kind"),
    [(True, False, False, LiveView), (True, True, False, PlainView),
     (False, False, False, PlainView), (True, False, True, QuietView)],
)  # fmt: skip
def test_the_richest_view_that_fits(terminal, plain, quiet, kind):
    assert type(terminal_view(console(terminal=terminal), plain=plain, quiet=quiet)) is kind


def test_time_left_is_the_nearer_limit():
    run = fold(sample_events(nodes=40)[:21])
    pace = sum(n.seconds for n in run.nodes.values() if not n.duplicate_of) / run.charged
    assert seconds_left(run, 0.0) == pytest.approx((40 - run.charged) * pace)
    assert "left" in progress_line(run, 65.0)
    assert "1:05 elapsed" in progress_line(run, 65.0)


def test_clock():
    assert [clock(s) for s in (0, 65, 3725)] == ["0:00", "1:05", "1:02:05"]


def test_the_closing_names_winner_files_and_how_to_go_on(tmp_path):
    (tmp_path / "best.py").write_text("x")
    (tmp_path / "report.html").write_text("x")
    target = console(terminal=False, width=100)
    run = fold(sample_events())
    target.print(closing(run, tmp_path))
    text = printed(target)
    assert "5.95x as fast as eager PyTorch" in text
    assert "--resume 20260115-093000-rms_norm" in text
    folded = text.replace("\n", "")
    assert str(tmp_path / "best.py") in folded
    assert str(tmp_path / "report.html") in folded


def test_a_deep_tree_stays_within_its_width():
    run = fold(sample_events(nodes=60))
    for line in tree_lines(run, limit=60, width=50):
        assert cell_len(line.plain) <= 50


def test_a_resize_counts_from_the_next_drawing():
    target = console(terminal=True, width=100)
    view = LiveView(target)
    for event in sample_events():
        view(event)
    for width in (100, 44, 72):
        target.file.truncate(0)
        target.file.seek(0)
        target.width = width
        target.print(view)
        assert max(cell_len(line) for line in printed(target).splitlines()) <= width


def test_the_live_view_says_which_step_an_attempt_is_in():
    target = console(terminal=True)
    view = LiveView(target)
    with view:
        for event in sample_events(nodes=6)[:10]:
            view(event)
        stages.entering("verify")
        target.print(view)
        stages.entering("\x1b[2Jstrange_step")
        target.print(view)
    stages.entering("time")
    text = printed(target)
    assert "verifying" in text
    assert "strange step" in text
    assert "timing" not in text
    assert not stages.LOG.handlers


IN_TMUX = """
import time
from kernelpro import stages
from kernelpro.cli.output import stderr_console
from kernelpro.dashboard.terminal import LiveView
from kernelpro.testing.sample_run import sample_events
with LiveView(stderr_console()) as view:
    for event in sample_events(hostile=True)[:60]:
        view(event)
    stages.entering("time")
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_the_live_view_in_tmux_survives_a_resize(tmp_path):
    script = tmp_path / "live.py"
    script.write_text(IN_TMUX)
    server = ["tmux", "-L", f"kernelpro-{os.getpid()}"]

    def tmux(*words: str) -> str:
        return subprocess.run([*server, *words], capture_output=True, text=True, check=True).stdout

    def seen(*parts: str) -> list[str]:
        for _ in range(300):
            lines = tmux("capture-pane", "-p").splitlines()
            if all(part in "\n".join(lines) for part in parts):
                return lines
            time.sleep(0.1)
        raise AssertionError("\n".join(lines))

    tmux("new-session", "-d", "-x", "80", "-y", "24", sys.executable, str(script))
    try:
        assert len(seen("rms_norm", "timing", "└─")) <= 24
        tmux("resize-window", "-x", "52", "-y", "14")
        lines = seen("rms_norm", "timing")
        assert max(map(cell_len, lines)) <= 52
        assert sum("rms_norm on" in line for line in lines) == 1
    finally:
        tmux("kill-server")
