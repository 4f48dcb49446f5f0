"""Names of model services: how each is reached, and where its key comes from."""

from __future__ import annotations

import difflib
import re
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from kernelpro.errors import UserError
from kernelpro.llm.keys import find_key
from kernelpro.registry import Registry

Wire = Literal["anthropic", "openai", "google", "bedrock"]


class Provider(NamedTuple):
    """One service."""

    wire: Wire
    """Whose protocol it speaks; most speak OpenAI's."""
    keys: tuple[str, ...] = ()
    """Variables its key may be in, first wins; empty = needs none."""
    url: str | None = None
    """None = the protocol's own service."""
    prices: str | None = None
    """Its name in genai-prices; None = runs on the user's own machine, so a token costs nothing."""


PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider("anthropic", ("ANTHROPIC_API_KEY",), prices="anthropic"),
    "openai": Provider("openai", ("OPENAI_API_KEY",), prices="openai"),
    "google": Provider("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), prices="google"),
    "gemini": Provider("google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), prices="google"),
    "bedrock": Provider("bedrock", prices="aws"),
    "openrouter": Provider(
        "openai", ("OPENROUTER_API_KEY",), "https://openrouter.ai/api/v1", "openrouter"
    ),
    "deepseek": Provider("openai", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com", "deepseek"),
    "groq": Provider("openai", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1", "groq"),
    "mistral": Provider("openai", ("MISTRAL_API_KEY",), "https://api.mistral.ai/v1", "mistral"),
    "together": Provider(
        "openai", ("TOGETHER_API_KEY",), "https://api.together.xyz/v1", "together"
    ),
    "fireworks": Provider(
        "openai", ("FIREWORKS_API_KEY",), "https://api.fireworks.ai/inference/v1", "fireworks"
    ),
    "moonshot": Provider(
        "openai", ("MOONSHOT_API_KEY",), "https://api.moonshot.ai/v1", "moonshotai"
    ),
    "xai": Provider("openai", ("XAI_API_KEY",), "https://api.x.ai/v1", "x-ai"),
    "ollama": Provider("openai", url="http://127.0.0.1:11434/v1"),
    "vllm": Provider("openai", url="http://127.0.0.1:8000/v1"),
    "llamacpp": Provider("openai", url="http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("openai", url="http://127.0.0.1:1234/v1"),
    "compatible": Provider("openai", url=""),
}
"""``compatible`` is any other server that speaks OpenAI's protocol: its address is part of the
model's name. The local ones have the addresses that the programs use by default."""
COMPATIBLE_KEY = "KERNELPRO_MODEL_KEY"
"""Key for a server whose address is given in the model's name, if it wants one."""

CHAT_MODELS = Registry("chat_model", {})
"""Plug-ins: name -> factory ``(model: str) -> ChatModel``; entry point ``chat_model.<name>``."""


class Model(NamedTuple):
    """A model named by the user, resolved."""

    id: str
    """As written: ``provider:model`` or ``provider:model@http://host:port/v1``."""
    provider: str
    name: str
    url: str | None
    wire: Wire
    prices: str | None
    keys: tuple[str, ...]

    @property
    def own_machine(self) -> bool:
        """True if a token costs nothing, because the server is on this machine."""
        host = urlsplit(self.url or "").hostname or ""
        return self.prices is None and host in ("127.0.0.1", "localhost", "::1")


def is_model(writer: str) -> bool:
    """True if ``writer`` has the form of a model and names a known service."""
    name, _, rest = writer.partition(":")
    return bool(rest) and (name in PROVIDERS or name in CHAT_MODELS.names())


def parse_model(text: str) -> Model:
    """The model behind ``provider:model[@URL]``; ``UserError`` says what is wrong with it."""
    match = re.fullmatch(r"([a-z0-9_-]+):(.+?)(?:@(https?://\S+))?", text)
    if match is None:
        raise UserError(
            f"{text!r} does not name a model. The form is provider:model, for example "
            "anthropic:claude-sonnet-4-6, ollama:qwen3-coder:30b or "
            "compatible:my-model@http://host:8000/v1"
        )
    provider, name, url = match[1], match[2], match[3]
    if provider not in PROVIDERS:
        close = difflib.get_close_matches(provider, PROVIDERS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(
            f"Unknown model provider {provider!r}.{hint} Known: {', '.join(PROVIDERS)}. Any other "
            "server that speaks OpenAI's protocol: compatible:MODEL@URL"
        )
    known = PROVIDERS[provider]
    url = _checked(url or known.url, text)
    keys = known.keys if match[3] is None else (*known.keys, COMPATIBLE_KEY)
    if known.wire == "openai" and known.prices is None:
        keys = (COMPATIBLE_KEY,)
    return Model(text, provider, name, url, known.wire, known.prices, keys)


def key_of(model: Model) -> str | None:
    """The key to send; None = none is needed. ``UserError`` names the variable that is not set."""
    found = find_key(model.keys)
    if found is not None or model.wire == "bedrock" or COMPATIBLE_KEY in model.keys:
        return found
    raise UserError(
        f"{model.provider} needs a key and none was found. Put it into the environment variable "
        f"{' or '.join(model.keys)}, or into the system's keyring: "
        f"keyring set kernelpro {model.keys[0]}"
    )


def _checked(url: str | None, text: str) -> str | None:
    if url == "":
        raise UserError(f"{text!r} lacks the server's address: {text}@http://host:8000/v1")
    if url is None:
        return None
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password or parts.query:
        raise UserError(
            "The address in a model's name must be http(s)://host[:port]/path, without a user, "
            f"password or query: keys belong into the environment variable {COMPATIBLE_KEY}"
        )
    return url
