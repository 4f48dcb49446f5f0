"""A product of a plan as a Hopper kernel: which fit, their epilogue, and the launch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, indent
from kernelpro.proposers.playbook.cuda.hopper import source
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import TILES, HopperTile
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.matmul import (
    coordinates_of,
    epilogue_body,
    epilogue_functor,
    epilogue_parameters,
    packs,
    plain_epilogue,
)
from kernelpro.proposers.playbook.plan.axes import contiguous
from kernelpro.proposers.playbook.plan.ir import Access, Buffer, Kernel, MatmulKernel
from kernelpro.schema.problem import Precision

HALVES = ("float16", "bfloat16")
LANES = 8
"""Columns a thread holds after the exchange: one 16-byte store of halves."""
ALIGNMENT = {"float16": 8, "bfloat16": 8, "float32": 4}
"""Elements in the 16 bytes that addresses and strides of a tensor map are multiples of."""
INDEX_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Operand:
    """How a tensor map describes one side: shape, strides and offset in elements."""

    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    offset: int
    k_major: bool


def supports(step: MatmulKernel, buffers: dict[str, Buffer], precision: Precision) -> bool:
    """True if this product can run on Hopper's warpgroup instructions.

    float32 operands are rounded as ``precision`` allows: to bfloat16, by a copy, or to TF32, on
    their way to shared memory.
    """
    kinds = {buffers[side.buffer].dtype for side in (step.lhs, step.rhs)}
    if len(kinds) != 1 or max(step.m, step.n, step.k) > INDEX_LIMIT // 2:
        return False
    given = kinds.pop()
    dtype = _arithmetic(given, precision)
    if dtype is None:
        return False
    if given != dtype and not all(_dense(buffers[s.buffer]) for s in (step.lhs, step.rhs)):
        return False  # a rounded copy keeps the strides of dense tensors only
    sides = [
        _operand(step.lhs, step, dtype, left=True),
        _operand(step.rhs, step, dtype, left=False),
    ]
    return all(side is not None and (side.k_major or dtype in HALVES) for side in sides)


def _arithmetic(given: str, precision: Precision) -> str | None:
    """Type of the operands as the tensor map has them; float32 stands for TF32."""
    if given in HALVES:
        return given
    allowed: dict[Precision, str] = {"half": "bfloat16", "tf32": "float32"}
    return allowed.get(precision) if given == "float32" else None


def chosen_tile(step: MatmulKernel, knobs: CudaKnobs) -> HopperTile:
    """The tile of ``knobs``; where the epilogue is not one row-major half, what staging took
    goes to stages."""
    tile = TILES[knobs.wgmma_tile]
    if _stageable(step.epilogue or plain_epilogue(step)):
        return tile
    return unstaged(tile)


def unstaged(tile: HopperTile) -> HopperTile:
    """``tile`` with stores from registers and the stages that then fit."""
    tile = replace(tile, stage_columns=0)
    more = replace(tile, stages=tile.stages + 1)
    return tile if any(more.problems()) else more


def emit_hopper(
    step: MatmulKernel, buffers: dict[str, Buffer], knobs: CudaKnobs, units: int,
    precision: Precision,
) -> tuple[Emitted, HopperProduct, HopperTile, tuple[str, ...]]:  # fmt: skip
    """The kernel and its launch, what it needs from the preamble, and Python lines before it."""
    given = buffers[step.lhs.buffer].dtype
    dtype = _arithmetic(given, precision)
    assert dtype is not None
    left = _operand(step.lhs, step, dtype, left=True)
    right = _operand(step.rhs, step, dtype, left=False)
    assert left is not None and right is not None
    product = HopperProduct(
        name=step.name, dtype=dtype, m=step.m, n=step.n, k=step.k, a_k_major=left.k_major,
        b_k_major=right.k_major, batch=step.batch, a_matrices=left.shape[0],
        b_matrices=right.shape[0],
    )  # fmt: skip
    epilogue = step.epilogue or plain_epilogue(step)
    half = all(buffers[s.access.buffer].dtype in HALVES for s in epilogue.stores)
    # Operands have eleven bits or fewer: errors of 1e-6 do not show, and erff's branches would cost
    # the tensor cores a tenth of their time.
    knobs = replace(knobs, fast_math=True)
    tile = chosen_tile(step, knobs)
    if tile.stage_columns and not half:
        tile = unstaged(tile)
    extra = _staged(step, epilogue, buffers, knobs) if tile.stage_columns else ()
    functor, parameters = epilogue_functor(step, epilogue, buffers, knobs, LANES, extra)
    names = [text.split()[-1] for text, _ in parameters]
    text = source.kernel(product, tile, f"{step.name}_epilogue", [t for t, _ in parameters], names)
    before, maps = [], []
    tf32 = ', dtype="tf32"' if dtype == "float32" else ""
    for side, operand, box in ((step.lhs, left, product.a_box(tile)),
                               (step.rhs, right, product.b_box(tile))):  # fmt: skip
        name = side.buffer
        if given != dtype:
            name = f"{step.name}_{'lhs' if operand is left else 'rhs'}"
            before.append(f"{name} = {side.buffer}.to(_torch.bfloat16)")
        maps.append(f"_inline.tensor_map({name}, {box}, shape={operand.shape}, "
                    f"strides={operand.strides}, offset={operand.offset}, swizzle=128, "
                    f"l2_promotion=256{tf32})")  # fmt: skip
    if tile.stage_columns:
        maps.append(_result_map(step, epilogue, product))
    launch = Launch(
        step.name, (product.blocks(tile, units), 1, 1), (tile.threads, 1, 1),
        (*maps, *(name for _, name in parameters)), tile.shared_bytes(),
    )  # fmt: skip
    return Emitted(f"{functor}\n{text}", (launch,)), product, tile, tuple(before)


def _operand(access: Access, step: MatmulKernel, dtype: str, *, left: bool) -> _Operand | None:
    """The operand as a tensor map sees it; None if it breaks a rule of cuda.h."""
    batch, first, second = access.strides
    rows, depth = (step.m, step.k) if left else (step.n, step.k)
    row_stride, depth_stride = (first, second) if left else (second, first)
    if depth_stride == 1 and row_stride >= depth:
        lines, width, line, k_major = rows, depth, row_stride, True
    elif row_stride == 1 and depth_stride >= rows:
        lines, width, line, k_major = depth, rows, depth_stride, False
    else:
        return None
    matrices = step.batch if step.batch > 1 and batch else 1
    between = batch if matrices > 1 else lines * line
    if any(value % ALIGNMENT[dtype] for value in (line, between, access.offset)):
        return None
    return _Operand((matrices, lines, width), (between, line, 1), access.offset, k_major)


def _dense(buffer: Buffer) -> bool:
    """True if elements fill their memory without holes, in any order of the dimensions."""
    order = sorted(range(len(buffer.shape)), key=lambda i: -buffer.stride[i])
    shape = tuple(buffer.shape[i] for i in order)
    return tuple(buffer.stride[i] for i in order) == contiguous(shape)


def _result_map(step: MatmulKernel, epilogue: Kernel, product: HopperProduct) -> str:
    """Python expression of the tensor map of the one tensor that the epilogue writes."""
    access = epilogue.stores[0].access
    strides = access.strides if step.batch > 1 else (step.m * access.strides[0], *access.strides)
    shape = (step.batch, step.m, step.n)
    return (f"_inline.tensor_map({access.buffer}, {product.out_box()}, shape={shape}, "
            f"strides={strides}, offset={access.offset}, swizzle=128)")  # fmt: skip


def _stageable(epilogue: Kernel) -> bool:
    """True if the epilogue writes one tensor, rows contiguous and on 16-byte borders."""
    inner = len(epilogue.axes) - 1
    if len(epilogue.stores) != 1 or epilogue.axes[inner].size % LANES or not packs(epilogue, 2):
        return False
    access = epilogue.stores[0].access
    outer = (s for i, s in enumerate(access.strides) if i != inner)
    aligned = all(s % LANES == 0 for s in (*outer, access.offset))
    return access.strides[inner] == 1 and aligned


def _staged(
    step: MatmulKernel, epilogue: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs
) -> tuple[str, ...]:
    """Members ``pack`` and ``row`` of an epilogue that leaves its stores to the kernel."""
    body = epilogue_body(step, epilogue, buffers, lanes=2, fast=knobs.fast_math)
    before, inside, _ = body.stores(epilogue.stores)
    constants = [i for i, level in enumerate(body.levels) if level == "constant"]
    roots = [s.node for s in epilogue.stores]
    statements = [
        *coordinates_of(step, body), "const float values[2] = {a, b};",
        *body.evaluate(constants), *before, *body.evaluate(body.needed(roots, "row"), inside),
        "return out0[0] | static_cast<unsigned>(out0[1]) << 16;",
    ]  # fmt: skip
    store = epilogue.stores[0].access
    target = next(text.split()[-1] for text, name in epilogue_parameters(step, body)
                  if name == store.buffer)  # fmt: skip
    return (
        "  KP_INLINE unsigned pack(int i, int j, float a, float b) const {",
        *indent(indent(statements)), "  }",
        "  KP_INLINE unsigned short* row(int i) const {",
        *indent(indent(coordinates_of(step, body, column="0"))),
        f"    return {target} + ({body.address(store)});", "  }",
    )  # fmt: skip
