"""CUDA recipes: where to start, which knob each move turns, what to change after a failure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kernelpro.proposers.playbook.candidate import Body
from kernelpro.proposers.playbook.cuda.hopper.emit import supports as supports_hopper
from kernelpro.proposers.playbook.cuda.hopper.tile import TILES
from kernelpro.proposers.playbook.cuda.knobs import OWN_PRODUCTS, CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.ir import Kernel, MatmulKernel, Plan
from kernelpro.proposers.playbook.plan.planner import Grouping
from kernelpro.proposers.playbook.recipes.base import Task, Variant, few_habits
from kernelpro.proposers.playbook.replay import worthwhile
from kernelpro.schema.hardware import HOPPER
from kernelpro.schema.outcome import Outcome, Status

MAX_THREADS = 1024
MAX_UNROLL = 8
MAX_REGISTER_WORDS = 128
TENSOR_TILE_K = 32
SPLIT: dict[str, Any] = {
    "matmul": "split_tf32", "tile_m": 128, "tile_n": 128, "tile_k": 32, "stages": 4, "chunk_k": 32,
    "resident_blocks": 1,
}  # fmt: skip
"""Float32 as three TF32 products; the best of eight settings on an H200
(``benchmarks/playbook_matmul.py``)."""
UNIT_STEP, LEAST_UNITS = 0.25, 0.5
"""Chosen. Below half of the SMs bandwidth falls; the largest block keeps an SM full by itself."""
GROUPINGS: tuple[Grouping, ...] = ("single", "vertical", "full")


class CudaBackend:
    """Implements ``recipes.base.Backend``."""

    name = "cuda"
    knobs_type = CudaKnobs
    neighbours = (
        "use_tensor_cores", "library_half", "fuse_kernels", "vectorize_loads", "unroll_more",
        "streaming_stores", "more_work_per_thread", "larger_block", "smaller_block",
        "persistent_grid", "reduce_passes", "bigger_grid", "approximate_math", "own_matmul",
        "library_matmul", "larger_tile", "smaller_tile", "less_work_per_thread", "smaller_grid",
        "unroll_less", "plain_stores", "narrow_vectors", "split_kernels",
    )  # fmt: skip

    def initial(self, task: Task) -> Iterator[Variant]:
        """Full fusion first; products by whoever is fastest under the allowed arithmetic."""
        best = CudaKnobs()
        fused = "Everything that can share a pass over memory does."
        if task.products:
            yield from _products(best, task)
        else:
            yield Variant(best, "full fusion, 128-bit accesses", fused)
        yield Variant(replace(best, unroll=4, stream=True, row_chunks=8),
                      "full fusion, four packs in flight, evict-first",
                      "More loads in flight per thread hide the memory latency.")  # fmt: skip
        yield Variant(replace(best, threads=512, row_chunks=2),
                      "full fusion, wide blocks", "More warps per block share a row.")  # fmt: skip
        yield Variant(replace(best, grouping="vertical"), "producer-consumer fusion only",
                      "Smaller kernels need fewer registers.")  # fmt: skip

    def designs(self, task: Task) -> Iterator[CudaKnobs]:
        """Fusion, work per thread, what stays in registers, and who multiplies, combined."""
        best = CudaKnobs()
        starts = [v.knobs for v in _products(best, task)] if task.products else [best]
        fusions: tuple[Grouping, ...] = ("full", "vertical")
        for start, grouping, unroll, words, stream in itertools.product(
            starts, fusions, (1, 4), (0, 64), (False, True)
        ):
            yield replace(start, grouping=grouping, unroll=unroll, register_words=words,
                          stream=stream)  # fmt: skip

    def drafts(self, task: Task) -> Iterator[CudaKnobs]:
        """Scalar accesses, a kernel per operator, rows read again; few good habits."""
        plain = CudaKnobs(lanes=1, register_words=0, split=1, online=False, staged=False,
                          grouping="single")  # fmt: skip
        habits: list[dict[str, object]] = [
            {"grouping": "full"}, {"lanes": 8}, {"unroll": 4}, {"stream": True},
            {"register_words": 64}, {"split": 0}, {"online": True},
            {"staged": True},
        ]  # fmt: skip
        if task.products:
            habits += [{"matmul": "simt"}, SPLIT]
        return few_habits(plain, habits)

    def grouping(self, knobs: CudaKnobs) -> Grouping:
        """How far to fuse."""
        return knobs.grouping

    def owns_products(self, knobs: CudaKnobs) -> bool:
        """True if our own product is wanted."""
        return knobs.matmul in OWN_PRODUCTS

    def body(self, plan: Plan, knobs: CudaKnobs, number: int, task: Task) -> Body:
        """CUDA for one plan."""
        return cuda_body(
            plan, knobs, number=number, units=task.device.units, precision=task.problem.precision,
            capability=task.device.capability,
        )  # fmt: skip

    def move(self, name: str, knobs: CudaKnobs, task: Task) -> CudaKnobs | None:
        """``knobs`` after one move; None if it does not apply."""
        turn = _MOVES.get(name)
        changed = turn(knobs, task) if turn else None
        return None if changed == knobs else changed

    def repairs(self, knobs: CudaKnobs, outcome: Outcome, task: Task) -> Iterator[Variant]:
        """Undo what is most likely to blame for ``outcome``."""
        for title, changed in _repairs(knobs, outcome.status):
            if changed != knobs:
                yield Variant(changed, title, f"After {outcome.status.value}.")


def _products(best: CudaKnobs, task: Task) -> Iterator[Variant]:
    """Starting points for problems with matrix products."""
    precision = task.problem.precision
    after = "The library multiplies; everything after it is one kernel."
    if _warpgroups(task):
        yield Variant(replace(best, matmul="wgmma"),
                      "own Hopper product (TMA, wgmma) with the epilogue in registers",
                      "Runs near the library's rate, and sums never reach memory.")  # fmt: skip
    if precision == "half":
        yield Variant(replace(best, matmul="library_half"),
                      "library product in bfloat16, one fused kernel after it",
                      after + " The problem allows half precision.")  # fmt: skip
    if precision in ("half", "tf32"):
        yield Variant(replace(best, matmul="tensor", tile_k=TENSOR_TILE_K),
                      "own tensor-core product with the epilogue in registers",
                      "Sums never reach memory before the epilogue.")  # fmt: skip
    library = Variant(best, "library product, one fused kernel after it", after)
    if precision != "strict":
        yield library
    else:
        title = "own float32 product on tensor cores, three TF32 products for one"
        why = (
            "Both parts of each operand keep float32 accuracy at the tensor cores' rate; the "
            "epilogue follows in registers."
        )
        own = Variant(replace(best, **SPLIT), title, why)
        yield from (own, library) if _fills(task) else (library, own)
    yield Variant(replace(best, matmul="simt"),
                  "own float32 product with the epilogue in registers",
                  "Sums never reach memory before the epilogue.")  # fmt: skip


def _fills(task: Task) -> bool:
    """True if every product has a tile of results for each multiprocessor."""
    tile = SPLIT["tile_m"] * SPLIT["tile_n"]
    return all(p.batch * p.m * p.n >= tile * task.device.units for p in task.products)


def _repairs(knobs: CudaKnobs, status: Status) -> Iterator[tuple[str, CudaKnobs]]:
    plain = CudaKnobs(grouping=knobs.grouping)
    if knobs.graph:
        yield "launches instead of a CUDA graph", replace(knobs, graph=False)
    if status is Status.WRONG_RESULT:
        yield "accurate mathematics", replace(knobs, fast_math=False)
        if knobs.matmul == "wgmma":
            yield "warp products", replace(knobs, matmul="tensor", tile_k=TENSOR_TILE_K)
        yield "float32 products", replace(knobs, fast_math=False, matmul="library")
    if status in (Status.RUNTIME_ERROR, Status.BUILD_ERROR, Status.LOAD_ERROR):
        if knobs.matmul == "wgmma":
            yield "warp products", replace(knobs, matmul="tensor", tile_k=TENSOR_TILE_K)
        yield "smaller tiles", replace(knobs, tile_m=64, tile_n=64, stages=2)
    yield "library product", replace(knobs, matmul="library")
    yield "default settings", plain
    yield "narrow accesses", replace(plain, lanes=1, register_words=0)
    yield "no split reductions", replace(plain, split=1)
    yield "fewer operators per kernel", replace(plain, grouping="vertical")
    yield "one kernel per operator", replace(plain, grouping="single")


def _has(task: Task, *, reduced: bool) -> bool:
    """True if some native kernel reduces (or some does not)."""
    kernels = [k for k in task.kernels if isinstance(k, Kernel)]
    return any(any(a.reduced for a in k.axes) == reduced for k in kernels)


def _group(k: CudaKnobs, by: int) -> CudaKnobs:
    place = GROUPINGS.index(k.grouping)
    return replace(k, grouping=GROUPINGS[min(max(place + by, 0), len(GROUPINGS) - 1)])


def _block(k: CudaKnobs, task: Task, *, larger: bool) -> CudaKnobs | None:
    """Threads of element-wise blocks, and of the groups that share a row."""
    threads = k.threads * 2 if larger else k.threads // 2
    chunks = k.row_chunks // 2 if larger else k.row_chunks * 2
    changed = k
    if _has(task, reduced=False) and 64 <= threads <= MAX_THREADS:
        changed = replace(changed, threads=threads)
    if _has(task, reduced=True) and 1 <= chunks <= 16:
        changed = replace(changed, row_chunks=chunks)
    return changed


def _warpgroups(task: Task) -> bool:
    """True if some product can run on Hopper's warpgroup instructions."""
    if task.device.capability != HOPPER:
        return False
    rounding = task.problem.precision == "half"
    return any(
        isinstance(step, MatmulKernel) and supports_hopper(step, plan.buffers, rounding=rounding)
        for plan in task.plans("full")
        for step in plan.steps
    )


def _tensor(k: CudaKnobs, task: Task) -> CudaKnobs | None:
    if not task.products:
        return None
    if _warpgroups(task):
        return replace(k, matmul="wgmma")
    if task.problem.precision == "strict":
        return replace(k, **SPLIT)
    return replace(k, matmul="tensor", tile_k=TENSOR_TILE_K)


def _library_half(k: CudaKnobs, task: Task) -> CudaKnobs | None:
    allowed = task.products and task.problem.precision == "half"
    return replace(k, matmul="library_half") if allowed else None


def _own(k: CudaKnobs, task: Task) -> CudaKnobs | None:
    if not task.products:
        return None
    tensor = _tensor(k, task)
    return tensor if tensor != k else replace(k, matmul="simt", tile_k=16)


def _tile(k: CudaKnobs, task: Task, *, larger: bool) -> CudaKnobs | None:
    if not task.products or k.matmul not in OWN_PRODUCTS:
        return None
    if k.matmul == "wgmma":
        names = list(TILES)
        place = names.index(k.wgmma_tile) + (-1 if larger else 1)
        return replace(k, wgmma_tile=names[place]) if 0 <= place < len(names) else None
    if larger:
        return replace(k, tile_m=128, tile_n=128) if k.tile_m < 128 else _deeper(k)
    return replace(k, tile_m=64) if k.tile_m > 64 else replace(k, tile_n=64)


def _deeper(k: CudaKnobs) -> CudaKnobs | None:
    """More of the reduction per stage (tensor tiles only: shared memory allows it)."""
    return replace(k, tile_k=64) if k.matmul == "tensor" and k.tile_k < 64 else None


def _registers(k: CudaKnobs, task: Task) -> CudaKnobs | None:
    """Rows stay in registers between passes, or are read fewer times."""
    if not _has(task, reduced=True) or (k.register_words >= MAX_REGISTER_WORDS and k.online):
        return None
    words = min(MAX_REGISTER_WORDS, max(32, k.register_words * 2))
    return replace(k, register_words=words, online=True)


def _grid(k: CudaKnobs, task: Task, *, larger: bool) -> CudaKnobs | None:
    """Blocks per row of long reductions, and how many columns a block shares."""
    if not _has(task, reduced=True):
        return None
    if larger:
        return replace(k, split=k.split * 2 if k.split > 1 else 8,
                       column_depth=min(32, k.column_depth * 2))  # fmt: skip
    return replace(k, split=1)


_MOVES: dict[str, Callable[[CudaKnobs, Task], CudaKnobs | None]] = {
    "fuse_elementwise": lambda k, _: _group(k, 1), "fuse_kernels": lambda k, _: _group(k, 1),
    "avoid_temporaries": lambda k, _: _group(k, 1), "split_kernels": lambda k, _: _group(k, -1),
    "fuse_epilogue": _own, "own_matmul": _own, "use_tensor_cores": _tensor,
    "library_half": _library_half,
    "library_matmul": lambda k, t: replace(k, matmul="library") if t.products else None,
    "vectorize_loads": lambda k, _: replace(k, lanes=8),
    "narrow_vectors": lambda k, _: replace(k, lanes=k.lanes // 2) if k.lanes > 1 else None,
    "unroll_more": lambda k, _: replace(k, unroll=min(MAX_UNROLL, k.unroll * 2)),
    "unroll_less": lambda k, _: replace(k, unroll=max(1, k.unroll // 2)),
    "more_work_per_thread": lambda k, t: _block(k, t, larger=False)
    if _has(t, reduced=True) else replace(k, unroll=min(MAX_UNROLL, k.unroll * 2)),
    "less_work_per_thread": lambda k, t: _block(k, t, larger=True),
    "larger_block": lambda k, t: _block(k, t, larger=True),
    "smaller_block": lambda k, t: _block(k, t, larger=False),
    "persistent_grid": lambda k, t: replace(k, blocks_per_unit=k.blocks_per_unit * 2 or 4)
    if _has(t, reduced=False) and k.blocks_per_unit < 16 else None,
    "fewer_multiprocessors": lambda k, t: replace(
        k, unit_share=k.unit_share - UNIT_STEP, blocks_per_unit=1, threads=MAX_THREADS,
        unroll=max(k.unroll, 4))
    if _has(t, reduced=False) and k.unit_share - UNIT_STEP >= LEAST_UNITS else None,
    "streaming_stores": lambda k, _: replace(k, stream=True),
    "plain_stores": lambda k, _: replace(k, stream=False),
    "approximate_math": lambda k, _: replace(k, fast_math=True),
    "vector_math": lambda k, _: replace(k, fast_math=True),
    "reduce_passes": _registers, "single_pass": _registers,
    "two_pass": lambda k, _: replace(k, online=False),
    "coalesce_loads": lambda k, _: replace(k, staged=True),
    "stage_in_shared": lambda k, _: replace(k, staged=True),
    "reduce_registers": lambda k, _: replace(
        k, register_words=k.register_words // 2, unroll=max(1, k.unroll // 2)),
    "bigger_grid": lambda k, t: _grid(k, t, larger=True),
    "split_k": lambda k, t: _grid(k, t, larger=True),
    "smaller_grid": lambda k, t: _grid(k, t, larger=False),
    "cuda_graph": lambda k, t: replace(k, graph=True)
    if any(worthwhile(plan, own_products=k.matmul in OWN_PRODUCTS)
           for plan in t.plans(k.grouping)) else None,
    "larger_tile": lambda k, t: _tile(k, t, larger=True),
    "smaller_tile": lambda k, t: _tile(k, t, larger=False),
}  # fmt: skip
"""Move -> change of settings. Names not in ``diagnosis.moves`` are this recipe's own."""
