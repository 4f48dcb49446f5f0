"""The ``wgmma`` wrapper for one shape and type: the accumulators are spelled out as operands."""

from __future__ import annotations

from typing import Literal

HalfType = Literal["float16", "bfloat16"]
PTX_TYPES: dict[str, str] = {"float16": "f16", "bfloat16": "bf16"}
_PER_LINE = 8


def wgmma_name(dtype: str, columns: int) -> str:
    """Name of the wrapper, for example ``wgmma_bf16_n256``."""
    return f"wgmma_{PTX_TYPES[dtype]}_n{columns}"


def wgmma_function(dtype: str, columns: int) -> str:
    """CUDA text of ``wgmma.m64n<columns>k16``: float32 sums, both operands in shared memory.

    ``TransA``, ``TransB`` = 1 where rows (columns), not the reduction, are contiguous.
    ``accumulate`` = 0 starts the sums at zero.
    """
    count = columns // 2
    kind = PTX_TYPES[dtype]
    registers = [f"%{i}" for i in range(count)]
    listed = [
        f'      "{"{" if i == 0 else ""}{", ".join(registers[i : i + _PER_LINE])}'
        f'{"}, " if i + _PER_LINE >= count else ", "}"'
        for i in range(0, count, _PER_LINE)
    ]
    outputs = [f'"+f"(d[{i}])' for i in range(count)]
    bound = [
        "        " + ", ".join(outputs[i : i + _PER_LINE])
        + ("," if i + _PER_LINE < count else "")
        for i in range(0, count, _PER_LINE)
    ]  # fmt: skip
    return "\n".join([
        "template <int TransA, int TransB>",
        f"KP_INLINE void {wgmma_name(dtype, columns)}(float (&d)[{count}], unsigned long long a,",
        "    unsigned long long b, int accumulate) {",
        "  asm volatile(",
        f'      "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n"',
        f'      "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} "',
        *listed,
        f'      "%{count}, %{count + 1}, p, 1, 1, %{count + 3}, %{count + 4};\\n}}"',
        "      :",
        *bound,
        '      : "l"(a), "l"(b), "r"(accumulate), "n"(TransA), "n"(TransB));',
        "}", "",
    ])  # fmt: skip
