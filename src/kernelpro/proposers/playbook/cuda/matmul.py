"""Own matrix products with the epilogue fused into the registers that hold the sums.

Strict float32 runs on the CUDA cores (``simt``), or on the tensor cores as three TF32 products
that together keep its accuracy (``split``). TF32 and half
precision run there where the problem allows that arithmetic. The templates are in ``gemm.cuh``
and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.expressions import MEMORY_TYPES
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.plan.ir import Access, Axis, Buffer, Kernel, MatmulKernel, Store
from kernelpro.proposers.playbook.plan.ir import Node as PlanNode

THREADS = 256
TEMPLATES = {
    "simt": (), "tf32": (), "split": ("gemm_split.cuh",), "half": ("gemm_half.cuh",),
}  # fmt: skip
"""Method -> texts it needs beyond ``gemm.cuh``."""
WIDEST = {"simt": 4, "tf32": 2, "split": 2, "half": 2}
"""Neighbouring columns that one thread of each method holds."""
STATIC_SHARED_LIMIT = 48 * 1024
"""Bytes of shared memory a kernel gets without opting in (CUDA C++ guide, table of limits)."""


@dataclass(frozen=True, slots=True)
class _Operands:
    """How the tiles of both operands are read."""

    shape: str
    """Name of the Shape struct."""
    text: str


def supports(step: MatmulKernel, buffers: dict[str, Buffer], method: str) -> bool:
    """True if ``method``, a key of ``TEMPLATES``, can compute this product."""
    kinds = {buffers[step.lhs.buffer].dtype, buffers[step.rhs.buffer].dtype}
    if step.batch > 65535 or len(kinds) > 1:
        return False
    unit = 1 in step.lhs.strides[1:] and 1 in step.rhs.strides[1:]
    allowed = {"float32", "float16", "bfloat16"} if method == "half" else {"float32"}
    return unit and kinds <= allowed


def emit_matmul(
    step: MatmulKernel, buffers: dict[str, Buffer], knobs: CudaKnobs, method: str
) -> Emitted:
    """The product and its epilogue as one kernel. ``method``: a key of ``TEMPLATES``."""
    operands = _shape(step, buffers)
    epilogue = step.epilogue or plain_epilogue(step)
    functor, parameters = epilogue_functor(step, epilogue, buffers, knobs, WIDEST[method])
    body, shared = _call(step, buffers, knobs, method, operands.shape)
    kind = MEMORY_TYPES[buffers[step.lhs.buffer].dtype]
    own = [(f"const {kind}* __restrict__ {side}", access.buffer)
           for side, access in (("lhs", step.lhs), ("rhs", step.rhs))]  # fmt: skip
    everything = [*own, *parameters]
    fields = ", ".join(text.split()[-1] for text, _ in parameters)
    batch = "static_cast<int>(blockIdx.z)" if step.batch > 1 else "0"
    lines = [f"const {step.name}_epilogue epilogue{{{batch}{', ' if fields else ''}{fields}}};"]
    resident = knobs.resident_blocks if method == "split" else 0
    kernel = function(step.name, [p for p, _ in everything], THREADS, lines + body, blocks=resident)
    source = "\n".join([operands.text, functor, kernel])
    tiles = math.ceil(step.m / knobs.tile_m) * math.ceil(step.n / knobs.tile_n)
    launch = Launch(step.name, (tiles, 1, step.batch), (THREADS, 1, 1),
                    tuple(n for _, n in everything), shared)  # fmt: skip
    return Emitted(source, (launch,))


def _shape(step: MatmulKernel, buffers: dict[str, Buffer]) -> _Operands:
    """The Shape struct: sizes, strides, and whether 128-bit vectors fit."""
    vector = 4 if buffers[step.lhs.buffer].dtype == "float32" else 8
    a_wide = _wide(step.lhs, (step.m, step.k), vector)
    b_wide = _wide(step.rhs, (step.k, step.n), vector)
    values = {
        "m": step.m, "n": step.n, "k": step.k,
        "a_row": step.lhs.strides[1], "a_depth": step.lhs.strides[2],
        "b_depth": step.rhs.strides[1], "b_column": step.rhs.strides[2],
    }  # fmt: skip
    members = [f"  static constexpr long long {k} = {v};" for k, v in values.items()]
    members += [
        f"  static constexpr bool {k} = {'true' if v else 'false'};"
        for k, v in (("a_wide", a_wide), ("b_wide", b_wide))
    ]
    name = f"{step.name}_shape"
    return _Operands(name, f"struct {name} {{\n" + "\n".join(members) + "\n};\n")


def _wide(access: Access, sizes: tuple[int, int], vector: int) -> bool:
    """True if rows of the contiguous dimension start and end on vector borders."""
    contiguous = 0 if access.strides[1] == 1 else 1
    other = access.strides[2 - contiguous]
    batch = access.strides[0]
    return all(value % vector == 0 for value in (sizes[contiguous], other, batch, access.offset))


def plain_epilogue(step: MatmulKernel) -> Kernel:
    """An epilogue that only stores the sum."""
    strides = (step.m * step.n, step.n, 1) if step.batch > 1 else (step.n, 1)
    axes = (Axis(step.batch), Axis(step.m), Axis(step.n)) if step.batch > 1 else (
        Axis(step.m), Axis(step.n))  # fmt: skip
    access = Access(step.product, strides)
    node = PlanNode("load", "", (), "float32", access)
    return Kernel(step.name, axes, (node,), (Store(0, access),))


class _Epilogue(Body):
    """A body whose product comes from registers."""

    product = ""

    def load(self, node: int, target: str | None = None) -> list[str]:
        """Nothing to load for the product."""
        return [] if self._is_product(node) else super().load(node, target)

    def value(self, node: int) -> str:
        """The product is the accumulated sum of this lane."""
        if self._is_product(node):
            return "values[v]" if self.lanes > 1 else "values[0]"
        return super().value(node)

    def _is_product(self, node: int) -> bool:
        it = self.kernel.nodes[node]
        return it.kind == "load" and it.access is not None and it.access.buffer == self.product


def epilogue_functor(
    step: MatmulKernel, epilogue: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs, widest: int,
    extra: Sequence[str] = (),
) -> tuple[str, list[tuple[str, str]]]:  # fmt: skip
    """The epilogue as a struct of pointers, and its kernel parameters.

    ``widest``: columns it takes at a time where every access is aligned for that. ``extra``:
    further members, as lines.
    """
    lanes = widest if packs(epilogue, widest) else 1
    body = epilogue_body(step, epilogue, buffers, lanes=lanes, fast=knobs.fast_math)
    parameters = epilogue_parameters(step, body)
    before, inside, after = body.stores(epilogue.stores)
    roots = [s.node for s in epilogue.stores]
    constants = [i for i, level in enumerate(body.levels) if level == "constant"]
    statements = [*body.evaluate(constants), *before]
    statements += [*body.evaluate(body.needed(roots, "row"), inside), *after]
    head = coordinates_of(step, body)
    fields = [text.replace(" __restrict__", "") for text, _ in parameters]
    lines = [
        f"struct {step.name}_epilogue {{", f"  static constexpr int lanes = {lanes};",
        "  int batch;", *[f"  {field};" for field in fields],
        f"  KP_INLINE void operator()(int i, int j, const float (&values)[{lanes}]) const {{",
        *indent(indent([*head, *statements])), "  }", *extra, "};", "",
    ]  # fmt: skip
    return "\n".join(lines), parameters


def epilogue_body(
    step: MatmulKernel, epilogue: Kernel, buffers: dict[str, Buffer], *, lanes: int, fast: bool
) -> Body:
    """What writes the statements of an epilogue for ``lanes`` columns in ``values``."""
    body = _Epilogue(epilogue, buffers, lanes=lanes, fast=fast, stream=False)
    body.product = step.product
    return body


def epilogue_parameters(step: MatmulKernel, body: Body) -> list[tuple[str, str]]:
    """(declaration, buffer) of what the epilogue reads and writes; the sums are in registers."""
    stored = step.epilogue is None
    return [(text, name) for text, name in body.parameters() if stored or name != step.product]


def coordinates_of(step: MatmulKernel, body: Body, *, column: str = "j") -> list[str]:
    """Statements that name the coordinates of the epilogue's axes."""
    first, kind = len(body.kernel.axes) - 2, body.index_type()
    lines = [f"const {kind} c{first} = i;", f"const {kind} c{first + 1} = {column};"]
    return [f"const {kind} c0 = batch;", *lines] if step.batch > 1 else lines


def packs(epilogue: Kernel, lanes: int) -> bool:
    """True if every contiguous access of the epilogue is aligned for ``lanes`` columns."""
    inner = len(epilogue.axes) - 1
    accesses = [n.access for n in epilogue.nodes if n.kind == "load" and n.access]
    accesses += [s.access for s in epilogue.stores]
    return epilogue.axes[inner].size % lanes == 0 and all(
        a.strides[inner] != 1
        or (a.offset % lanes == 0
            and all(s % lanes == 0 for i, s in enumerate(a.strides) if i != inner))
        for a in accesses
    )  # fmt: skip


def _call(
    step: MatmulKernel, buffers: dict[str, Buffer], knobs: CudaKnobs, method: str, shape: str
) -> tuple[list[str], int]:
    """Statements of the kernel and its dynamic shared memory in bytes."""
    a = _operand("lhs", step.lhs, step.batch)
    b = _operand("rhs", step.rhs, step.batch)
    tile = f"{knobs.tile_m}, {knobs.tile_n}, {knobs.tile_k}"
    if method == "simt":
        return [f"gemm_simt<{shape}, {tile}>({a}, {b}, epilogue);"], 0
    if method in ("tf32", "split"):
        size = knobs.stages * (_tile_size(step, knobs, 0, 4, 8) + _tile_size(step, knobs, 1, 4, 8))
        more = f", {min(knobs.chunk_k, knobs.tile_k)}" if method == "split" else ""
        call = f"gemm_{method}<{shape}, {tile}, {knobs.stages}{more}>({a}, {b}, shared, epilogue);"
        return ["extern __shared__ __align__(16) float shared[];", call], size * 4
    bfloat = "false" if buffers[step.lhs.buffer].dtype == "float16" else "true"
    size = 2 * (_tile_size(step, knobs, 0, 8, 8) + _tile_size(step, knobs, 1, 8, 8))
    call = f"gemm_half<{shape}, {tile}, {bfloat}>({a}, {b}, shared, epilogue);"
    return ["extern __shared__ __align__(16) unsigned short shared[];", call], size * 2


def _tile_size(
    step: MatmulKernel, knobs: CudaKnobs, side: int, depth_pad: int, row_pad: int
) -> int:
    """Elements of one operand's tile in shared memory, padding included."""
    rows = knobs.tile_n if side else knobs.tile_m
    contiguous = (step.rhs.strides[1] if side else step.lhs.strides[2]) == 1
    if contiguous:
        return rows * (knobs.tile_k + depth_pad)
    return knobs.tile_k * (rows + row_pad)


def _operand(side: str, access: Access, batch: int) -> str:
    """Pointer to the operand of this block's batch."""
    terms = [side]
    if access.offset:
        terms.append(str(access.offset))
    if batch > 1 and access.strides[0]:
        terms.append(f"static_cast<long long>(blockIdx.z) * {access.strides[0]}")
    return " + ".join(terms)
