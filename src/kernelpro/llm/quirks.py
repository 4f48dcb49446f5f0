"""What a model will not take: parameters it rejected and limits it named, remembered in a file.

A parameter is dropped for the model that rejected it, never for another one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

from kernelpro.llm.base import ChatRequest, estimate_tokens

SHRINK = 0.6
"""Share of a prompt or reply limit to try next, after it was too large (chosen)."""
_SIGNS: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "schema": ("response_format", "json_schema", "output_config", "structured output", "schema",
               "grammar"),
    "tools": ("tool", "function call"),
}  # fmt: skip
_REPLY_LIMIT = ("max_tokens", "max_completion_tokens", "maximum output", "maxoutputtokens")


@dataclass(frozen=True, slots=True)
class Quirk:
    """What is known of one model."""

    dropped: tuple[str, ...] = ()
    """Parameters not to send: ``temperature``, ``schema``, ``tools``."""
    max_tokens: int | None = None
    """Longest reply that may be asked for."""
    prompt_tokens: int | None = None
    """Longest prompt that is not known to be too long, by our own estimate."""


@dataclass(slots=True)
class Quirks:
    """Quirks by model. ``path`` None keeps them for this process only."""

    path: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[str, Quirk] | None = None

    def of(self, model: str) -> Quirk:
        """What is known of ``model``."""
        with self._lock:
            return self._all().get(model, Quirk())

    def learn(self, model: str, request: ChatRequest, message: str) -> bool:
        """Remember what the rejection ``message`` complains of; False if it names nothing known."""
        lower, known = message.lower(), self.of(model)
        for parameter, signs in _SIGNS.items():
            sent = getattr(request, parameter)
            if sent not in (None, ()) and any(sign in lower for sign in signs):
                self._set(model, dataclasses.replace(known, dropped=(*known.dropped, parameter)))
                return True
        if any(sign in lower for sign in _REPLY_LIMIT):
            limit = _named_limit(lower, request.max_tokens) or int(request.max_tokens * SHRINK)
            self._set(model, dataclasses.replace(known, max_tokens=limit))
            return limit >= 1
        return False

    def too_long(self, model: str, request: ChatRequest) -> bool:
        """Remember that ``request`` did not fit the context window, which prompt and reply share.

        True if it may fit now, because the room kept for the reply was the larger part of it.
        """
        prompt, known = estimate_tokens(request.text()), self.of(model)
        if request.max_tokens > prompt:
            limit = int(request.max_tokens * SHRINK)
            self._set(model, dataclasses.replace(known, max_tokens=limit))
            return True
        self._set(model, dataclasses.replace(known, prompt_tokens=int(prompt * SHRINK)))
        return False

    def adapt(self, model: str, request: ChatRequest) -> ChatRequest:
        """``request`` without what the model is known to reject."""
        known = self.of(model)
        limit = min(request.max_tokens, known.max_tokens or request.max_tokens)
        adapted = dataclasses.replace(request, max_tokens=limit)
        if "temperature" in known.dropped:
            adapted = dataclasses.replace(adapted, temperature=None)
        if "schema" in known.dropped:
            adapted = dataclasses.replace(adapted, schema=None)
        if "tools" in known.dropped:
            adapted = dataclasses.replace(adapted, tools=())
        return adapted

    def _all(self) -> dict[str, Quirk]:
        if self._known is None:
            self._known = {}
            # A damaged or missing file costs one more rejected call, nothing else.
            with contextlib.suppress(OSError, ValueError, TypeError):
                if self.path is not None:
                    data = json.loads(self.path.read_text(encoding="utf-8"))
                    self._known = {m: Quirk(**{**q, "dropped": tuple(q["dropped"])})
                                   for m, q in data.items()}  # fmt: skip
        return self._known

    def _set(self, model: str, quirk: Quirk) -> None:
        with self._lock:
            known = self._all()
            known[model] = quirk
            if self.path is None:
                return
            text = json.dumps({m: dataclasses.asdict(q) for m, q in known.items()}, indent=1)
            # Not being able to remember is no reason to fail a run.
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                part = self.path.with_suffix(f".{os.getpid()}")
                part.write_text(text, encoding="utf-8")
                part.replace(self.path)


def _named_limit(message: str, sent: int) -> int | None:
    """The largest number below what was sent: services say the limit beside the value."""
    below = [int(n) for n in re.findall(r"\d{3,7}", message) if int(n) < sent]
    return max(below, default=None)
