"""Source text of the sample run: a reference module and a candidate written from knobs.

The text is only shown (reports, prompts, diffs); nothing here is built or run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import Template

REFERENCE = '''"""Root-mean-square norm over the last dimension, as in Llama-style transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return x * scale * self.weight


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]
'''

_CANDIDATE = Template('''"""$title."""

import torch
import torch.nn as nn

from kernelpro import inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
$includes
extern "C" void rms_norm(const float* x, const float* weight, float* y,
                         int64_t rows, int64_t features, double eps) {
$parallel    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * features;
        float* out = y + row * features;
$reduction
        const float scale = 1.0f / std::sqrt(sum / float(features) + float(eps));
$store
    }
}
"""

FLAGS = ($flags)
_module = inline.cpp(SOURCE, functions=["rms_norm"], flags=FLAGS)


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        rows = x.numel() // x.shape[-1]
        _module.rms_norm(x, self.weight, y, rows, x.shape[-1], self.eps)
        return y
''')


_HORIZONTAL_SUM = """
static inline float horizontal_sum(__m256 v) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

"""


@dataclass(frozen=True, slots=True)
class Knobs:
    """Settings of the sample candidate."""

    threads: int = 1
    accumulators: int = 1
    vector: bool = False
    streaming: bool = False
    flush_denormals: bool = False
    chunk_rows: int = 0
    prefetch_rows: int = 0

    def with_move(self, move: str) -> Knobs:
        """The knobs after one named move; equal to ``self`` if the move changes nothing."""
        if move == "use_threads":
            return replace(self, threads=8)
        if move == "fewer_threads":
            return replace(self, threads=max(1, self.threads // 2))
        if move == "more_accumulators":
            return replace(self, accumulators=min(8, self.accumulators * 2))
        if move == "widen_vectors":
            return replace(self, vector=True)
        if move == "streaming_stores":
            return replace(self, streaming=True)
        if move == "flush_denormals":
            return replace(self, flush_denormals=True)
        if move == "larger_tile":
            return replace(self, chunk_rows=min(256, max(8, self.chunk_rows * 2)))
        if move == "prefetch":
            return replace(self, prefetch_rows=self.prefetch_rows + 1)
        return self

    def as_dict(self) -> dict[str, int | bool]:
        """The knobs as JSON."""
        return {
            "threads": self.threads,
            "accumulators": self.accumulators,
            "vector": self.vector,
            "streaming": self.streaming,
            "flush_denormals": self.flush_denormals,
            "chunk_rows": self.chunk_rows,
            "prefetch_rows": self.prefetch_rows,
        }


def candidate_source(knobs: Knobs, title: str) -> str:
    """The candidate file for ``knobs``."""
    includes = "#include <immintrin.h>\n" if knobs.vector or knobs.streaming else ""
    if knobs.vector:
        includes += _HORIZONTAL_SUM
    parallel = ""
    if knobs.threads > 1:
        includes = "#include <omp.h>\n" + includes
        schedule = f"static, {knobs.chunk_rows}" if knobs.chunk_rows else "static"
        parallel = f"#pragma omp parallel for num_threads({knobs.threads}) schedule({schedule})\n"
    flags = ['"-O3"', '"-march=native"']
    if knobs.threads > 1:
        flags.append('"-fopenmp"')
    if knobs.flush_denormals:
        flags.append('"-mdaz-ftz"')
    return _CANDIDATE.substitute(
        title=title,
        includes=includes,
        parallel=parallel,
        reduction=_prefetch(knobs) + _reduction(knobs),
        store=_store(knobs),
        flags=", ".join(flags),
    )


def _prefetch(knobs: Knobs) -> str:
    if not knobs.prefetch_rows:
        return ""
    return f"        __builtin_prefetch(in + {knobs.prefetch_rows} * features);\n"


def _reduction(knobs: Knobs) -> str:
    pad = " " * 8
    names = [f"sum{i}" for i in range(knobs.accumulators)]
    if knobs.vector:
        lines = [f"{pad}__m256 {name} = _mm256_setzero_ps();" for name in names]
        lines.append(f"{pad}for (int64_t i = 0; i < features; i += {8 * len(names)}) {{")
        for number, name in enumerate(names):
            load = f"_mm256_loadu_ps(in + i + {8 * number})"
            lines.append(f"{pad}    const __m256 v{number} = {load};")
            lines.append(f"{pad}    {name} = _mm256_fmadd_ps(v{number}, v{number}, {name});")
        total = names[0]
        for name in names[1:]:
            total = f"_mm256_add_ps({total}, {name})"
        lines += [f"{pad}}}", f"{pad}const float sum = horizontal_sum({total});"]
        return "\n".join(lines)
    lines = [f"{pad}float {', '.join(f'{name} = 0.0f' for name in names)};"]
    lines.append(f"{pad}for (int64_t i = 0; i < features; i += {len(names)}) {{")
    lines += [f"{pad}    {n} += in[i + {k}] * in[i + {k}];" for k, n in enumerate(names)]
    lines += [f"{pad}}}", f"{pad}const float sum = {' + '.join(names)};"]
    return "\n".join(lines)


def _store(knobs: Knobs) -> str:
    pad = " " * 8
    if not knobs.streaming:
        return f"{pad}for (int64_t i = 0; i < features; ++i) out[i] = in[i] * scale * weight[i];"
    return "\n".join(
        (
            f"{pad}const __m256 s = _mm256_set1_ps(scale);",
            f"{pad}for (int64_t i = 0; i < features; i += 8) {{",
            f"{pad}    const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(in + i), s);",
            f"{pad}    _mm256_stream_ps(out + i, _mm256_mul_ps(v, _mm256_loadu_ps(weight + i)));",
            f"{pad}}}",
        )
    )
