"""How tensors' bytes pass between the referee and a subject, both ways.

Through two anonymous memory files (inbox and outbox, as the subject sees them), with
``pread``/``pwrite``: neither side maps memory that the other can shrink. Of a GPU's subject through
memory of that GPU, as far as it goes: hundreds of megabytes a call then never leave the GPU.
Either side knows from the tensors' descriptions alone which way they take.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch

from kernelpro.inline.cache import ToolchainError
from kernelpro.inline.driver import DriverError
from kernelpro.isolation import device_memory
from kernelpro.isolation.device_memory import DeviceMemory
from kernelpro.isolation.payload import (
    TensorMeta,
    dense_bytes,
    describe_input,
    place,
    raw_view,
    read_at,
    write_at,
    write_mapped,
)

KEPT_BYTES = 64 << 20
"""A memory file keeps its pages for the next transfer up to this size."""


def room(values: Iterable[Any]) -> int:
    """Bytes that the tensors among ``values`` take in one transfer."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return place([describe_input(tensor) for tensor in tensors])[1]


class Mail:
    """The referee's end."""

    def __init__(self, device: str, device_bytes: int) -> None:
        """device_bytes: of the GPU's memory, for one transfer; 0 = through host memory alone."""
        self._inbox = os.memfd_create("kernelpro-inbox")
        self._outbox = os.memfd_create("kernelpro-outbox")
        self._memory: DeviceMemory | None = None
        self._shared = -1
        self.no_device_memory = ""
        """Why a GPU's tensors go through host memory, if they do."""
        if device_bytes:
            try:
                index = torch.device(device).index or 0
                self._memory, self._shared = device_memory.create(index, device_bytes)
            except (DriverError, ToolchainError) as error:
                self.no_device_memory = str(error)

    @property
    def descriptors(self) -> list[int]:
        """To be handed to the subject, in the order of ``child.Descriptors``."""
        return [self._inbox, self._outbox, *([self._shared] if self._memory else [])]

    @property
    def device_bytes(self) -> int:
        """Size of the GPU memory behind the last descriptor; 0 without one."""
        return self._memory.size if self._memory else 0

    def send(self, tensors: Sequence[torch.Tensor]) -> list[TensorMeta]:
        """Put the bytes where the subject will look for them; how the tensors are laid out."""
        metas = [describe_input(tensor) for tensor in tensors]
        _put(tensors, metas, self._memory, partial(write_at, self._inbox))
        return metas

    def make_room(self, metas: Sequence[TensorMeta]) -> None:
        """Before the subject is asked to send tensors of these descriptions."""
        total = place(metas)[1]
        if _memory_for(total, self._memory) is None:
            os.ftruncate(self._outbox, total)

    def receive(self, metas: Sequence[TensorMeta]) -> list[torch.Tensor]:
        """Copies of the bytes the subject sent, as uint8 tensors, on the GPU if they came there.

        ``ValueError`` if there are fewer than declared.
        """
        offsets, total = place(metas)
        memory = _memory_for(total, self._memory)
        received = []
        for meta, offset in zip(metas, offsets, strict=True):
            if memory is not None:
                received.append(memory.bytes[offset : offset + meta.nbytes].clone())
                continue
            received.append(torch.empty(meta.nbytes, dtype=torch.uint8))
            read_at(self._outbox, raw_view(received[-1]), offset)
        if memory is None:
            _release(self._outbox)
        return received

    def release(self) -> None:
        """The subject has taken what was sent."""
        _release(self._inbox)

    def close(self) -> None:
        """Give everything back."""
        for descriptor in (self._inbox, self._outbox, self._shared):
            if descriptor >= 0:
                os.close(descriptor)
        self._inbox = self._outbox = self._shared = -1
        if self._memory is not None:
            with contextlib.suppress(DriverError):  # A GPU that is lost has no mapping either.
                self._memory.close()
            self._memory = None


class Mailbox:
    """The subject's end."""

    def __init__(
        self, inbox: int, outbox: int, *, shared: int = -1, device: torch.device, device_bytes: int
    ) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._memory: DeviceMemory | None = None
        if device_bytes:
            self._memory = device_memory.attach(shared, device.index or 0, device_bytes)

    def read(self, metas: Sequence[TensorMeta]) -> list[torch.Tensor]:
        """Dense copies of what the referee sent, on the CPU or, if it came that way, the GPU."""
        offsets, total = place(metas)
        memory = _memory_for(total, self._memory)
        tensors = []
        for meta, offset in zip(metas, offsets, strict=True):
            if memory is not None:
                tensors.append(_window(memory, meta, offset).clone())
                continue
            tensors.append(torch.empty(meta.shape, dtype=getattr(torch, meta.dtype)))
            read_at(self._inbox, raw_view(tensors[-1]), offset)
        if memory is not None:
            memory.wait()
        return tensors

    def write(self, tensors: Sequence[torch.Tensor], metas: Sequence[TensorMeta]) -> None:
        """Send the bytes of every plain tensor; the referee has made room."""
        _put(tensors, metas, self._memory, partial(write_mapped, self._outbox))


def _put(
    tensors: Sequence[torch.Tensor],
    metas: Sequence[TensorMeta],
    memory: DeviceMemory | None,
    write: Callable[[memoryview, int], None],
) -> None:
    """Bytes of every plain tensor at their place: in ``memory`` if all fit, else by ``write``."""
    offsets, total = place(metas)
    memory = _memory_for(total, memory)
    for tensor, meta, offset in zip(tensors, metas, offsets, strict=True):
        if not meta.plain:
            continue
        if memory is None:
            held = dense_bytes(tensor)
            write(raw_view(held), offset)
        else:
            _window(memory, meta, offset).copy_(tensor.detach())
    if memory is not None:
        memory.wait()


def _memory_for(total: int, memory: DeviceMemory | None) -> DeviceMemory | None:
    """The GPU memory that ``total`` bytes go through; None = the memory file."""
    return memory if memory is not None and 0 < total <= memory.size else None


def _window(memory: DeviceMemory, meta: TensorMeta, offset: int) -> torch.Tensor:
    """The tensor that ``meta`` describes, dense, at its place in the memory."""
    piece = memory.bytes[offset : offset + meta.nbytes]
    return piece.view(getattr(torch, meta.dtype)).view(meta.shape)


def _release(memory_file: int) -> None:
    """Give the pages of a large transfer back; a small file keeps its own for the next one."""
    if os.fstat(memory_file).st_size > KEPT_BYTES:
        os.ftruncate(memory_file, 0)
