"""Our own float32 matrix product, with the kernel that follows run on rows still in the cache.

The scheme of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008):
the right operand is packed once into panels of register-tile width; each thread takes blocks of
rows, packs the left operand per depth block, and runs a register tile over the panels. A block of
finished rows stays in a thread-private buffer, where the following kernel (element-wise or
reducing along the row) picks it up: the plain product never reaches memory.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kernelpro.proposers.playbook.cpu.kernel import KernelText, c_name
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.cpu.loops import nest
from kernelpro.proposers.playbook.plan.ir import Access, Axis, Buffer, Kernel, MatmulKernel, Store
from kernelpro.proposers.playbook.plan.ir import Node as PlanNode
from kernelpro.proposers.playbook.plan.layout import rebuilt
from kernelpro.proposers.playbook.plan.matmul import split_axes

ROWS_BYTES = 1 << 20
"""Most bytes of finished rows a thread keeps before the epilogue (chosen: half of a common L2)."""
LEAST_ROWS = 32
"""Fewer rows than this do not repay packing the right operand (chosen)."""

GEMM = """\
#include <cstdlib>
// Scratch that lives as long as its thread: fresh pages on every call would cost more than packing.
struct Scratch {
  float* data = nullptr;
  int64_t size = 0;
  float* take(int64_t n) {
    if (n > size) {
      free(data);
      data = (float*)aligned_alloc(64, (n * 4 + 63) / 64 * 64);
      size = n;
    }
    return data;
  }
  ~Scratch() { free(data); }
};
// c[0..R) x [0..V*W) (+)= a[depth][R] * b[depth][V*W], accumulators in registers. They start from
// zero in each depth block: short sums of short sums round less than one long sum.
template <int R, int V> static inline __attribute__((always_inline)) void tile(
    int64_t depth, const float* __restrict a, const float* __restrict b, float* __restrict c,
    int64_t step, bool add) {
  F s[R][V];
#pragma GCC unroll 32
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) s[i][v] = F{};
  for (int64_t p = 0; p < depth; ++p) {
    F row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = *(const F*)(b + v * W);
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i) {
      const F left = splat(a[i]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) s[i][v] += left * row[v];
    }
    a += R;
    b += V * W;
  }
#pragma GCC unroll 32
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      F* const to = (F*)(c + i * step + v * W);
      *to = add ? *to + s[i][v] : s[i][v];
    }
}
"""
"""Shared by all products of a unit."""

_FUNCTION = """\
extern "C" void @name@(@parameters@) {
  constexpr int64_t BATCH = @batch@, M = @m@, N = @n@, K = @k@;
  constexpr int R = @rows@, V = @vectors@;
  constexpr int64_t NR = V * W, PANELS = (N + NR - 1) / NR, LD = PANELS * NR;
  constexpr int64_t DEPTH = @depth@;
@streaming@
  static thread_local Scratch packed;  // of the calling thread: calls may overlap
  float* const right = packed.take(BATCH * PANELS * K * NR);
  #pragma omp parallel@threads@
  {
    const int64_t all = omp_get_num_threads();
    #pragma omp for schedule(static)
    for (int64_t t = 0; t < BATCH * PANELS; ++t) {
      const float* from = rhs + @rhs_offset@ + t / PANELS * @rhs_batch@;
      const int64_t first = t % PANELS * NR, wide = N - first < NR ? N - first : NR;
      float* to = right + t * K * NR;
      for (int64_t p = 0; p < K; ++p, to += NR) {
        const float* line = from + p * @rhs_depth@ + first * @rhs_column@;
        for (int64_t j = 0; j < wide; ++j) to[j] = line[j * @rhs_column@];
        for (int64_t j = wide; j < NR; ++j) to[j] = 0.0f;
      }
    }
    // Equal blocks, a whole number per thread where there are enough rows.
    int64_t blocks = (M + @block@ - 1) / @block@;
    if (BATCH % all) blocks = (blocks + all - 1) / all * all;
    const int64_t height = ((M + blocks - 1) / blocks + R - 1) / R * R;
    blocks = (M + height - 1) / height;
    static thread_local Scratch left_scratch, row_scratch;
    float* const left = left_scratch.take(height * DEPTH);
    float* const finished = row_scratch.take(height * LD);
    #pragma omp for schedule(static)
    for (int64_t t = 0; t < BATCH * blocks; ++t) {
      const int64_t b = t / blocks, i0 = t % blocks * height;
      const int64_t count = M - i0 < height ? M - i0 : height;
      const float* from = lhs + @lhs_offset@ + b * @lhs_batch@ + i0 * @lhs_row@;
      for (int64_t p0 = 0; p0 < K; p0 += DEPTH) {
        const int64_t depth = K - p0 < DEPTH ? K - p0 : DEPTH;
        for (int64_t i = 0; i < count; i += R) {
          const int64_t tall = count - i < R ? count - i : R;
          float* to = left + i * depth;
          for (int64_t r = 0; r < R; ++r) {
            const float* line = from + (i + (r < tall ? r : 0)) * @lhs_row@ + p0 * @lhs_depth@;
            for (int64_t p = 0; p < depth; ++p) to[p * R + r] = line[p * @lhs_depth@];
          }
        }
        for (int64_t j = 0; j < PANELS; ++j) {
          const float* panel = right + (b * PANELS + j) * K * NR + p0 * NR;
          for (int64_t i = 0; i < count; i += R)
            tile<R, V>(depth, left + i * depth, panel, finished + i * LD + j * NR, LD, p0 > 0);
        }
      }
      const int64_t row = b * M + i0;
      const float* const @product@ = finished - row * LD;
      @rows_call@(row * @tasks@, (row + count) * @tasks@@arguments@);
    }
@fence@  }
}
"""


def fused_rows(step: MatmulKernel, kernel: Kernel | None) -> Kernel | None:
    """``kernel`` with the product's row axis apart and rows of padded length; None if unfit.

    Without a kernel: one that stores the product.
    """
    if kernel is None:
        kernel = _store_product(step)
    if any(name == step.product for name in kernel.writes()) and step.epilogue is not None:
        return None
    sizes = [step.batch * step.m, step.n]
    split = split_axes(replace(kernel, reuse=()), step, sizes)
    if split is None:
        return None
    lead, rows = 0, 1
    while rows < sizes[0] and lead < len(split.axes):
        rows *= split.axes[lead].size
        lead += 1
    if rows != sizes[0] or any(a.reduced for a in split.axes[:lead]):
        return None
    return split


def own_product(
    step: MatmulKernel, kernel: Kernel, buffers: dict[str, Buffer], knobs: CpuKnobs
) -> tuple[str, KernelText, tuple[str, ...]] | None:
    """(C++ text, the epilogue's text object, buffers to pass); None if the shapes do not suit."""
    kinds = {buffers[step.lhs.buffer].dtype, buffers[step.rhs.buffer].dtype}
    if kinds != {"float32"} or step.m < LEAST_ROWS or knobs.lanes < 4:
        return None
    width = knobs.tile_vectors * knobs.lanes
    padded = -(-step.n // width) * width
    kernel = replace(_padded(kernel, step, padded), name=f"{step.name}_epilogue")
    text = KernelText(kernel, buffers, knobs)
    lead = _leading(kernel, step)
    if not text.vector or text.lane < lead:
        return None
    made = nest(text)
    rows = step.batch * step.m
    parameters = [(kind, name) for kind, name in text.parameters() if name != step.product]
    source = _filled(step, text, knobs, made.tasks // rows, parameters)
    names = (step.lhs.buffer, step.rhs.buffer, *(name for _, name in parameters))
    return made.text + "\n\n" + source, text, names


def _filled(
    step: MatmulKernel, text: KernelText, knobs: CpuKnobs, tasks: int,
    parameters: list[tuple[str, str]],
) -> str:  # fmt: skip
    rows_call = f"{text.kernel.name}_rows"
    streaming = ""
    if text.streamed:
        test = " | ".join(f"(uintptr_t){c_name(out)}" for out in sorted(text.streamed))
        streaming = (f"  const auto rows = (({test}) & 63) == 0 ? {rows_call}<true> "
                     f": {rows_call}<false>;")  # fmt: skip
        rows_call = "rows"
    width = knobs.tile_vectors * knobs.lanes
    padded = -(-step.n // width) * width
    fit = max(knobs.tile_rows, ROWS_BYTES // (padded * 4))
    listed = ["const float* __restrict lhs", "const float* __restrict rhs"]
    listed += [f"{kind} {c_name(name)}" for kind, name in parameters]
    values = {
        "name": step.name, "batch": step.batch, "m": step.m, "n": step.n, "k": step.k,
        "parameters": ", ".join(listed),
        "rows": knobs.tile_rows, "vectors": knobs.tile_vectors,
        "depth": _even_share(step.k, knobs.depth_block), "streaming": streaming,
        "threads": f" num_threads({knobs.threads})" if knobs.threads else "",
        "rhs_offset": step.rhs.offset, "rhs_batch": step.rhs.strides[0],
        "rhs_depth": step.rhs.strides[1], "rhs_column": step.rhs.strides[2],
        "block": min(knobs.row_block, fit), "lhs_offset": step.lhs.offset,
        "lhs_batch": step.lhs.strides[0], "lhs_row": step.lhs.strides[1],
        "lhs_depth": step.lhs.strides[2], "product": c_name(step.product), "rows_call": rows_call,
        "tasks": tasks,
        "arguments": ", " + text.passed(),
        "fence": "    stream_done();\n" if text.streamed else "",
    }  # fmt: skip
    source = _FUNCTION
    for key, value in values.items():
        source = source.replace(f"@{key}@", str(value))
    return source


def _even_share(total: int, most: int) -> int:
    """Depth of equal blocks of at most about ``most``."""
    return -(-total // max(1, round(total / most)))


def _leading(kernel: Kernel, step: MatmulKernel) -> int:
    lead, rows = 0, 1
    while rows < step.batch * step.m:
        rows *= kernel.axes[lead].size
        lead += 1
    return lead


def _padded(kernel: Kernel, step: MatmulKernel, padded: int) -> Kernel:
    """The product's rows lie ``padded`` apart in the thread's buffer."""
    lead = _leading(kernel, step)

    def moved(access: Access) -> Access:
        if access.buffer != step.product or any(s.access is access for s in kernel.stores):
            return access
        strides = tuple(
            s // step.n * padded if i < lead else s for i, s in enumerate(access.strides)
        )
        return Access(access.buffer, strides, access.offset)

    return rebuilt(kernel, kernel.axes, moved)


def _store_product(step: MatmulKernel) -> Kernel:
    """Copies the finished rows to the product's own buffer, under another parameter name."""
    rows = step.batch * step.m
    load = Access(step.product, (step.n, 1))
    out = Access(step.product + "_out", (step.n, 1))
    nodes = (PlanNode("load", "", (), "float32", load),)
    size = math.prod((rows, step.n))
    assert size > 0
    return Kernel(step.name, (Axis(rows), Axis(step.n)), nodes, (Store(0, out),), step.covers)
