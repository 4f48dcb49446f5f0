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

HALVES = ("float16", "bfloat16")
LANES = 8
"""Columns a thread holds after the exchange: one 16-byte store of halves."""
ALIGNMENT = 8
"""Halves in the 16 bytes that addresses and strides of a tensor map are multiples of."""
INDEX_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Operand:
    """How a tensor map describes one side: shape, strides and offset in elements."""

    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    offset: int
    k_major: bool


def supports(step: MatmulKernel, buffers: dict[str, Buffer], *, rounding: bool) -> bool:
    """True if this product can run on Hopper's warpgroup instructions.

    ``rounding``: float32 operands may be rounded to bfloat16 (the problem's precision is half).
    """
    kinds = {buffers[side.buffer].dtype for side in (step.lhs, step.rhs)}
    allowed = {*HALVES, *(["float32"] if rounding else [])}
    if len(kinds) != 1 or not kinds <= allowed or max(step.m, step.n, step.k) > INDEX_LIMIT // 2:
        return False
    if kinds == {"float32"} and not all(
        _dense(buffers[side.buffer]) for side in (step.lhs, step.rhs)
    ):
        return False  # a rounded copy keeps the strides of dense tensors only
    return _operand(step.lhs, step, left=True) is not None and (
        _operand(step.rhs, step, left=False) is not None
    )


def chosen_tile(step: MatmulKernel, knobs: CudaKnobs) -> HopperTile:
    """The tile of ``knobs``; without staging where the epilogue is not one row-major half."""
    tile = TILES[knobs.wgmma_tile]
    epilogue = step.epilogue or plain_epilogue(step)
    return tile if _stageable(epilogue) else replace(tile, stage_columns=0)


def emit_hopper(
    step: MatmulKernel, buffers: dict[str, Buffer], knobs: CudaKnobs, units: int
) -> tuple[Emitted, HopperProduct, HopperTile, tuple[str, ...]]:
    """The kernel and its launch, what it needs from the preamble, and Python lines before it."""
    left, right = _operand(step.lhs, step, left=True), _operand(step.rhs, step, left=False)
    assert left is not None and right is not None
    given = buffers[step.lhs.buffer].dtype
    dtype = "bfloat16" if given == "float32" else given
    product = HopperProduct(
        name=step.name, dtype=dtype, m=step.m, n=step.n, k=step.k, a_k_major=left.k_major,
        b_k_major=right.k_major, batch=step.batch, a_matrices=left.shape[0],
        b_matrices=right.shape[0],
    )  # fmt: skip
    epilogue = step.epilogue or plain_epilogue(step)
    half = all(buffers[s.access.buffer].dtype in HALVES for s in epilogue.stores)
    # Errors of 1e-6 vanish in the rounding of a half, and erff's branches would cost the tensor
    # cores a tenth of their time.
    knobs = replace(knobs, fast_math=knobs.fast_math or half)
    tile = chosen_tile(step, knobs)
    if tile.stage_columns and not half:
        tile = replace(tile, stage_columns=0)
    extra = _staged(step, epilogue, buffers, knobs) if tile.stage_columns else ()
    functor, parameters = epilogue_functor(step, epilogue, buffers, knobs, LANES, extra)
    names = [text.split()[-1] for text, _ in parameters]
    text = source.kernel(product, tile, f"{step.name}_epilogue", [t for t, _ in parameters], names)
    before, maps = [], []
    for side, operand, box in ((step.lhs, left, product.a_box(tile)),
                               (step.rhs, right, product.b_box(tile))):  # fmt: skip
        name = side.buffer
        if given == "float32":
            name = f"{step.name}_{'lhs' if operand is left else 'rhs'}"
            before.append(f"{name} = {side.buffer}.to(_torch.bfloat16)")
        maps.append(f"_inline.tensor_map({name}, {box}, shape={operand.shape}, "
                    f"strides={operand.strides}, offset={operand.offset}, swizzle=128, "
                    f"l2_promotion=256)")  # fmt: skip
    launch = Launch(
        step.name, (product.blocks(tile, units), 1, 1), (tile.threads, 1, 1),
        (*maps, *(name for _, name in parameters)), tile.shared_bytes(),
    )  # fmt: skip
    return Emitted(f"{functor}\n{text}", (launch,)), product, tile, tuple(before)


def _operand(access: Access, step: MatmulKernel, *, left: bool) -> _Operand | None:
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
    if any(value % ALIGNMENT for value in (line, between, access.offset)):
        return None
    return _Operand((matrices, lines, width), (between, line, 1), access.offset, k_major)


def _dense(buffer: Buffer) -> bool:
    """True if elements fill their memory without holes, in any order of the dimensions."""
    order = sorted(range(len(buffer.shape)), key=lambda i: -buffer.stride[i])
    shape = tuple(buffer.shape[i] for i in order)
    return tuple(buffer.stride[i] for i in order) == contiguous(shape)


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
