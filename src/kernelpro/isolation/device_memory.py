"""Memory of a GPU that two processes map: one makes it, the other opens it by file descriptor.

A descriptor passes where CUDA's IPC handles do not: into other PID and IPC namespaces. Source for
constants and structures: the CUDA driver API's "Virtual Memory Management" (cuda.h).
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

import torch

from kernelpro.inline.driver import driver

_PINNED, _POSIX_DESCRIPTOR, _ON_DEVICE, _READ_WRITE = 1, 1, 1, 3
_PROPERTIES = struct.Struct("<iiiiQBBH4x")
"""``CUmemAllocationProp``: type, handle types, location type and number, Windows data, flags."""
_ACCESS = struct.Struct("<iii")
"""``CUmemAccessDesc``: location type and number, protection."""


class DeviceMemory:
    """Mapped memory of one GPU. ``bytes`` is a uint8 tensor of ``size`` elements over it."""

    def __init__(self, handle: int, device: int, size: int) -> None:
        """Map ``handle``, which this object owns from now on. ``DriverError`` if that fails."""
        self.size = size
        self._device = device
        with driver().current(device):
            try:
                self._address = driver().handle(
                    "cuMemAddressReserve", ctypes.c_size_t(size), ctypes.c_size_t(0),
                    ctypes.c_uint64(0), ctypes.c_uint64(0),
                )  # fmt: skip
                driver().call(
                    "cuMemMap", *self._range(), ctypes.c_size_t(0), ctypes.c_uint64(handle),
                    ctypes.c_uint64(0),
                )  # fmt: skip
            finally:
                # What is mapped lives until it is unmapped.
                driver().call("cuMemRelease", ctypes.c_uint64(handle))
            access = _ACCESS.pack(_ON_DEVICE, device, _READ_WRITE)
            driver().call("cuMemSetAccess", *self._range(), access, ctypes.c_size_t(1))
        self.bytes = torch.as_tensor(
            _Array(self._address, size), device=torch.device("cuda", device)
        )

    def _range(self) -> tuple[Any, Any]:
        return ctypes.c_uint64(self._address), ctypes.c_size_t(self.size)

    def wait(self) -> None:
        """Until all work on the GPU that this process has given it is done."""
        with driver().current(self._device):
            driver().call("cuCtxSynchronize")

    def close(self) -> None:
        """Unmap; ``bytes`` must not be used any more."""
        if self._address:
            del self.bytes
            self.wait()
            with driver().current(self._device):
                driver().call("cuMemUnmap", *self._range())
                driver().call("cuMemAddressFree", *self._range())
            self._address = 0


def create(device: int, least: int) -> tuple[DeviceMemory, int]:
    """At least ``least`` bytes of ``cuda:device``, and an open descriptor that :func:`attach`
    takes. ``DriverError`` where the driver or its memory does not allow it."""
    cuda = driver()
    with cuda.current(device):
        ordinal = cuda.number("cuDeviceGet", device)
        wanted = _PROPERTIES.pack(_PINNED, _POSIX_DESCRIPTOR, _ON_DEVICE, ordinal, 0, 0, 0, 0)
        granularity = ctypes.c_size_t()
        cuda.call("cuMemGetAllocationGranularity", ctypes.byref(granularity), wanted, 0)
        size = -(-least // granularity.value) * granularity.value
        handle = cuda.handle("cuMemCreate", ctypes.c_size_t(size), wanted, ctypes.c_uint64(0))
        descriptor = ctypes.c_int(-1)
        try:
            cuda.call(
                "cuMemExportToShareableHandle", ctypes.byref(descriptor), ctypes.c_uint64(handle),
                _POSIX_DESCRIPTOR, ctypes.c_uint64(0),
            )  # fmt: skip
        except BaseException:
            cuda.call("cuMemRelease", ctypes.c_uint64(handle))
            raise
    try:
        return DeviceMemory(handle, device, size), descriptor.value
    except BaseException:
        os.close(descriptor.value)
        raise


def attach(descriptor: int, device: int, size: int) -> DeviceMemory:
    """Map memory that another process made, all ``size`` bytes of it; closes ``descriptor``."""
    cuda = driver()
    try:
        with cuda.current(device):
            handle = cuda.handle(
                "cuMemImportFromShareableHandle", ctypes.c_void_p(descriptor), _POSIX_DESCRIPTOR
            )
    finally:
        os.close(descriptor)
    return DeviceMemory(handle, device, size)


class _Array:
    """Bytes at an address, as ``__cuda_array_interface__`` (version 3) describes them."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip
