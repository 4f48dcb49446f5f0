"""The worked example of a plug-in tool: as documented, registered by an entry point, and run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from diagnosis import samples
from kernelpro import registry
from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.tools import TOOLS
from kernelpro.testing.tool_suite import check_tool

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "examples" / "tool_plugin.py"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example as an installed package with its entry point."""
    package = tmp_path / "my_package_of_tools"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text(SOURCE.read_text())
    info = tmp_path / "my_package_of_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my_package_of_tools\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[kernelpro]\ntool.instruction_cache = my_package_of_tools.tools:instruction_cache\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._entry_points.cache_clear()
    yield
    monkeypatch.undo()
    registry._entry_points.cache_clear()
    TOOLS.remove("instruction_cache")
    sys.modules.pop("my_package_of_tools.tools", None)


def test_an_entry_point_is_all_it_takes(installed):
    assert "instruction_cache" in TOOLS.names()
    check_tool(TOOLS.load("instruction_cache"))
    profile = samples.cuda_profile(
        {m.stall("no_instruction"): 4.0, m.stall("wait"): 4.0, m.LATENCY_PER_ISSUE: 10.0},
        duration_us=100.0,
    )
    (finding,) = [f for f in diagnose(profile).ranked() if f.tool == "instruction_cache"]
    assert "40%" in finding.summary and finding.expected_gain[1] == pytest.approx(1 / 0.6, rel=1e-3)


def test_the_page_shows_the_example_as_it_is():
    spec = importlib.util.spec_from_file_location("tool_plugin", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.instruction_cache.id == "instruction_cache"
    text = SOURCE.read_text()
    shown = text[text.index("SHARE = ") :].rstrip()
    assert shown in (ROOT / "docs" / "diagnosis.md").read_text()
