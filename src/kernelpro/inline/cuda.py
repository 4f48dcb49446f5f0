"""CUDA kernels from source text, launched through the driver on torch's current stream.

Standard library only; torch is looked up among the loaded modules, never imported.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

from kernelpro.inline import nvcc
from kernelpro.inline.cache import BuildError, build, symbol
from kernelpro.inline.driver import Driver, DriverError, Frame, driver
from kernelpro.inline.layout import Layout
from kernelpro.inline.signature import Signature, signatures

_ARCHITECTURE_SPECIFIC = {(9, 0), (10, 0), (10, 3), (12, 0), (12, 1)}
"""Capabilities with an ``a`` target: wgmma and its like exist only there."""
_MAX_LAUNCHES = 256
"""Launch shapes a kernel remembers."""
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

    Grid and block are an int or a tuple of up to three. Arguments follow the declared types.
    """

    def __init__(self, module: CudaModule, name: str, signature: Signature | None) -> None:
        self.module = module
        self.name = name
        self.signature = signature
        self._ready: dict[int, _Loaded] = {}
        self._launches: dict[tuple[Any, ...], Launch] = {}

    def __getitem__(self, config: tuple[Any, ...]) -> Launch:
        launch = self._launches.get(config)
        if launch is None:
            grid, block, shared_bytes = config if len(config) == 3 else (*config, 0)
            launch = Launch(self, (*_three(grid), *_three(block)), index(shared_bytes))
            if len(self._launches) >= _MAX_LAUNCHES:
                self._launches.clear()
            self._launches[config] = launch
        return launch

    def on(self, device: int, arguments: Sequence[Any]) -> _Loaded:
        """This kernel loaded on ``device``, with the layout of its parameters."""
        if device not in self._ready:
            api = driver()
            with api.current(device):
                module = self.module.load(device)
                function = api.handle(
                    "cuModuleGetFunction", ctypes.c_void_p(module), self.name.encode()
                )
                layout = Layout(self.name, self.signature, api.parameters(function), arguments)
            self._ready[device] = _Loaded(api, api.context(device), function, layout)
        return self._ready[device]

    def attribute(self, number: int, device: int = 0) -> int:
        """``CUfunction_attribute`` of the loaded kernel, for example 4 = registers a thread."""
        loaded = self._ready[device]
        return loaded.api.number("cuFuncGetAttribute", number, ctypes.c_void_p(loaded.function))


def _three(size: Any) -> tuple[int, int, int]:
    values = [index(value) for value in (size if isinstance(size, tuple) else (size,))]
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise ValueError(f"grid and block are 1 to 3 sizes of at least 1, not {size!r}")
    x, y, z = [*values, 1, 1][:3]
    return x, y, z


class _Loaded:
    """A kernel in one context."""

    def __init__(self, api: Driver, context: int, function: int, layout: Layout) -> None:
        self.api = api
        self.context = context
        self.function = function
        self.layout = layout
        self.shared_bytes = 0
        self.frames: list[Frame] = []
        """Free ones; a launch takes one, so that threads do not share it."""

    def frame(self) -> Frame:
        """A frame no other launch uses; give it back by appending it to ``frames``."""
        try:
            return self.frames.pop()
        except IndexError:
            return Frame(self.function, self.layout.parameter_bytes)


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
        device = _device_of(arguments)
        loaded = kernel._ready.get(device) or kernel.on(_checked(kernel, device), arguments)
        frame = loaded.frame()
        try:
            loaded.layout.pack_into(frame.parameters, arguments, device)
            if stream is None:
                stream = _current_stream(device)
            if loaded.api.is_current(loaded.context, frame):
                code = self._launch(loaded, stream, frame)
            else:
                with loaded.api.current(device):
                    code = self._launch(loaded, stream, frame)
        finally:
            loaded.frames.append(frame)
        if code:
            raise self._refused(loaded, code)

    def _launch(self, loaded: _Loaded, stream: int, frame: Frame) -> int:
        if self._shared_bytes > loaded.shared_bytes:
            loaded.api.allow_shared(loaded.function, self._shared_bytes)
            loaded.shared_bytes = self._shared_bytes
        return loaded.api.launch(self._shape, self._shared_bytes, stream, frame)

    def _refused(self, loaded: _Loaded, code: int) -> DriverError:
        shape = f"grid {self._shape[:3]}, block {self._shape[3:]}, {self._shared_bytes} bytes"
        return loaded.api.error(code, f"launch of {self._kernel.name} ({shape} of shared memory)")


def _device_of(arguments: Sequence[Any]) -> int:
    """Device index of the first tensor (-1 = the CPU), else the current device."""
    for argument in arguments:
        if hasattr(argument, "get_device"):
            return int(argument.get_device())
    return _current_device()


def _checked(kernel: Kernel, device: int) -> int:
    if device < 0:
        raise TypeError(f"{kernel.name}: the first tensor is not on a CUDA device")
    return device


def _current_stream(device: int) -> int:
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(raw(device) if raw else torch.cuda.current_stream(device).cuda_stream)
