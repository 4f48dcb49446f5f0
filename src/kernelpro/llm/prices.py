"""What tokens cost, from genai-prices' lists or as the user says."""

from __future__ import annotations

from collections.abc import Callable

from kernelpro._optional import require
from kernelpro.errors import UserError
from kernelpro.llm.providers import Model

Price = Callable[[int, int, int], float | None]
"""(input tokens, output tokens, of the input from a cache) -> US dollars; None = not known."""


def price_of(model: Model) -> Price:
    """The price list's price of ``model``; nothing for a server on this machine."""
    if model.own_machine:
        return lambda given, got, cached: 0.0

    def listed(given: int, got: int, cached: int) -> float | None:
        require("genai_prices", extra="llm", purpose="The price list")
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=given, output_tokens=got, cache_read_tokens=cached)
        try:
            return float(calc_price(usage, model.name, provider_id=model.prices).total_price)
        except LookupError:
            return None  # not in the list: unknown, never zero

    return (lambda given, got, cached: None) if model.prices is None else listed


def given_price(text: str) -> Price:
    """The price in ``INPUT/OUTPUT``, US dollars per million tokens; cached input counts as new."""
    try:
        given, got = (float(part) for part in text.split("/"))
    except ValueError:
        raise UserError(
            f"A price is INPUT/OUTPUT in US dollars per million tokens, for example 3/15; "
            f"not {text!r}"
        ) from None
    if given < 0 or got < 0:
        raise UserError(f"A price cannot be negative: {text!r}")
    return lambda inputs, outputs, cached: (inputs * given + outputs * got) / 1e6
