"""Describes what forward returned, and copies the bytes of honest tensors, inside the subject.

Only exact ``torch.Tensor`` (or ``Parameter``) objects with ordinary storage are read, through
their raw address; anything lazier is described by type name and never asked for values.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from kernelpro.isolation.mail import Mailbox
from kernelpro.isolation.payload import (
    TensorMeta,
    dense_bytes,
    digest,
    dtype_name,
    flatten,
    raw_view,
    type_name,
)
from kernelpro.schema.problem import DTYPE_BYTES

FINGERPRINT_SAMPLES = 64
"""Elements read from each output right after its call, spread evenly. A late writer fills whole
tensors, so a few elements tell; reading them costs microseconds outside the timed region."""

_EXACT = (torch.Tensor, torch.nn.Parameter)


class Captured:
    """A value taken apart: JSON structure and tensors, which stay alive with this object."""

    def __init__(self, value: Any) -> None:
        self.tensors: list[torch.Tensor] = []
        self.structure = flatten(value, self.tensors, _opaque, by_key=True)

    def metas(self) -> list[TensorMeta]:
        """Description of every tensor."""
        return [describe(tensor) for tensor in self.tensors]

    def inside(self, others: Captured) -> list[int]:
        """Numbers of the tensors whose memory belongs to one of the ``others``."""
        theirs = {t.untyped_storage().data_ptr() for t in others.tensors if lazy_kind(t) is None}
        return [
            index
            for index, tensor in enumerate(self.tensors)
            if lazy_kind(tensor) is None
            and tensor.numel()
            and tensor.untyped_storage().data_ptr() in theirs
        ]

    def write(self, mailbox: Mailbox) -> None:
        """Send the bytes of every plain tensor."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            mailbox.write(self.tensors, self.metas())

    def digests(self) -> list[int | None]:
        """A digest of each plain tensor's bytes in row-major order."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            return [
                digest(tensor.detach().resolve_conj().resolve_neg().contiguous())
                if lazy_kind(tensor) is None
                else None
                for tensor in self.tensors
            ]

    def fingerprint(self) -> list[bytes | None]:
        """A few raw elements of each plain tensor."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            return [sample_elements(t) if lazy_kind(t) is None else None for t in self.tensors]


def _opaque(value: Any) -> Any:
    return {"object": type_name(value)[:200]}


def lazy_kind(tensor: Any) -> str | None:
    """Why the tensor's bytes cannot be trusted to exist, or None for a plain tensor."""
    if type(tensor) not in _EXACT:
        return "subclass"
    if shadowed(tensor):
        return "with methods of its own"
    if tensor.layout is not torch.strided:
        return str(tensor.layout)
    if tensor.device.type == "meta":
        return "meta"
    if torch._is_functional_tensor(tensor):
        return "functional"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "functorch"
    if torch._C._is_cow_tensor(tensor):  # type: ignore[attr-defined]
        return "copy-on-write"
    if dtype_name(tensor.dtype) not in DTYPE_BYTES:
        return dtype_name(tensor.dtype)
    return None


def shadowed(tensor: Any) -> list[str]:
    """Attributes of this one object that stand in front of methods of every tensor: whoever reads
    it through them runs the candidate's code."""
    return [name for name in vars(tensor) if hasattr(torch.Tensor, name)]


def describe(tensor: Any) -> TensorMeta:
    """Dtype, shape, stride, device and exact type, without calling into a subclass."""
    lazy = lazy_kind(tensor)
    name = type_name(tensor)
    if lazy is not None and type(tensor) not in _EXACT:
        return TensorMeta(
            dtype="unknown", shape=(), stride=(), device="unknown", type_name=name[:400],
            plain=False,
        )  # fmt: skip
    strided = tensor.layout is torch.strided
    return TensorMeta(
        dtype=dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()) if strided else (),
        device=str(tensor.device),
        type_name=name if lazy is None else f"{name}[{lazy}]",
        plain=lazy is None,
    )


def sample_elements(tensor: torch.Tensor) -> bytes:
    """Raw bytes of up to ``FINGERPRINT_SAMPLES`` elements, evenly spread in index order."""
    count = tensor.numel()
    if count == 0:
        return b""
    picks = sample_positions(count)
    if tensor.device.type == "cpu":
        return _gather_raw(tensor, picks)
    index = torch.tensor(picks, device=tensor.device)
    flat = tensor.detach().as_strided(tensor.shape, tensor.stride())
    chosen = flat.reshape(-1)[index] if flat.is_contiguous() else flat.take(index)
    held = dense_bytes(chosen)  # the view does not keep its tensor alive
    return bytes(raw_view(held))


def sample_positions(count: int) -> list[int]:
    """Evenly spread indices below ``count``, first and last included."""
    samples = min(count, FINGERPRINT_SAMPLES)
    return sorted({round(i * (count - 1) / max(1, samples - 1)) for i in range(samples)})


def _gather_raw(tensor: torch.Tensor, picks: Sequence[int]) -> bytes:
    """Read elements of a strided CPU tensor straight from memory."""
    base, itemsize = tensor.data_ptr(), tensor.element_size()
    shape, stride = tuple(tensor.shape), tensor.stride()
    parts = []
    for pick in picks:
        address = base
        for size, step in zip(reversed(shape), reversed(stride), strict=True):
            pick, position = divmod(pick, size)
            address += position * step * itemsize
        parts.append(ctypes.string_at(address, itemsize))
    return b"".join(parts)
