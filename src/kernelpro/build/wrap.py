"""Wraps a bare ``.cu`` or ``.cpp`` file with a launch record into a candidate file.

The launch record is JSON in the file's first comment, after the word ``kernelpro-launch``::

    /* kernelpro-launch
    {"inputs": ["x", "weight"],
     "values": {"rows": "x.shape[0]", "columns": "x.shape[1]"},
     "outputs": {"y": {"shape": "x.shape", "dtype": "x.dtype"}},
     "launches": [{"function": "rms_norm", "arguments": ["x", "weight", "y", "columns", "1e-6"],
                   "grid": "rows", "block": 256, "shared_bytes": 0}]}
    */

- ``inputs``: names of forward's arguments, in order.
- ``init``: names of the constructor's arguments (default none); also usable in expressions.
- ``parameters``, ``buffers``: name -> shape expression of state the reference has.
- ``values``: name -> expression, evaluated in order in forward.
- ``outputs``: name -> ``shape`` and ``dtype`` expressions (default: those of the first input).
- ``launches``: calls in order. ``grid``, ``block`` and ``shared_bytes`` are for kernels only.
- ``flags``, ``compiler``: for ``inline.cpp`` or ``inline.cuda``.

Expressions are Python over these names and ``torch``. Nothing is evaluated here: they become the
text of ``forward``.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterable
from typing import Any, Literal

from kernelpro.errors import UserError
from kernelpro.inline import Signature, signatures

MARK = "kernelpro-launch"
_RECORD = re.compile(r"/\*\s*" + MARK + r"\s*(\{.*?\})\s*\*/", re.S)
_KNOWN = {"inputs", "init", "parameters", "buffers", "values", "outputs", "launches", "flags",
          "compiler"}  # fmt: skip
_LAUNCH_KNOWN = {"function", "arguments", "grid", "block", "shared_bytes"}


def has_record(source: str) -> bool:
    """True if ``source`` carries a launch record."""
    return MARK in source


def wrap(source: str, language: Literal["cpp", "cuda"]) -> str:
    """The candidate file for a bare source with a launch record.

    ``UserError`` names what the record lacks: a field, a function the source does not define,
    a wrong number of arguments, or an expression with an unknown name.
    """
    record = _record(source)
    declared = signatures(source)
    names = {"torch", *record["inputs"], *record["init"], *record["parameters"],
             *record["buffers"]}  # fmt: skip
    body = [f"{name} = {name}.contiguous()" for name in record["inputs"]]
    body += [f"{name} = self.{name}" for name in _state(record)]
    for name, text in record["values"].items():
        body.append(f"{name} = {_expression(text, names, f'values.{name}')}")
        names.add(name)
    first = record["inputs"][0] if record["inputs"] else next(iter(_state(record)), "")
    for name, output in record["outputs"].items():
        shape = _expression(output.get("shape", f"{first}.shape"), names, f"outputs.{name}.shape")
        dtype = _expression(output.get("dtype", f"{first}.dtype"), names, f"outputs.{name}.dtype")
        body.append(f"{name} = torch.empty({shape}, dtype={dtype}, device={first}.device)")
    names |= set(record["outputs"])
    for launch in record["launches"]:
        body.append(_launch(launch, names, declared, language))
    body.append("return " + ", ".join(record["outputs"]))
    return _file(source, record, body, language)


def _record(source: str) -> dict[str, Any]:
    match = _RECORD.search(source)
    if match is None:
        raise UserError(f"No launch record: add a comment /* {MARK} {{...}} */ with JSON in it")
    try:
        record = json.loads(match[1])
    except json.JSONDecodeError as error:
        raise UserError(f"The launch record is not JSON: {error}") from None
    unknown = sorted(set(record) - _KNOWN)
    if unknown:
        raise UserError(f"Unknown launch record field {unknown[0]!r}; known: {sorted(_KNOWN)}")
    for name in ("outputs", "launches"):
        if not record.get(name):
            raise UserError(f"The launch record needs {name!r}")
    defaults: dict[str, Any] = {"inputs": [], "init": [], "parameters": {}, "buffers": {},
                                "values": {}, "flags": [], "compiler": "auto"}  # fmt: skip
    complete: dict[str, Any] = defaults | record
    _check_names(complete)
    return complete


def _check_names(record: dict[str, Any]) -> None:
    for field in ("inputs", "init", "parameters", "buffers", "values", "outputs"):
        for name in record[field]:
            if not isinstance(name, str) or not name.isidentifier() or name == "self":
                raise UserError(f"Launch record {field}: {name!r} is not a usable name")


def _state(record: dict[str, Any]) -> Iterable[str]:
    return [*record["init"], *record["parameters"], *record["buffers"]]


def _expression(text: Any, names: set[str], where: str) -> str:
    """``text`` if it is a Python expression over ``names``; numbers and lists as literals."""
    source = text if isinstance(text, str) else repr(text)
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError as error:
        raise UserError(f"Launch record {where}: {source!r} is no expression: {error}") from None
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
             and isinstance(n.ctx, ast.Store)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names | bound | set(dir(builtins)):
            known = ", ".join(sorted(names))
            raise UserError(f"Launch record {where}: unknown name {node.id!r}; known: {known}")
    return source


def _launch(
    launch: dict[str, Any], names: set[str], declared: dict[str, Signature], language: str
) -> str:
    name = launch.get("function", "")
    unknown = sorted(set(launch) - _LAUNCH_KNOWN)
    if unknown:
        raise UserError(f"Unknown field {unknown[0]!r} in a launch; known: {sorted(_LAUNCH_KNOWN)}")
    if name not in declared or declared[name].kernel != (language == "cuda"):
        what = 'extern "C" __global__' if language == "cuda" else 'extern "C"'
        found = ", ".join(declared) or "none"
        raise UserError(f"The source defines no {what} function {name!r} (found: {found})")
    arguments = launch.get("arguments", [])
    wanted = len(declared[name].parameters)
    if len(arguments) != wanted:
        raise UserError(
            f"{declared[name]} takes {wanted} arguments, the record gives {len(arguments)}"
        )
    where = f"launch of {name}"
    listed = ", ".join(_expression(argument, names, where) for argument in arguments)
    if language == "cpp":
        return f"_module.{name}({listed})"
    if "grid" not in launch or "block" not in launch:
        raise UserError(f"The {where} needs 'grid' and 'block'")
    shape = ", ".join(_expression(launch.get(field, 0), names, f"{where}, {field}")
                      for field in ("grid", "block", "shared_bytes"))  # fmt: skip
    return f"_module.{name}[{shape}]({listed})"


def _file(source: str, record: dict[str, Any], body: list[str], language: str) -> str:
    literal = (
        f"r'''{source}'''" if "'''" not in source and not source.endswith("\\") else repr(source)
    )
    options = f", flags={tuple(record['flags'])!r}" if record["flags"] else ""
    if language == "cuda" and record["compiler"] != "auto":
        options += f", compiler={record['compiler']!r}"
    init = ["super().__init__()", *(f"self.{name} = {name}" for name in record["init"])]
    known = {"torch", *record["init"]}
    for name, shape in record["parameters"].items():
        text = _expression(shape, known, f"parameters.{name}")
        init.append(f"self.{name} = torch.nn.Parameter(torch.ones({text}))")
    for name, shape in record["buffers"].items():
        text = _expression(shape, known, f"buffers.{name}")
        init.append(f"self.register_buffer({name!r}, torch.zeros({text}))")
    lines = [
        '"""Wrapped from a bare source and its launch record."""', "", "import torch", "",
        "from kernelpro import inline", "", f"SOURCE = {literal}", "",
        f"_module = inline.{language}(SOURCE{options})", "", "",
        "class ModelNew(torch.nn.Module):",
        f"    def __init__({', '.join(['self', *record['init']])}):",
        *(f"        {line}" for line in init), "",
        f"    def forward({', '.join(['self', *record['inputs']])}):",
        *(f"        {line}" for line in body), "",
    ]  # fmt: skip
    return "\n".join(lines)
