"""The ``wgmma`` wrapper for one shape and type: the accumulators are spelled out as operands."""

from __future__ import annotations

PTX_TYPES: dict[str, str] = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}
"""dtype of the operands in memory -> what the tensor cores take; float32 is rounded to TF32."""
_SLICES = {"f16": 16, "bf16": 16, "tf32": 8}
"""Elements of the reduction in one instruction: 32 bytes."""
_PER_LINE = 8


def wgmma_name(dtype: str, columns: int) -> str:
    """Name of the wrapper, for example ``wgmma_bf16_n256``."""
    return f"wgmma_{PTX_TYPES[dtype]}_n{columns}"


def wgmma_function(dtype: str, columns: int) -> str:
    """CUDA text of ``wgmma.m64n<columns>k16`` (k8): float32 sums, operands in shared memory.

    ``TransA``, ``TransB`` = 1 where rows (columns), not the reduction, are contiguous; TF32 has
    no such form. ``accumulate`` = 0 starts the sums at zero.
    """
    count = columns // 2
    kind = PTX_TYPES[dtype]
    has_trans = kind != "tf32"
    trans = f", %{count + 3}, %{count + 4}" if has_trans else ""
    given = ', "n"(TransA), "n"(TransB)' if has_trans else ""
    check = (
        [] if has_trans else ['  static_assert(!TransA && !TransB, "TF32 operands are k-major");']
    )
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
        *check, "  asm volatile(",
        f'      "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n"',
        f'      "wgmma.mma_async.sync.aligned.m64n{columns}k{_SLICES[kind]}.f32.{kind}.{kind} "',
        *listed,
        f'      "%{count}, %{count + 1}, p, 1, 1{trans};\\n}}"',
        "      :",
        *bound,
        f'      : "l"(a), "l"(b), "r"(accumulate){given});',
        "}", "",
    ])  # fmt: skip
