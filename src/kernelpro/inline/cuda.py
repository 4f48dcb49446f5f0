"""CUDA kernels from source text, launched through the driver on torch's current stream.

Standard library only; torch is looked up among the loaded modules, never imported.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelpro.inline import nvcc
from kernelpro.inline.cache import BuildError, build, symbol
from kernelpro.inline.driver import Driver, DriverError, driver
from kernelpro.inline.signature import DTYPES, SCALARS, Signature, signatures

_CODES = {"bool": "?", "float": "f", "double": "d", "half": "e", "__half": "e"}
_ARCHITECTURE_SPECIFIC = {(9, 0), (10, 0), (10, 3), (12, 0), (12, 1)}
"""Capabilities with an ``a`` target: wgmma and its like exist only there."""
_TENSOR_MAP_BYTES = 128
_modules: dict[tuple[str, tuple[str, ...]], CudaModule] = {}


def cuda(
    source: str,
    *,
    kernels: Sequence[str] | None = None,
    flags: Sequence[str] = (),
    compiler: str = "auto",
) -> CudaModule:
    """Compile ``source`` to a cubin for the current GPU (or ``KERNELPRO_CUDA_ARCH``).

    ``kernels``: ``extern "C" __global__`` names that must exist (default: those found).
    ``compiler``: ``auto``, ``nvrtc`` or ``nvcc``. Loading waits for the first launch, so this
    works without a GPU. Raises :class:`BuildError`, :class:`ToolchainError`.
    """
    declared = {name: s for name, s in signatures(source).items() if s.kernel}
    names = tuple(kernels) if kernels is not None else tuple(declared)
    recipe = nvcc.recipe(source, architecture(), flags, compiler)
    key, path = build(source, recipe, names)
    if (str(path), names) not in _modules:
        _modules[str(path), names] = CudaModule(key, path, names, declared)
    return _modules[str(path), names]


def architecture() -> str:
    """``KERNELPRO_CUDA_ARCH``, else the current GPU's own target: ``sm_90a`` for 9.0."""
    chosen = os.environ.get("KERNELPRO_CUDA_ARCH")
    if chosen:
        return chosen
    device, api = _current_device(), driver()
    pair = (api.attribute("capability_major", device), api.attribute("capability_minor", device))
    return architecture_of(pair)


def architecture_of(capability: tuple[int, int]) -> str:
    """The most capable target of a compute capability: (9, 0) -> ``sm_90a``."""
    specific = "a" if capability in _ARCHITECTURE_SPECIFIC else ""
    return f"sm_{capability[0]}{capability[1]}{specific}"


def _current_device() -> int:
    torch = sys.modules.get("torch")
    return int(torch.cuda.current_device()) if torch and torch.cuda.is_initialized() else 0


class CudaModule:
    """A compiled cubin; ``module.kernel(name)`` or ``module.name`` gives a kernel."""

    def __init__(
        self, key: str, path: Path, names: Sequence[str], declared: dict[str, Signature]
    ) -> None:
        self.key = key
        self.path = path
        self.image = path.read_bytes()
        self._declared = declared
        self._handles: dict[int, int] = {}
        self._kernels: dict[str, Kernel] = {}
        missing = [name for name in names if name.encode() not in self.image]
        if missing:
            known = ", ".join(declared) or "none"
            raise BuildError(
                f'The source defines no kernel {missing[0]!r}; declare it extern "C" __global__ '
                f"(found: {known})"
            )

    def kernel(self, name: str) -> Kernel:
        """The kernel ``name``; launch it as ``kernel[grid, block, shared_bytes](*arguments)``."""
        if name not in self._kernels:
            self._kernels[name] = Kernel(self, name, self._declared.get(name))
        return self._kernels[name]

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.kernel(name)

    def load(self, device: int) -> int:
        """The module's handle in the primary context of ``device`` (which must be current)."""
        if device not in self._handles:
            handle = driver().handle("cuModuleLoadData", self.image)
            if not driver().has_global(handle, symbol(self.key)):
                raise BuildError(f"{self.path} was not built from this source: delete it")
            self._handles[device] = handle
        return self._handles[device]


class Kernel:
    """One kernel. ``kernel[grid, block]`` or ``kernel[grid, block, shared_bytes]`` launches it.

    Grid and block are ints or up to three of them. Arguments follow the declared types.
    """

    def __init__(self, module: CudaModule, name: str, signature: Signature | None) -> None:
        self.module = module
        self.name = name
        self.signature = signature
        self._ready: dict[int, _Loaded] = {}

    def __getitem__(self, config: tuple[Any, ...]) -> Launch:
        grid, block, shared_bytes = config if len(config) == 3 else (*config, 0)
        return Launch(self, (*_three(grid), *_three(block)), shared_bytes)

    def on(self, device: int, arguments: Sequence[Any]) -> _Loaded:
        """This kernel loaded on ``device``, with the layout of its parameters."""
        if device not in self._ready:
            api = driver()
            with api.current(device):
                module = self.module.load(device)
                function = api.handle(
                    "cuModuleGetFunction", ctypes.c_void_p(module), self.name.encode()
                )
                layout = _layout(self, api.parameters(function), arguments)
            self._ready[device] = _Loaded(api, api.context(device), function, layout)
        return self._ready[device]

    def attribute(self, number: int, device: int = 0) -> int:
        """``CUfunction_attribute`` of the loaded kernel, for example 4 = registers a thread."""
        loaded = self._ready[device]
        return loaded.api.number("cuFuncGetAttribute", number, ctypes.c_void_p(loaded.function))

    def declaration(self) -> str:
        """The signature as read, for error messages."""
        return f"\nDeclared: {self.signature}" if self.signature else ""


def _three(size: Any) -> tuple[int, int, int]:
    values = tuple(size) if isinstance(size, tuple | list) else (size,)
    x, y, z = (*(int(v) for v in values), 1, 1)[:3]
    return x, y, z


class _Layout:
    """Where each argument goes: one struct format, and what each position takes."""

    def __init__(self, slots: Sequence[tuple[int, str, str]]) -> None:
        """``slots``: (offset, struct code or P for a pointer, pointed-to type), in order."""
        text, end = "<", 0
        for offset, code, _ in slots:
            text += f"{offset - end}x{code.replace('P', 'Q')}"
            end = offset + _width(code)
        self.pack = struct.Struct(text).pack
        self.codes = [code for _, code, _ in slots]
        self.bases = [base for _, _, base in slots]
        self.accepted: list[set[Any] | None] = [set() if c == "P" else None for c in self.codes]


class _Loaded:
    """A kernel in one context."""

    def __init__(self, api: Driver, context: int, function: int, layout: _Layout) -> None:
        self.api = api
        self.context = context
        self.function = function
        self.layout = layout
        self.shared_bytes = 0


def _layout(
    kernel: Kernel, known: list[tuple[int, int]] | None, arguments: Sequence[Any]
) -> _Layout:
    """Match declared parameters, the driver's word on them, and the first call's arguments."""
    declared = kernel.signature.parameters if kernel.signature else None
    count = len(declared) if declared is not None else len(known or arguments)
    if len(arguments) != count or (known is not None and len(known) != count):
        raise TypeError(
            f"{kernel.name} takes {len(known) if known is not None else count} arguments, "
            f"{len(arguments)} were given{kernel.declaration()}"
        )
    slots, end = [], 0
    for position, argument in enumerate(arguments):
        size = known[position][1] if known else None
        if declared is not None:
            code = _declared_code(declared[position].base, declared[position].pointer, argument)
        else:
            code = _guessed_code(argument, size)
        width = _width(code)
        if size is not None and width != size:
            raise TypeError(
                f"{kernel.name}: parameter {position} has {size} bytes, the argument "
                f"{type(argument).__name__} gives {width}{kernel.declaration()}"
            )
        align = 64 if width == _TENSOR_MAP_BYTES else min(width, 8)
        offset = known[position][0] if known else -(-end // align) * align
        slots.append((offset, code, declared[position].base if declared else ""))
        end = offset + width
    return _Layout(slots)


def _declared_code(base: str, pointer: bool, argument: Any) -> str:
    if pointer:
        return "P"
    if base in _CODES:
        return _CODES[base]
    if base in SCALARS:
        return _integer_code(SCALARS[base])
    return f"{len(bytes(argument))}s"


def _guessed_code(argument: Any, size: int | None) -> str:
    if isinstance(argument, ctypes._SimpleCData):
        kind = type(argument)
        return {ctypes.c_float: "f", ctypes.c_double: "d"}.get(kind) or _integer_code(kind)
    if isinstance(argument, bool | int):
        return "i" if size == 4 else "q"
    if isinstance(argument, float):
        return "f" if size == 4 else "d"
    return "P" if argument is None or hasattr(argument, "data_ptr") else f"{len(bytes(argument))}s"


def _width(code: str) -> int:
    return struct.calcsize("<" + code.replace("P", "Q"))


def _integer_code(kind: Any) -> str:
    signed = kind(-1).value < 0
    code = {1: "b", 2: "h", 4: "i", 8: "q"}[ctypes.sizeof(kind)]
    return code if signed else code.upper()


class Launch:
    """A kernel with its launch shape; call it with the kernel's arguments."""

    __slots__ = ("_kernel", "_shape", "_shared_bytes")

    def __init__(self, kernel: Kernel, shape: tuple[int, ...], shared_bytes: int) -> None:
        self._kernel = kernel
        self._shape = shape
        self._shared_bytes = shared_bytes

    def __call__(self, *arguments: Any, stream: int | None = None) -> None:
        """Launch on the tensors' device and torch's current stream there (or ``stream``).

        ``TypeError`` for wrong arguments, :class:`DriverError` if the launch is refused.
        Returns before the kernel has run, as every launch does.
        """
        kernel = self._kernel
        device = next((a.get_device() for a in arguments if hasattr(a, "get_device")), None)
        if device is None:
            device = _current_device()
        loaded = kernel._ready.get(device) or kernel.on(_checked(kernel, device), arguments)
        packed = _pack(kernel, loaded.layout, arguments, device)
        if stream is None:
            stream = _current_stream(device)
        if loaded.api.is_current(loaded.context):
            code = self._launch(loaded, stream, packed)
        else:
            with loaded.api.current(device):
                code = self._launch(loaded, stream, packed)
        if code:
            raise self._refused(loaded, code)

    def _launch(self, loaded: _Loaded, stream: int, packed: bytes) -> int:
        if self._shared_bytes > loaded.shared_bytes:
            loaded.api.allow_shared(loaded.function, self._shared_bytes)
            loaded.shared_bytes = self._shared_bytes
        return loaded.api.launch(loaded.function, self._shape, self._shared_bytes, stream, packed)

    def _refused(self, loaded: _Loaded, code: int) -> DriverError:
        shape = f"grid {self._shape[:3]}, block {self._shape[3:]}, {self._shared_bytes} bytes"
        return loaded.api.error(code, f"launch of {self._kernel.name} ({shape} of shared memory)")


def _checked(kernel: Kernel, device: int) -> int:
    if device < 0:
        raise TypeError(f"{kernel.name}: the first tensor is not on a CUDA device")
    return device


def _pack(kernel: Kernel, layout: _Layout, arguments: Sequence[Any], device: int) -> bytes:
    if len(arguments) != len(layout.codes):
        raise TypeError(
            f"{kernel.name} takes {len(layout.codes)} arguments, {len(arguments)} were given"
            + kernel.declaration()
        )
    values = [
        value if accepted is None
        else value.data_ptr()
        if getattr(value, "dtype", None) in accepted and value.get_device() == device
        else _address(kernel, layout, position, value, device)
        for position, (value, accepted) in enumerate(zip(arguments, layout.accepted, strict=True))
    ]  # fmt: skip
    try:
        return layout.pack(*values)
    except (struct.error, TypeError):
        plain = [
            bytes(v) if code.endswith("s") else getattr(v, "value", v)
            for code, v in zip(layout.codes, values, strict=True)
        ]
        try:
            return layout.pack(*plain)
        except (struct.error, TypeError) as error:
            raise TypeError(f"{kernel.name}: {error}{kernel.declaration()}") from None


def _address(kernel: Kernel, layout: _Layout, position: int, value: Any, device: int) -> int:
    """The pointer that ``value`` stands for, after the checks that the fast path may then skip."""
    if not hasattr(value, "data_ptr"):
        return int(getattr(value, "value", value) or 0)
    if value.get_device() != device:
        raise TypeError(
            f"{kernel.name}: argument {position} is on {value.device}, not cuda:{device}"
        )
    base, dtype = layout.bases[position], str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES.get(base, (dtype,)):
        raise TypeError(
            f"{kernel.name}: argument {position} points to {base}, but the tensor holds {dtype}"
            + kernel.declaration()
        )
    accepted = layout.accepted[position]
    if accepted is not None:
        accepted.add(value.dtype)
    return int(value.data_ptr())


def _current_stream(device: int) -> int:
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(raw(device) if raw else torch.cuda.current_stream(device).cuda_stream)
