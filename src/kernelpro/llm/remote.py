"""A model at the end of a wire. The only module that knows pydantic-ai.

One attempt per call: retries and rejected parameters are :mod:`llm.resilient`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from kernelpro._optional import require
from kernelpro.llm import background
from kernelpro.llm.base import (
    CallFailed,
    ChatReply,
    ChatRequest,
    Rejected,
    Temporary,
    Tokens,
    TooLong,
    Watch,
    estimate_tokens,
)
from kernelpro.llm.keys import redact
from kernelpro.llm.prices import Price, price_of
from kernelpro.llm.providers import Model, key_of
from kernelpro.schema.exchange import Message, ToolCall

IDLE_S = 120.0
"""Silence of a server after which a call counts as broken: longer than a reasoning model or a
local one on a CPU needs for its first token of a usual prompt (chosen)."""
FIRST_TOKEN_S = 600.0
_FINISH = {"length": "length", "tool_call": "tool_call", "content_filter": "content_filter"}


class RemoteModel:
    """Implements ``llm.base.ChatModel`` for every service in ``llm.providers``."""

    def __init__(
        self, model: Model, *, price: Price | None = None, idle_s: float = IDLE_S,
        first_token_s: float = FIRST_TOKEN_S,
    ) -> None:  # fmt: skip
        require("pydantic_ai", extra="llm", purpose=f"The model {model.id}")
        self.name = model.id
        self._price = price_of(model) if price is None else price
        self._idle_s = idle_s
        self._first_token_s = first_token_s
        self._client = _client(model, key_of(model))
        self._marks = model.wire in _MARKED

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price by the service's list, or as the user gave it."""
        return self._price(input_tokens, output_tokens, 0)

    def chat(self, request: ChatRequest, watch: Watch | None = None) -> ChatReply:
        """One attempt, streamed."""
        received: list[str] = []
        look = None if watch is None else lambda: watch("".join(received))
        return background.run(self._streamed(request, received), look)

    async def _streamed(self, request: ChatRequest, received: list[str]) -> ChatReply:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.exceptions import AgentRunError, UserError

        try:
            async with asyncio.timeout(self._first_token_s) as limit:
                async with model_request_stream(
                    self._client,
                    _messages(request, marks=self._marks),
                    model_settings=_settings(request),
                    model_request_parameters=_parameters(request),
                ) as stream:
                    async for event in stream:
                        limit.reschedule(asyncio.get_running_loop().time() + self._idle_s)
                        if delta := _delta(event):
                            received.append(delta)
                    response = stream.get()
        except TimeoutError as error:
            waited = self._idle_s if received else self._first_token_s
            raise self._broken(
                f"{self.name} was silent for {waited:g} s", request, received
            ) from error
        except AgentRunError as error:
            raise self._failure(error, request, received) from error
        except UserError as error:
            raise Rejected(redact(f"{self.name}: {error}")) from error
        return self._reply(response, request)

    def _reply(self, response: Any, request: ChatRequest) -> ChatReply:
        calls = tuple(
            ToolCall(id=call.tool_call_id, name=call.tool_name, arguments=_arguments(call))
            for call in response.tool_calls
        )
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        finish = _FINISH.get(str(response.finish_reason), "stop")
        if not text.strip() and not calls and finish == "stop":
            raise self._broken(f"{self.name} answered with nothing", request, [])
        return ChatReply(
            message=Message(author="assistant", text=text, calls=calls),
            finish=finish,
            tokens=self._tokens(response.usage, request, text),
            settings={k: v for k, v in _settings(request).items() if k in _RECORDED},
        )

    def _tokens(self, usage: Any, request: ChatRequest, text: str) -> Tokens:
        """What the service counted; an estimate where it counts nothing."""
        if not usage.input_tokens and not usage.output_tokens:
            return self._estimate(request, text)
        cost = self._price(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        return Tokens(
            input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens,
            cost_usd=cost,
        )  # fmt: skip

    def _estimate(self, request: ChatRequest, text: str) -> Tokens:
        given, got = estimate_tokens(request.text()), estimate_tokens(text) if text else 0
        return Tokens(input=given, output=got, cost_usd=self.cost_usd(given, got), estimated=True)

    def _broken(self, message: str, request: ChatRequest, received: Sequence[str]) -> Temporary:
        text = "".join(received)
        return Temporary(
            redact(message), tokens=self._estimate(request, text), partial=redact(text)
        )

    def _failure(
        self, error: Exception, request: ChatRequest, received: Sequence[str]
    ) -> CallFailed:
        """What a failed call means for the caller. Only a reply that had begun was paid for."""
        from pydantic_ai import exceptions as e

        said = redact(f"{self.name}: {_reason(error)}")
        if isinstance(error, e.ModelContextWindowExceededError):
            return TooLong(said)
        if isinstance(error, e.ModelQuotaExceededError | e.ModelAuthenticationError):
            return CallFailed(said)
        status = getattr(error, "status_code", None)
        if isinstance(error, e.ModelRequestRejectedError) or status in (400, 404, 413, 422):
            return TooLong(said) if _says_too_long(said) else Rejected(said)
        if received:
            return self._broken(said, request, received)
        return Temporary(said, retry_after_s=getattr(error, "retry_after", None))


_RECORDED = ("max_tokens", "temperature")
_MARKED = ("anthropic", "bedrock")
"""Services that cache what is marked; the others find shared beginnings themselves."""
_TOO_LONG = ("context length", "context size", "context window", "prompt is too long",
             "too many tokens", "maximum context", "exceed_context")  # fmt: skip


def _says_too_long(message: str) -> bool:
    lower = message.lower()
    return any(words in lower for words in _TOO_LONG)


def _reason(error: Exception) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, dict) else inner
        if said:
            return f"{getattr(error, 'status_code', '')} {said}".strip()
    return " ".join(str(error).split())[:500]


def _client(model: Model, key: str | None) -> Any:
    if model.wire == "anthropic":
        require("anthropic", extra="llm", purpose=f"The model {model.id}")
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            model.name, provider=AnthropicProvider(api_key=key, base_url=model.url)
        )
    if model.wire == "google":
        require("google.genai", extra="google", purpose=f"The model {model.id}")
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        google = GoogleProvider(api_key=key or "", base_url=model.url)
        return GoogleModel(model.name, provider=google)
    if model.wire == "bedrock":
        require("boto3", extra="bedrock", purpose=f"The model {model.id}")
        from pydantic_ai.models.bedrock import BedrockConverseModel

        return BedrockConverseModel(model.name)
    require("openai", extra="llm", purpose=f"The model {model.id}")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=model.url, api_key=key or "none")
    # Where the end of the connection is the end of the reply, a dead server looks done.
    strict = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    return OpenAIChatModel(model.name, provider=provider, profile=strict)


def _messages(request: ChatRequest, *, marks: bool) -> list[Any]:
    from pydantic_ai import messages as m

    found: list[Any] = []
    for message in request.messages:
        if message.author == "user":
            parts: list[Any] = [m.UserPromptPart(_user_content(message, marks=marks))]
            found.append(m.ModelRequest(parts=parts, instructions=request.system))
        elif message.author == "tool":
            name = _called(request.messages, message.call_id)
            parts = [m.ToolReturnPart(name, message.text, tool_call_id=message.call_id)]
            found.append(m.ModelRequest(parts=parts, instructions=request.system))
        else:
            answer: list[Any] = [m.TextPart(message.text)] if message.text else []
            answer += [m.ToolCallPart(c.name, c.arguments, tool_call_id=c.id)
                       for c in message.calls]  # fmt: skip
            found.append(m.ModelResponse(parts=answer))
    return found


def _user_content(message: Message, *, marks: bool) -> Any:
    """The text, with a mark after the part that other requests share, if the service reads it."""
    from pydantic_ai.messages import CachePoint

    if not marks or not 0 < message.stable < len(message.text):
        return message.text
    return [message.text[: message.stable], CachePoint(), message.text[message.stable :]]


def _called(messages: Sequence[Message], call_id: str) -> str:
    return next(c.name for m in messages for c in m.calls if c.id == call_id)


def _settings(request: ChatRequest) -> Any:
    settings: dict[str, Any] = {"max_tokens": request.max_tokens, "max_retries": 0, "cache": True}
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    return settings


def _parameters(request: ChatRequest) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=t.name, description=t.description, parameters_json_schema=t.schema)
        for t in request.tools
    ]
    if request.schema is None:
        return ModelRequestParameters(function_tools=tools)
    wanted = OutputObjectDefinition(json_schema=request.schema, name="answer")
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=wanted)


def _arguments(call: Any) -> dict[str, Any]:
    """A call's arguments; what is not JSON becomes an empty object, which the tool complains of."""
    try:
        return dict(call.args_as_dict())
    except ValueError:
        return {}


def _delta(event: Any) -> str:
    """The text that an event of a stream adds."""
    if event.event_kind == "part_start" and event.part.part_kind in ("text", "thinking"):
        return str(event.part.content)
    if event.event_kind == "part_delta":
        return str(getattr(event.delta, "content_delta", None) or "")
    return ""
