"""Epilogues written by hand for products outside a plan: bias and activation, halves out.

An epilogue struct has ``batch`` first; ``pack(row, column, a, b)`` returns two neighbouring
results as packed halves, and ``row(i)`` is where row i of the result starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct

Activation = Literal["none", "relu", "gelu", "gelu_tanh", "silu"]
_CALLS: dict[Activation, str] = {
    "none": "{0}", "relu": "nan_max({0}, 0.0f)", "gelu": "fast_gelu({0})",
    "gelu_tanh": "fast_gelu_tanh({0})", "silu": "({0} * fast_sigmoid({0}))",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A struct's text and what the kernel needs to fill it."""

    name: str
    text: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]


def bias_activation(product: HopperProduct, *, bias: bool, activation: Activation) -> Epilogue:
    """``activation(sum + bias[column])``, rounded to the product's type. Arguments of the kernel
    after the maps: ``out`` and, with ``bias``, ``bias`` (same type, n long)."""
    name = f"{product.name}_epilogue"
    half = "bfloat" if product.dtype == "bfloat16" else "half"
    lines = []
    if bias:
        lines = [
            "    const unsigned two = *reinterpret_cast<const unsigned*>(bias + column);",
            f"    a += from_{half}(static_cast<unsigned short>(two & 0xffff));",
            f"    b += from_{half}(static_cast<unsigned short>(two >> 16));",
        ]
    call = _CALLS[activation]
    kind = "bf16x2" if product.dtype == "bfloat16" else "f16x2"
    ragged_or_batched = product.work == "ragged_depth" or product.batch > 1
    offset = f"(static_cast<long long>(batch) * {product.m} + i)" if ragged_or_batched else (
        "static_cast<long long>(i)")  # fmt: skip
    text = "\n".join([
        f"struct {name} {{", "  static constexpr int lanes = 8;", "  int batch;",
        "  unsigned short* out;", *(["  const unsigned short* bias;"] if bias else []),
        "  KP_INLINE unsigned pack(int i, int column, float a, float b) const {",
        *lines,
        f"    a = {call.format('a')};", f"    b = {call.format('b')};",
        "    unsigned packed;",
        f'    asm("cvt.rn.{kind}.f32 %0, %1, %2;" : "=r"(packed) : "f"(b), "f"(a));',
        "    return packed;", "  }",
        "  KP_INLINE unsigned short* row(int i) const {",
        f"    return out + {offset} * {product.n};", "  }",
        "  KP_INLINE void operator()(int i, int j, const float (&v)[8]) const {",
        "    uint4 all;",
        "    all.x = pack(i, j, v[0], v[1]); all.y = pack(i, j + 2, v[2], v[3]);",
        "    all.z = pack(i, j + 4, v[4], v[5]); all.w = pack(i, j + 6, v[6], v[7]);",
        "    *reinterpret_cast<uint4*>(row(i) + j) = all;", "  }", "};", "",
    ])  # fmt: skip
    parameters: Sequence[str] = ["unsigned short* __restrict__ out"]
    arguments = ["out"]
    if bias:
        parameters = [*parameters, "const unsigned short* __restrict__ bias"]
        arguments.append("bias")
    return Epilogue(name, text, tuple(parameters), tuple(arguments))
