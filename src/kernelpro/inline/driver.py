"""The CUDA driver through ctypes: every call checked, every error named. Standard library only.

Never changes a setting of the device; contexts are the devices' primary ones, shared with torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Iterator
from typing import Any

from kernelpro.inline.cache import ToolchainError

ATTRIBUTES = {
    "max_threads_per_block": 1, "warp_size": 10, "clock_khz": 13, "units": 16,
    "max_threads_per_unit": 39, "capability_major": 75, "capability_minor": 76,
    "shared_bytes_per_unit": 81, "registers_per_unit": 82, "l2_bytes": 38,
    "shared_bytes_per_block": 97, "memory_clock_khz": 36, "memory_bus_bits": 37,
}  # fmt: skip
"""``CUdevice_attribute`` numbers of cuda.h; ``shared_bytes_per_block`` is the opt-in maximum."""
_MAX_DYNAMIC_SHARED = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""
_DEFAULT_SHARED_BYTES = 48 << 10
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2
"""``CU_LAUNCH_PARAM_BUFFER_POINTER`` and ``..._SIZE``."""


_CONFIG = struct.Struct("<7I4xQQI4x")
"""``CUlaunchConfig``: grid and block sizes, shared bytes, stream, attributes, their number."""


class Frame:
    """Memory of one launch in flight: packed parameters and what the driver wants around them.

    Its pointers are made once: converting eleven arguments a launch would cost more than the rest.
    """

    __slots__ = ("arguments", "config", "configured", "context", "context_reference", "extra",
                 "parameters", "size")  # fmt: skip

    def __init__(self, function: int, parameter_bytes: int) -> None:
        self.parameters = ctypes.create_string_buffer(max(1, parameter_bytes))
        self.size = ctypes.c_size_t(parameter_bytes)
        self.extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(self.parameters),
            _BUFFER_SIZE, ctypes.addressof(self.size), 0,
        )  # fmt: skip
        self.config = ctypes.create_string_buffer(_CONFIG.size)
        self.configured: tuple[Any, ...] = ()
        self.arguments = (ctypes.byref(self.config), ctypes.c_void_p(function), None, self.extra)
        self.context = ctypes.c_void_p()
        self.context_reference = ctypes.byref(self.context)


class DriverError(RuntimeError):
    """A driver call failed; ``name`` is the CUresult's, for example CUDA_ERROR_INVALID_VALUE."""

    def __init__(self, message: str, *, code: int, name: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


@functools.cache
def driver() -> Driver:
    """The initialised driver; ``ToolchainError`` if there is none or it has no device."""
    return Driver()


class Driver:
    """libcuda, initialised."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise ToolchainError(f"No CUDA driver on this machine: {error}") from None
        try:
            self.call("cuInit", 0)
        except DriverError as error:
            raise ToolchainError(f"The CUDA driver does not start: {error}") from None
        self._launch = self.library.cuLaunchKernelEx
        self._current = self.library.cuCtxGetCurrent
        self._contexts: dict[int, int] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``name``; ``DriverError`` unless it returns CUDA_SUCCESS."""
        code = getattr(self.library, name)(*arguments)
        if code:
            raise self.error(code, name)

    def error(self, code: int, doing: str) -> DriverError:
        """The exception for ``code``, with the driver's own words."""
        texts = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            pointer = ctypes.c_char_p()
            known = getattr(self.library, function)(code, ctypes.byref(pointer)) == 0
            texts.append((pointer.value or b"").decode() if known else "unknown error")
        return DriverError(f"{doing}: {texts[0]} ({code}): {texts[1]}", code=code, name=texts[0])

    def number(self, name: str, *arguments: Any) -> int:
        """The int that ``name`` writes through its first parameter."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def handle(self, name: str, *arguments: Any) -> int:
        """The pointer-sized handle that ``name`` writes through its first parameter."""
        value = ctypes.c_void_p()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value or 0

    def attribute(self, name: str, device: int) -> int:
        """A device attribute of :data:`ATTRIBUTES`."""
        ordinal = self.number("cuDeviceGet", device)
        return self.number("cuDeviceGetAttribute", ATTRIBUTES[name], ordinal)

    def context(self, device: int) -> int:
        """The primary context of ``device``, retained once for the life of the process."""
        if device not in self._contexts:
            ordinal = self.number("cuDeviceGet", device)
            self._contexts[device] = self.handle("cuDevicePrimaryCtxRetain", ordinal)
        return self._contexts[device]

    def is_current(self, context: int, frame: Frame) -> bool:
        """True if ``context`` is the calling thread's."""
        self._current(frame.context_reference)
        return frame.context.value == context

    @contextlib.contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Make the primary context of ``device`` the calling thread's for a block."""
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context(device)))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def has_global(self, module: int, name: str) -> bool:
        """True if a loaded module has a global variable of this name."""
        size = ctypes.c_size_t()
        arguments = (ctypes.byref(ctypes.c_void_p()), ctypes.byref(size), ctypes.c_void_p(module))
        return bool(self.library.cuModuleGetGlobal_v2(*arguments, name.encode()) == 0)

    def parameters(self, function: int) -> list[tuple[int, int]] | None:
        """(offset, bytes) of each kernel parameter; None where the driver cannot tell (< 12.4)."""
        if not hasattr(self.library, "cuFuncGetParamInfo"):
            return None
        found = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        where = (ctypes.byref(offset), ctypes.byref(size))
        arguments = (ctypes.c_void_p(function), ctypes.c_size_t(0))
        while self.library.cuFuncGetParamInfo(*arguments, *where) == 0:
            found.append((offset.value, size.value))
            arguments = (ctypes.c_void_p(function), ctypes.c_size_t(len(found)))
        return found

    def allow_shared(self, function: int, shared_bytes: int) -> None:
        """Opt ``function`` in to dynamic shared memory above the default 48 KiB."""
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            pointer = ctypes.c_void_p(function)
            self.call("cuFuncSetAttribute", pointer, _MAX_DYNAMIC_SHARED, shared_bytes)

    def launch(self, shape: tuple[int, ...], shared_bytes: int, stream: int, frame: Frame) -> int:
        """Launch with ``shape`` (grid x, y, z, block x, y, z); returns the CUresult."""
        config = (*shape, shared_bytes, stream)
        if config != frame.configured:
            _CONFIG.pack_into(frame.config, 0, *config, 0, 0)
            frame.configured = config
        return int(self._launch(*frame.arguments))

    def uuid(self, device: int) -> str:
        """``GPU-xxxxxxxx-xxxx-...`` as nvidia-smi prints it."""
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2", raw, self.number("cuDeviceGet", device))
        parts = struct.unpack(">IHHHHI", bytes(raw))
        return "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}".format(*parts)

    def name(self, device: int) -> str:
        """The product's name."""
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, self.number("cuDeviceGet", device))
        return text.value.decode("utf-8", "replace")

    def memory_bytes(self, device: int) -> int:
        """Total device memory."""
        size = ctypes.c_size_t()
        ordinal = self.number("cuDeviceGet", device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), ordinal)
        return size.value

    def version(self) -> str:
        """Highest CUDA version the driver supports, as ``13.0``."""
        number = self.number("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"
