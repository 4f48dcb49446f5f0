"""Exchanges with models as text: what was said, and what it took."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpro.schema.exchange import Exchange, Message
from kernelpro.text import printable


def talk_text(exchanges: Sequence[Exchange]) -> str:
    """All of ``exchanges``, oldest first; a role's system prompt only where it is new."""
    if not exchanges:
        return "No model took part in this run."
    parts: list[str] = []
    told: set[str] = set()
    for exchange in exchanges:
        parts.append(f"==== request {exchange.ask_id}, {exchange.role}: {_cost(exchange)}")
        if exchange.system not in told:
            told.add(exchange.system)
            parts.append(f"---- system\n{printable(exchange.system).rstrip()}")
        parts += [_message(message) for message in exchange.messages]
        parts.append(_reply(exchange))
    return "\n\n".join(parts)


def _message(message: Message) -> str:
    calls = "".join(f"\n(calls {call.name} {call.arguments})" for call in message.calls)
    return f"---- {message.author}\n{printable(message.text).rstrip()}{calls}"


def _reply(exchange: Exchange) -> str:
    if exchange.reply is not None:
        return _message(exchange.reply)
    broken = f"\n{printable(exchange.partial).rstrip()}" if exchange.partial else ""
    return f"---- no reply: {printable(exchange.error)}{broken}"


def _cost(exchange: Exchange) -> str:
    usage = exchange.usage
    price = "price not known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    about = "about " if exchange.estimated else ""
    return (
        f"{about}{usage.input_tokens} tokens in ({usage.cached_tokens} cached), "
        f"{usage.output_tokens} out, {price}, {usage.seconds:.1f} s, {usage.model}"
    )
