"""A model that tries again: waits out rate limits and outages, drops what the model rejects.

Only what costs nothing is tried again here. A reply that broke off was paid for: whether to pay
for another one is the caller's decision.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from kernelpro.llm.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Rejected,
    Temporary,
    TooLong,
    Watch,
)
from kernelpro.llm.quirks import Quirks


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on trying (chosen: outages of minutes pass, a dead service does not hold a
    run for hours)."""

    attempts: int = 8
    first_wait_s: float = 2.0
    longest_wait_s: float = 120.0
    growth: float = 2.0

    def wait_s(self, failures: int, retry_after_s: float | None, draw: float) -> float:
        """Seconds before the next attempt: what the service asked for, else exponential with full
        jitter above half (``draw`` in 0..1), so that parallel callers spread out."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), self.longest_wait_s) + draw
        longest = min(self.first_wait_s * self.growth ** (failures - 1), self.longest_wait_s)
        return longest * (0.5 + 0.5 * draw)


class ResilientModel:
    """Implements ``llm.base.ChatModel`` around another one."""

    def __init__(
        self, model: ChatModel, *, quirks: Quirks, patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._model = model
        self._quirks = quirks
        self._patience = patience or Patience()
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The wrapped model's."""
        return self._model.name

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """The wrapped model's price."""
        return self._model.cost_usd(input_tokens, output_tokens)

    def prompt_limit(self) -> int | None:
        """Longest prompt, by our estimate, that the model has not refused; None = not known."""
        return self._quirks.of(self.name).prompt_tokens

    def chat(self, request: ChatRequest, watch: Watch | None = None) -> ChatReply:
        """One reply, however many attempts it takes within the patience."""
        failures = 0
        while True:
            adapted = self._quirks.adapt(self.name, request)
            try:
                reply = self._model.chat(adapted, watch)
            except TooLong:
                if not self._quirks.too_long(self.name, adapted):
                    raise
            except Rejected as error:
                if not self._quirks.learn(self.name, adapted, str(error)):
                    raise
            except Temporary as error:
                failures += 1
                if error.tokens.requests:
                    raise
                if failures >= self._patience.attempts:
                    raise Temporary(f"{error} ({failures} attempts)") from error
                self._pause(failures, error.retry_after_s, watch)
            else:
                return reply

    def _pause(self, failures: int, retry_after_s: float | None, watch: Watch | None) -> None:
        left = self._patience.wait_s(failures, retry_after_s, random.random())
        while left > 0:
            if watch is not None:
                watch("")
            self._sleep(min(left, 0.5))
            left -= 0.5
