"""A model that says again what was recorded, for replays: no network, no key, no cost."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from kernelpro.errors import ProviderError
from kernelpro.llm.base import NO_TOKENS, ChatReply, ChatRequest, Watch
from kernelpro.schema.exchange import Exchange


class RecordedModel:
    """Implements ``llm.base.ChatModel`` for one role: its whole replies, in order."""

    def __init__(self, name: str, exchanges: Iterable[Exchange]) -> None:
        self.name = name
        self._left = deque(e for e in exchanges if e.reply is not None)
        self._lock = threading.Lock()

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Nothing: it was paid for when it was recorded."""
        return 0.0

    def chat(self, request: ChatRequest, watch: Watch | None = None) -> ChatReply:
        """The next reply, whatever is asked."""
        with self._lock:
            exchange = self._left.popleft() if self._left else None
        if exchange is None or exchange.reply is None:
            raise ProviderError(
                "The recording has no further reply here: it was made by another version, or with "
                "other settings"
            )
        if watch is not None:
            watch(exchange.reply.text)
        return ChatReply(message=exchange.reply, finish=exchange.finish, tokens=NO_TOKENS)
