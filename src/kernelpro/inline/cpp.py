"""C++ through the system compiler and ctypes. Standard library only; never imports torch."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelpro.inline.cache import BuildError, Recipe, ToolchainError, build, run_compiler, symbol
from kernelpro.inline.signature import DTYPES, SCALARS, Signature, signatures

CPP_FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++17", "-fPIC", "-shared", "-g1")
"""Defaults of :func:`cpp`; a call's own flags come later and so win."""
_ERROR_CODES = {"int", "int32_t"}
_modules: dict[tuple[str, tuple[str, ...]], Module] = {}


def cpp(
    source: str, *, functions: Sequence[str] | None = None, flags: Sequence[str] = ()
) -> Module:
    """Compile ``source`` to a shared object and return it; its functions are attributes.

    ``functions``: ``extern "C"`` names that must exist (default: those found in the source).
    ``flags``: added after :data:`CPP_FLAGS`. Raises :class:`BuildError`, :class:`ToolchainError`.
    """
    compiler, version = find_compiler()
    command = (*compiler, *CPP_FLAGS, *flags)
    native = any(flag in ("-march=native", "-mcpu=native", "-mtune=native") for flag in command)
    declared = signatures(source)
    names = tuple(functions) if functions is not None else tuple(declared)
    recipe = Recipe(
        language="cpp", suffix=".cpp", object_suffix=".so",
        marker='extern "C" __attribute__((visibility("default"))) const char {} = 1;',
        compiler=version, command=command, machine=_processor() if native else "",
        compile=lambda path, target: _compile(command, version, path, target),
        resources=lambda log: [],
    )  # fmt: skip
    key, path = build(source, recipe, names)
    if (str(path), names) not in _modules:
        _modules[str(path), names] = Module(key, path, names, declared)
    return _modules[str(path), names]


def _compile(command: tuple[str, ...], version: str, path: Path, target: Path) -> tuple[bool, str]:
    report = target.with_suffix(".vec")
    if "clang" in version:
        remarks = [f"-Rpass{kind}=loop-vectorize|slp-vectorize" for kind in ("", "-missed")]
    else:
        remarks = [f"-fopt-info-vec-all={report}"]
    succeeded, log = run_compiler([*command, *remarks, str(path), "-o", str(target)])
    if report.exists():
        log += "\n" + report.read_text(encoding="utf-8", errors="replace")
        report.unlink()
    return succeeded, log


@functools.cache
def find_compiler() -> tuple[tuple[str, ...], str]:
    """(command, version line) of ``KERNELPRO_CXX``, else ``CXX``, else g++, clang++ or c++."""
    chosen = os.environ.get("KERNELPRO_CXX") or os.environ.get("CXX")
    for candidate in [chosen] if chosen else ["g++", "clang++", "c++"]:
        words = shlex.split(candidate)
        program = shutil.which(words[0])
        if program:
            command = (program, *words[1:])
            result = subprocess.run([*command, "--version"], capture_output=True, check=False)
            lines = result.stdout.decode("utf-8", "replace").splitlines()
            if result.returncode == 0 and lines:
                return command, lines[0]
    named = f"{chosen!r} (KERNELPRO_CXX or CXX)" if chosen else "g++, clang++ or c++ on PATH"
    raise ToolchainError(f"No C++ compiler: {named} does not run. Install g++ or set KERNELPRO_CXX")


@functools.cache
def _processor() -> str:
    """What ``-march=native`` depends on: an object built for it must not move to another."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return platform.processor()
    wanted = r"^(?:vendor_id|cpu family|model|stepping|flags|CPU (?:implementer|part)|Features)\s*:"
    return "\n".join(line for line in first.splitlines() if re.match(wanted, line))


class Module:
    """A loaded shared object; ``extern "C"`` functions are attributes that take tensors."""

    def __init__(
        self, key: str, path: Path, names: Sequence[str], declared: dict[str, Signature]
    ) -> None:
        self.key = key
        self.path = path
        self._declared = declared
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise BuildError(f"The compiled object does not load: {error}") from None
        if not hasattr(self._library, symbol(key)):
            raise BuildError(f"{path} was not built from this source: delete it and build again")
        try:
            for name in names:
                getattr(self, name)
        except AttributeError as error:
            raise BuildError(str(error)) from None

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            pointer = self._library[name]
        except AttributeError:
            known = ", ".join(self._declared) or "none"
            raise AttributeError(
                f'The source exports no function {name!r}; declare it extern "C" '
                f'(extern "C" functions found: {known})'
            ) from None
        function = Function(name, pointer, self._declared.get(name))
        setattr(self, name, function)  # next access skips this method
        return function


class Function:
    """One C function. Tensors become pointers, Python numbers the declared scalar.

    Without a readable signature, the first call's Python types decide: int -> ``int64_t``,
    float -> ``double``. A declared ``int`` result (or an unreadable one) is an error code.
    """

    def __init__(self, name: str, pointer: Any, signature: Signature | None) -> None:
        self.name = name
        self._pointer = pointer
        self._signature = signature
        self._count: int | None = None
        self._pointers: list[tuple[int, str, set[Any]]] = []
        """(position, pointed-to type, tensor dtypes seen to fit there)."""
        self._raises = signature is None or signature.result in _ERROR_CODES
        if signature is not None:
            self._bind_result(signature.result)
            if all(p.pointer or p.base in SCALARS for p in signature.parameters):
                self._bind(
                    [ctypes.c_void_p if p.pointer else SCALARS[p.base]
                     for p in signature.parameters],
                    [p.base for p in signature.parameters],
                )  # fmt: skip

    def __call__(self, *arguments: Any) -> Any:
        """Call it. ``TypeError`` for wrong arguments; ``RuntimeError`` for a non-zero code."""
        if self._count is None:
            self._bind(_guess(arguments), [""] * len(arguments))
        if len(arguments) != self._count:
            raise TypeError(
                f"{self.name} takes {self._count} arguments, {len(arguments)} were given"
                + self._declaration()
            )
        values = list(arguments)
        for position, base, accepted in self._pointers:
            value = values[position]
            if getattr(value, "dtype", None) in accepted and value.is_cpu:
                values[position] = value.data_ptr()
            else:
                values[position] = self._address(position, base, accepted, value)
        try:
            result = self._pointer(*values)
        except ctypes.ArgumentError as error:
            raise TypeError(f"{self.name}: {error}{self._declaration()}") from None
        if self._raises:
            if result != 0:
                raise RuntimeError(f"{self.name} failed with error code {result}")
            return None
        return result

    def _bind(self, types: Sequence[Any], bases: Sequence[str]) -> None:
        self._pointer.argtypes = types
        self._count = len(types)
        self._pointers = [
            (position, base, set())
            for position, (kind, base) in enumerate(zip(types, bases, strict=True))
            if kind is ctypes.c_void_p
        ]

    def _bind_result(self, result: str) -> None:
        if result == "void":
            self._pointer.restype = None
        elif result.endswith("*"):
            self._pointer.restype = ctypes.c_void_p
        elif result in SCALARS:
            self._pointer.restype = SCALARS[result]

    def _address(self, position: int, base: str, accepted: set[Any], value: Any) -> Any:
        """The pointer that ``value`` stands for, after the checks the fast path may then skip."""
        if hasattr(value, "data_ptr"):
            if not value.is_cpu:
                raise TypeError(f"{self.name}: argument {position} is on {value.device}, not cpu")
            dtype = str(value.dtype).removeprefix("torch.")
            if dtype not in DTYPES.get(base, (dtype,)):
                raise TypeError(
                    f"{self.name}: argument {position} points to {base}, but the tensor holds "
                    f"{dtype}{self._declaration()}"
                )
            accepted.add(value.dtype)
            return value.data_ptr()
        if hasattr(value, "ctypes"):  # a numpy array
            return value.ctypes.data
        return value

    def _declaration(self) -> str:
        return f"\nDeclared: {self._signature}" if self._signature else ""


def _guess(arguments: Sequence[Any]) -> list[Any]:
    """ctypes of arguments whose declaration could not be read."""
    types: list[Any] = []
    for value in arguments:
        if isinstance(value, ctypes._SimpleCData):
            types.append(type(value))
        elif isinstance(value, int):
            types.append(ctypes.c_int64)
        else:
            types.append(ctypes.c_double if isinstance(value, float) else ctypes.c_void_p)
    return types
