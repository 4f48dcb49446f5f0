"""The librarian's tools: search and read one source tree, nothing else."""

from __future__ import annotations

from typing import Any

from kernelpro.codesearch.index import CodeIndex
from kernelpro.errors import UserError
from kernelpro.llm.base import Tool

HITS = 5


def library_tools(index: CodeIndex) -> tuple[Tool, ...]:
    """``search_code`` and ``read_code`` over ``index``; a wrong argument is answered in words."""

    def search(arguments: dict[str, Any]) -> str:
        try:
            hits = index.search(str(arguments.get("query", "")), "any", HITS)
        except UserError as error:
            return str(error)
        found = [f"{h.path}:{h.first_line}-{h.last_line} ({h.kind})\n{h.text}" for h in hits]
        return "\n\n".join(found) or "No file matches."

    def read(arguments: dict[str, Any]) -> str:
        lines = arguments.get("lines")
        try:
            found = index.read(str(arguments.get("path", "")), str(lines) if lines else None)
        except UserError as error:
            return str(error)
        place = f"{found.path}:{found.first_line}-{found.last_line} of {found.lines_in_file}"
        return f"{place}\n{found.text}"

    return (
        Tool(name="search_code", run=search,
             description="Files of the source tree that answer a question, with their best lines.",
             schema=_object(query="words or identifiers to look for")),
        Tool(name="read_code", run=read,
             description="Lines of one file that search_code named.",
             schema=_object(path="the file's path", lines="a range such as 120-180")),
    )  # fmt: skip


def _object(**described: str) -> dict[str, Any]:
    first = next(iter(described))
    return {
        "type": "object",
        "properties": {n: {"type": "string", "description": d} for n, d in described.items()},
        "required": [first],
        "additionalProperties": False,
    }
