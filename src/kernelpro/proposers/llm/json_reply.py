"""Reads a JSON object out of a reply, wherever the model put it."""

from __future__ import annotations

import json
import re
from typing import Any

from kernelpro.proposers.reply import Unusable

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.S | re.I)


def json_object(text: str) -> dict[str, Any]:
    """The first JSON object in ``text``, fenced or bare; :class:`Unusable` says what is there."""
    for candidate in [*(m[1] for m in _FENCED.finditer(text)), text]:
        start = candidate.find("{")
        while start >= 0:
            try:
                found, _ = json.JSONDecoder().raw_decode(candidate[start:])
            except ValueError:
                start = candidate.find("{", start + 1)
                continue
            if isinstance(found, dict):
                return found
            break
    began = " ".join(text.split())[:60]
    raise Unusable(f"it holds no JSON object (it begins: {began!r})")


def strings(data: dict[str, Any], name: str, most: int) -> list[str]:
    """The list of texts under ``name``, at most ``most``; :class:`Unusable` if it is not one."""
    found = data.get(name, [])
    if isinstance(found, str):
        found = [found]
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise Unusable(f"{name!r} must be a list of strings")
    return [" ".join(item.split()) for item in found if item.strip()][:most]
