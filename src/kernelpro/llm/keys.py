"""Keys of model services: read from the environment or the system's keyring, shown to nobody.

Never stored, never logged; :func:`redact` takes them out of everything that is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelpro import environ
from kernelpro._optional import present

REDACTED = "[redacted key]"
_KEY_SHAPES = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|"
    r"gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,})"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.S,
)
"""Shapes of the keys of common services."""
_SHORTEST = 8
"""Values shorter than this are not searched for: they would redact ordinary words."""
_known: set[str] = set()


def find_key(variables: Sequence[str]) -> str | None:
    """The first of ``variables`` that the environment, or else the keyring, has a value for."""
    for variable in variables:
        value = environ.secret(variable) or _from_keyring(variable)
        if value:
            _known.add(value)
            return value
    return None


def redact(text: str) -> str:
    """``text`` without any key that was used in this process, or that looks like one."""
    for value in sorted(_known, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, REDACTED)
    return _KEY_SHAPES.sub(REDACTED, text)


def _from_keyring(variable: str) -> str | None:
    if not present("keyring"):
        return None
    import keyring
    from keyring.errors import KeyringError

    try:
        value = keyring.get_password("kernelpro", variable)
    except KeyringError:
        return None  # a machine without a desktop session has no keyring to ask
    return str(value) if value else None
