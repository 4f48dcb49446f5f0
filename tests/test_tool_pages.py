"""docs/tools says what the tools do now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kernelpro.diagnosis.tools import TOOLS

ROOT = Path(__file__).parent.parent


def test_every_page_is_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate_tool_pages.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_tool_has_a_page_with_thresholds_evidence_and_an_example():
    for name in TOOLS.names():
        text = (ROOT / "docs" / "tools" / f"{name}.md").read_text("utf-8")
        for part in ("## When it speaks", "## Evidence", "## Example", "What to do:"):
            assert part in text, f"{name}: {part}"
        assert f"{name}.md" in (ROOT / "docs" / "tools" / "README.md").read_text("utf-8")
