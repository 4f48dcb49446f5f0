"""CPU recipes: where to start, which knob each move turns, what to change after a failure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from kernelpro.proposers.playbook.candidate import Body
from kernelpro.proposers.playbook.cpu.body import cpu_body
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs, Multiplier, Staging
from kernelpro.proposers.playbook.cpu.mathlib import FAST
from kernelpro.proposers.playbook.plan.ir import Plan
from kernelpro.proposers.playbook.plan.planner import Grouping
from kernelpro.proposers.playbook.recipes.base import Task, Variant, few_habits
from kernelpro.schema.outcome import Outcome, Status

MAX_UNROLL = 8
MAX_LANES = 16
GROUPINGS: tuple[Grouping, ...] = ("single", "vertical", "full")
STAGINGS: tuple[Staging, ...] = ("none", "heavy", "all")


def lanes_of(task: Task) -> int:
    """float32 lanes of the widest vector; 8 where the device does not say."""
    return max(1, min(MAX_LANES, (task.device.simd_bits or 256) // 32))


class CpuBackend:
    """Implements ``recipes.base.Backend``."""

    name = "cpu"
    knobs_type = CpuKnobs
    neighbours = (
        "own_matmul", "library_matmul", "fuse_kernels", "widen_vectors", "unroll_more",
        "more_accumulators", "reduce_passes", "plain_stores", "streaming_stores", "smaller_tile",
        "larger_tile", "block_for_cache", "larger_chunk", "prefetch_rows", "two_pass",
        "approximate_math", "hoist_division", "unroll_less", "narrow_vectors", "fewer_threads",
        "use_threads", "split_kernels",
    )  # fmt: skip

    def initial(self, task: Task) -> Iterator[Variant]:
        """Full fusion first; then the variants that most often win."""
        best = CpuKnobs(lanes=lanes_of(task))
        fused = "Everything that can share a pass over memory does."
        if task.products:
            own = replace(best, matmul="own")
            yield Variant(own, "own packed product, epilogue per row block", fused)
            yield Variant(best, "library product, one fused kernel after it", fused)
        else:
            yield Variant(best, "full fusion, vectorised, all threads", fused)
        yield Variant(
            replace(best, staging="all", accumulators=4, unroll=4),
            "full fusion, rows staged in cache, unrolled by four",
            "Later passes read a scratch row instead of the inputs.",
        )
        yield Variant(replace(best, streaming=False), "full fusion, plain stores",
                      "Outputs may still be in the last-level cache for the reader.")  # fmt: skip
        yield Variant(replace(best, grouping="vertical"), "producer-consumer fusion only",
                      "Smaller kernels need fewer registers.")  # fmt: skip

    def designs(self, task: Task) -> Iterator[CpuKnobs]:
        """Who multiplies, fusion, staging, vectors and loop shape, in every combination."""
        best = CpuKnobs(lanes=lanes_of(task))
        matmuls: tuple[Multiplier, ...] = ("own", "library") if task.products else ("library",)
        fusions: tuple[Grouping, ...] = ("full", "vertical")
        for matmul, grouping, staging, lanes, unroll, accumulators, chunk, rows, fast in (
            itertools.product(
                matmuls, fusions, STAGINGS, (best.lanes, best.lanes // 2), (1, 2, 4), (2, 4, 8),
                (1024, 4096), (48, 96, 192), ((), tuple(sorted(FAST))),
            )
        ):  # fmt: skip
            yield replace(
                best, matmul=matmul, grouping=grouping, staging=staging, lanes=lanes,
                unroll=unroll, accumulators=accumulators, chunk=chunk, row_block=rows,
                fast_math=fast,
            )  # fmt: skip

    def drafts(self, task: Task) -> Iterator[CpuKnobs]:
        """One thread, scalar code, a kernel per operator; few good habits."""
        plain = CpuKnobs(lanes=1, unroll=1, accumulators=1, threads=1, streaming=False,
                         staging="none", grouping="single", chunk=1024)  # fmt: skip
        habits: list[dict[str, object]] = [
            {"grouping": "vertical"}, {"grouping": "full"}, {"lanes": 4},
            {"lanes": lanes_of(task)}, {"unroll": 4}, {"accumulators": 4}, {"staging": "all"},
            {"chunk": 4096}, {"fast_math": tuple(sorted(FAST))},
        ]  # fmt: skip
        if task.device.units > 1:
            habits.append({"threads": 0})
        if task.products:
            habits.append({"matmul": "own"})
        return few_habits(plain, habits)

    def grouping(self, knobs: CpuKnobs) -> Grouping:
        """How far to fuse."""
        return knobs.grouping

    def owns_products(self, knobs: CpuKnobs) -> bool:
        """True if our own product is wanted."""
        return knobs.matmul == "own"

    def body(self, plan: Plan, knobs: CpuKnobs, number: int, task: Task) -> Body:
        """C++ for one plan."""
        return cpu_body(plan, knobs, number)

    def move(self, name: str, knobs: CpuKnobs, task: Task) -> CpuKnobs | None:
        """``knobs`` after one move; None if it does not apply."""
        turn = _MOVES.get(name)
        changed = turn(knobs, task) if turn else None
        return None if changed == knobs else changed

    def repairs(self, knobs: CpuKnobs, outcome: Outcome, task: Task) -> Iterator[Variant]:
        """Undo what is most likely to blame for ``outcome``."""
        for title, changed in _repairs(knobs, outcome.status):
            if changed != knobs:
                yield Variant(changed, title, f"After {outcome.status.value}.")


def _repairs(knobs: CpuKnobs, status: Status) -> Iterator[tuple[str, CpuKnobs]]:
    library = replace(knobs, matmul="library")
    plain = replace(library, fast_math=(), staging="none", streaming=False)
    if status is Status.WRONG_RESULT:
        yield "accurate mathematics", replace(knobs, fast_math=(), flush_denormals=False)
    yield "library product", library
    if status in (Status.RUNTIME_ERROR, Status.LOAD_ERROR):
        yield "plain stores", replace(library, streaming=False)
    if status is Status.TIMEOUT:
        yield "all threads", replace(library, threads=0)
    yield "plain code: no staging, streaming or approximations", plain
    yield "narrower vectors", replace(plain, lanes=max(1, knobs.lanes // 2))
    yield "fewer operators per kernel", replace(plain, grouping="vertical")
    yield "scalar code", replace(plain, lanes=1)
    yield "one kernel per operator, scalar code", replace(plain, lanes=1, grouping="single")


def _step(options: tuple[str, ...], now: str, by: int) -> str:
    return options[min(max(options.index(now) + by, 0), len(options) - 1)]


def _fuse(k: CpuKnobs, _: Task) -> CpuKnobs:
    return replace(k, grouping=_step(GROUPINGS, k.grouping, 1))  # type: ignore[arg-type]


def _split(k: CpuKnobs, _: Task) -> CpuKnobs:
    return replace(k, grouping=_step(GROUPINGS, k.grouping, -1))  # type: ignore[arg-type]


def _stage_more(k: CpuKnobs, _: Task) -> CpuKnobs:
    return replace(k, staging=_step(STAGINGS, k.staging, 1))  # type: ignore[arg-type]


def _own_matmul(k: CpuKnobs, task: Task) -> CpuKnobs | None:
    return replace(k, matmul="own") if task.products else None


def _tile(k: CpuKnobs, task: Task, *, larger: bool) -> CpuKnobs | None:
    if k.matmul != "own" or not task.products:
        return None
    rows = k.row_block * 2 if larger else k.row_block // 2
    return replace(k, row_block=rows) if 24 <= rows <= 768 else None


def _cache_block(k: CpuKnobs, task: Task) -> CpuKnobs | None:
    if k.matmul == "own" and task.products:
        return replace(k, depth_block=k.depth_block // 2) if k.depth_block > 64 else None
    return replace(k, chunk=k.chunk // 2) if k.chunk > 512 else None


def _threads(k: CpuKnobs, task: Task, *, more: bool) -> CpuKnobs | None:
    if more:
        return replace(k, threads=0, serial_below=max(1024, k.serial_below // 4))
    now = k.threads or task.device.units
    return replace(k, threads=now // 2) if now > 1 else None


_MOVES: dict[str, Callable[[CpuKnobs, Task], CpuKnobs | None]] = {
    "fuse_elementwise": _fuse, "fuse_kernels": _fuse, "avoid_temporaries": _fuse,
    "split_kernels": _split,
    "fuse_epilogue": _own_matmul, "own_matmul": _own_matmul, "pack_operands": _own_matmul,
    "library_matmul": lambda k, t: replace(k, matmul="library") if t.products else None,
    "reduce_passes": _stage_more, "single_pass": _stage_more,
    "two_pass": lambda k, _: replace(k, staging="none"),
    "widen_vectors": lambda k, t: replace(k, lanes=lanes_of(t)),
    "narrow_vectors": lambda k, _: replace(k, lanes=k.lanes // 2) if k.lanes > 4 else None,
    "unroll_more": lambda k, _: replace(k, unroll=min(MAX_UNROLL, k.unroll * 2)),
    "unroll_less": lambda k, _: replace(k, unroll=max(1, k.unroll // 2)),
    "more_accumulators": lambda k, _: replace(
        k, accumulators=min(MAX_UNROLL, k.accumulators * 2)),
    "use_threads": lambda k, t: _threads(k, t, more=True),
    "fewer_threads": lambda k, t: _threads(k, t, more=False),
    "block_for_cache": _cache_block,
    "larger_chunk": lambda k, _: replace(k, chunk=k.chunk * 4) if k.chunk < 1 << 16 else None,
    "larger_tile": lambda k, t: _tile(k, t, larger=True),
    "smaller_tile": lambda k, t: _tile(k, t, larger=False),
    "approximate_math": lambda k, _: replace(k, fast_math=tuple(sorted(FAST))),
    "hoist_division": lambda k, _: replace(k, fast_math=tuple(sorted({*k.fast_math, "divide"}))),
    "prefetch_rows": lambda k, _: replace(k, prefetch=True),
    "flush_denormals": lambda k, _: replace(k, flush_denormals=True),
    "streaming_stores": lambda k, _: replace(
        k, streaming=True, stream_bytes=1 << 20 if k.streaming else k.stream_bytes),
    "plain_stores": lambda k, _: replace(k, streaming=False),
}  # fmt: skip
"""Move -> change of settings. Names not in ``diagnosis.moves`` are this recipe's own."""
