"""Text shared by every layer: content hashes, truncation, and number formatting."""

from __future__ import annotations

import hashlib
import math
import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def content_hash(data: str | bytes) -> str:
    """SHA-256 of the content, tagged with its algorithm: ``sha256:<64 hex digits>``."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def short_hash(tagged: str, digits: int = 12) -> str:
    """The first digits of a tagged hash, for names and tables."""
    return tagged.removeprefix("sha256:")[:digits]


def truncate_middle(text: str, limit: int, *, head_share: float = 0.5) -> str:
    """Keep the head and the tail of ``text`` within ``limit`` characters, and say what was cut."""
    if len(text) <= limit:
        return text
    mark = f"\n... [{len(text) - limit} characters cut] ...\n"
    room = max(0, limit - len(mark))
    head = int(room * head_share)
    return text[:head] + mark + (text[len(text) - (room - head) :] if room > head else "")


def printable(text: str) -> str:
    """Strip terminal escapes, control characters, bidirectional overrides and lone surrogates."""
    without_ansi = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)", "", text)
    return _CONTROL.sub("", without_ansi)


def format_si(value: float, unit: str = "", digits: int = 3) -> str:
    """``1234567, 'B/s'`` -> ``'1.23 MB/s'``; keeps ``digits`` significant digits."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g} {unit}".strip()
    prefixes = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"),
                (1e-6, "u"), (1e-9, "n"))  # fmt: skip
    scale, prefix = next(((s, p) for s, p in prefixes if abs(value) >= s), prefixes[-1])
    return f"{value / scale:.{digits}g} {prefix}{unit}".strip()


def unit_suffix(unit: str) -> str:
    """A unit to put behind a number; dimensionless quantities have none."""
    return "" if unit in {"", "1", "ratio"} else f" {unit}"


def format_us(microseconds: float) -> str:
    """A duration given in microseconds, in the unit a person would use."""
    if microseconds < 999.5:  # three digits round to 1e+03 above this
        return f"{microseconds:.3g} us"
    if microseconds < 999.5e3:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds / 1e6:.3g} s"
