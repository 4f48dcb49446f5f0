"""Reads the resources ptxas reports with ``-v``. Standard library only."""

from __future__ import annotations

import re
from typing import Any

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


def kernel_resources(log: str) -> list[dict[str, Any]]:
    """Fields of ``schema.build.KernelResources`` of each entry function; absent if not reported."""
    found: dict[str, dict[str, Any]] = {}
    entry = function = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = function = match[1]
            found[entry] = {"kernel": entry}
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif (match := _FRAME.search(line)) and function in found:
            stack, stores, loads = (int(text) for text in match.groups())
            found[function] |= {
                "stack_bytes": stack, "spill_store_bytes": stores, "spill_load_bytes": loads,
            }  # fmt: skip
        elif (match := _USED.search(line)) and entry in found:
            shared = _SHARED.search(line)
            found[entry]["registers"] = int(match[1])
            found[entry]["static_shared_bytes"] = int(shared[1]) if shared else 0
    return list(found.values())
