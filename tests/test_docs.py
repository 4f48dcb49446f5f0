"""The documentation matches the program, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def test_generated_pages_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate_docs.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_local_links_lead_somewhere(page):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.fixture(scope="module")
def known():
    """What can be typed after ``kernelpro``."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from generate_docs import commands

    return {" ".join(words) for words in commands()}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_in_the_text_exist(page, known):
    blocks = re.findall(r"(?ms)^```(?:sh|text)\n(.*?)^```", page.read_text("utf-8"))
    text = "\n".join(blocks)
    for shown in re.findall(r"^(?:\$ )?kernelpro ((?:(?:runs|code) )?[a-z]+)\b", text, flags=re.M):
        assert shown in known, f"{page.name} shows 'kernelpro {shown}'"
