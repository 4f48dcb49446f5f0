"""Records to JSON and back. Encoding is standard library; decoding validates with pydantic.

Unknown keys, wrong types and illegal combinations raise ``ValueError`` with pydantic's message.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record")

CONFIG = {"extra": "forbid"}
"""Set as ``__pydantic_config__`` on every record: an unknown key is an error, not a surprise."""


_FIELDS: dict[type[Any], tuple[str, ...]] = {}
"""Field names of the record types met so far: looking them up is most of the work otherwise."""


def to_jsonable(value: Any) -> Any:
    """``value`` as JSON types: records become dicts, enums their values, tuples lists.

    Non-finite floats become ``None``: JSON has no NaN, and a missing number must not look real.
    """
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is list or kind is tuple:
        return [to_jsonable(v) for v in value]
    if kind is dict:
        return {str(k): to_jsonable(v) for k, v in value.items()}
    names = _FIELDS.get(kind)
    if names is not None:
        return {name: to_jsonable(getattr(value, name)) for name in names}
    return _rarer(value)


def _rarer(value: Any) -> Any:
    """Records of a type met for the first time, enums, and subclasses of JSON's types."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _FIELDS[type(value)] = tuple(field.name for field in dataclasses.fields(value))
        return to_jsonable(value)
    if isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return to_jsonable(float(value))
    if isinstance(value, dict):
        return {str(k): to_jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [to_jsonable(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a record or a JSON type")


def dumps(value: Any, *, indent: int | None = None) -> str:
    """``value`` as strict JSON text (no NaN)."""
    return json.dumps(to_jsonable(value), indent=indent, allow_nan=False, ensure_ascii=False)


def from_jsonable(cls: type[Record], data: Any) -> Record:
    """Build a validated record of type ``cls`` from JSON types; ``ValueError`` if it is not one."""
    return cast(Record, _adapter(cls).validate_python(data))


def loads(cls: type[Record], text: str | bytes) -> Record:
    """Parse JSON text into a validated record of type ``cls``."""
    return cast(Record, _adapter(cls).validate_json(text))


def json_schema(cls: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a record, for tools and documentation."""
    return _adapter(cls).json_schema()


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    if cls not in _ADAPTERS:
        # Imported on first use: a worker encodes records and never decodes them.
        from pydantic import TypeAdapter

        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]
