"""What the pages for models and agents name exists, and what exists is named there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from kernelpro.llm.providers import PROVIDERS

ROOT = Path(__file__).parent.parent
SKILL = ROOT / "skills" / "kernelpro" / "SKILL.md"
LLM, AGENTS = ROOT / "docs" / "llm.md", ROOT / "docs" / "agents.md"


def test_every_provider_is_documented_with_its_key():
    text = LLM.read_text("utf-8")
    for name, provider in PROVIDERS.items():
        assert f"`{name}:" in text, name
        if provider.keys and name in ("anthropic", "openai", "google", "openrouter"):
            assert provider.keys[0] in text


@pytest.mark.parametrize("page", [LLM, AGENTS], ids=lambda p: p.name)
def test_options_named_on_the_pages_exist(page):
    help_text = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    named = set(re.findall(r"`?(--[a-z][a-z-]+)", page.read_text("utf-8"))) - {"--add-mcp"}
    assert named
    assert [option for option in sorted(named) if option not in help_text] == []


def test_the_tool_table_is_the_server():
    pytest.importorskip("mcp", reason="needs the extra 'mcp'")
    from kernelpro.mcp.server import make_server

    rows = re.findall(r"^\| (`[a-z_]+[^|]*) \|", AGENTS.read_text("utf-8"), flags=re.M)
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)", row)}
    tools = {tool.name for tool in asyncio.run(make_server().list_tools())}
    assert tools <= named
    skill = SKILL.read_text("utf-8")
    assert {"start_run", "ask", "tell", "report"} <= set(re.findall(r"`([a-z_]+)", skill))


def test_the_skill_has_the_head_that_agents_read():
    head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", SKILL.read_text("utf-8"))
    assert head[1] == SKILL.parent.name
    assert len(head[2]) < 1024
