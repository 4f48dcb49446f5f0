"""Names of models, and where their keys come from."""

from __future__ import annotations

import pytest

from kernelpro.errors import UserError
from kernelpro.llm.keys import REDACTED, redact
from kernelpro.llm.prices import given_price, price_of
from kernelpro.llm.providers import key_of, parse_model


def test_names():
    model = parse_model("ollama:qwen3-coder:30b")
    assert (model.name, model.url, model.own_machine) == (
        "qwen3-coder:30b", "http://127.0.0.1:11434/v1", True,
    )  # fmt: skip
    model = parse_model("compatible:my/model@http://gpu-box:8000/v1")
    assert (model.name, model.url, model.own_machine) == (
        "my/model", "http://gpu-box:8000/v1", False,
    )  # fmt: skip
    assert parse_model("anthropic:claude-sonnet-4-6").wire == "anthropic"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("antropic:x", "Did you mean 'anthropic'"),
        ("gpt", "provider:model"),
        ("compatible:x", "lacks the server's address"),
        ("compatible:x@http://user:secret@host/v1", "without a user"),
        ("compatible:x@http://host/v1?key=1", "KERNELPRO_MODEL_KEY"),
    ],
)
def test_wrong_names_are_explained(name, said):
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        parse_model(name)


def test_a_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY"):
        key_of(parse_model("anthropic:claude-sonnet-4-6"))
    assert key_of(parse_model("ollama:x")) is None


def test_keys_are_redacted(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unusual-shape-0123456789")
    assert key_of(parse_model("anthropic:claude-sonnet-4-6")) == "unusual-shape-0123456789"
    text = redact(
        "key unusual-shape-0123456789, sk-abcdefghijklmnop1234, Bearer abcdefghijklmnop12"
    )
    assert "unusual" not in text
    assert "sk-" not in text
    assert text.count(REDACTED) == 3
    assert redact("task-force sk-1 desk-lamp") == "task-force sk-1 desk-lamp"


def test_prices():
    assert price_of(parse_model("ollama:x"))(1000, 1000, 0) == 0.0
    assert price_of(parse_model("compatible:x@http://gpu-box/v1"))(1000, 1000, 0) is None
    known = price_of(parse_model("anthropic:claude-sonnet-4-6"))
    assert known(1_000_000, 0, 0) > known(1_000_000, 0, 900_000) > 0
    assert price_of(parse_model("anthropic:no-such-model"))(1, 1, 0) is None
    assert given_price("3/15")(1_000_000, 1_000_000, 0) == 18.0
    with pytest.raises(UserError, match="INPUT/OUTPUT"):
        given_price("3")
