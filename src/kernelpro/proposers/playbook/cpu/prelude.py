"""C++ text shared by the generated kernels: vector types, memory access, reductions.

GCC and Clang vector extensions keep the text readable and the lane count a knob; intrinsics
appear only where the language has no word for the instruction (streaming stores, masked access).
"""

from __future__ import annotations

PRELUDE = """\
#include <cstdint>
#if defined(__AVX__) && defined(__GNUC__) && !defined(__clang__)
#define _IMMINTRIN_H_INCLUDED  // GCC reads all of that header in a second; these are quick
#include <smmintrin.h>
#include <avxintrin.h>
#if defined(__AVX2__)
#include <avx2intrin.h>
#endif
#if defined(__AVX512F__)
#include <avx512fintrin.h>
#endif
#elif defined(__AVX__)
#include <immintrin.h>
#endif

constexpr int W = {lanes};                       // lanes of one vector
typedef float F __attribute__((vector_size(4 * W)));
typedef int32_t I __attribute__((vector_size(4 * W)));   // integers, and masks (0 or -1)
typedef double D __attribute__((vector_size(8 * W)));
typedef uint8_t B __attribute__((vector_size(W)));
typedef uint16_t H __attribute__((vector_size(2 * W)));
typedef F FU __attribute__((aligned(4), may_alias));
typedef I IU __attribute__((aligned(4), may_alias));
typedef B BU __attribute__((aligned(1), may_alias));
typedef H HU __attribute__((aligned(2), may_alias));
#define INLINE static inline __attribute__((always_inline))

struct Full {{ static constexpr bool value = true; }};    // all W lanes
struct Part {{ static constexpr bool value = false; }};   // the first n lanes

INLINE F splat(float x) {{ return x - F{{}}; }}
INLINE I splat(int32_t x) {{ return x - I{{}}; }}
INLINE I lane_index() {{ I r; for (int i = 0; i < W; ++i) r[i] = i; return r; }}
template <class T, class V> INLINE T as(V x) {{  // the same bits as another vector type
  T r;
  __builtin_memcpy(&r, &x, sizeof(T) < sizeof(V) ? sizeof(T) : sizeof(V));
  return r;
}}
INLINE I bits(F x) {{ return (I)x; }}
INLINE F as_float(I x) {{ return (F)x; }}
INLINE F fill(F x, int64_t n, float identity) {{
  return lane_index() < splat((int32_t)n) ? x : splat(identity);
}}
INLINE I fill(I x, int64_t n, int32_t identity) {{
  return lane_index() < splat((int32_t)n) ? x : splat(identity);
}}

template <class M> INLINE F load(M, const float* p, int64_t n) {{
  if constexpr (M::value) return *(const FU*)p;
#if defined(__AVX512F__)
  if constexpr (W == 16) return as<F>(_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p));
#endif
  F r = {{}};
  for (int64_t i = 0; i < n; ++i) r[i] = p[i];
  return r;
}}
// GCC turns the conversion of byte vectors into lane-by-lane code.
INLINE I widen_bytes(B b) {{
#if defined(__AVX512F__)
  if constexpr (W == 16) return as<I>(_mm512_cvtepu8_epi32(as<__m128i>(b)));
#endif
#if defined(__AVX2__)
  if constexpr (W == 8) {{
    __m128i wide = _mm_setzero_si128();
    __builtin_memcpy(&wide, &b, sizeof(B) < 16 ? sizeof(B) : 16);
    return as<I>(_mm256_cvtepu8_epi32(wide));
  }}
#endif
  return __builtin_convertvector(b, I);
}}
INLINE B narrow_bytes(I x) {{
#if defined(__AVX512F__)
  if constexpr (W == 16) return as<B>(_mm512_cvtepi32_epi8(as<__m512i>(x)));
#endif
  return __builtin_convertvector(x, B);
}}
template <class M> INLINE I load(M, const bool* p, int64_t n) {{
  B r = {{}};
  if constexpr (M::value) r = *(const BU*)p;
  else for (int64_t i = 0; i < n; ++i) r[i] = p[i];
  return widen_bytes(r) != 0;
}}
template <class M, class T> INLINE F gather(M, const T* p, int64_t n, int64_t step) {{
  F r = {{}};
  if constexpr (M::value) for (int i = 0; i < W; ++i) r[i] = (float)p[i * step];
  else for (int64_t i = 0; i < n; ++i) r[i] = (float)p[i * step];
  return r;
}}
template <class M> INLINE void store(M, float* p, F x, int64_t n) {{
  if constexpr (M::value) {{ *(FU*)p = x; return; }}
#if defined(__AVX512F__)
  if constexpr (W == 16) {{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), as<__m512>(x));
    return;
  }}
#endif
  for (int64_t i = 0; i < n; ++i) p[i] = x[i];
}}
template <class M> INLINE void store(M, bool* p, I x, int64_t n) {{
  B r = narrow_bytes(x) & 1;
  if constexpr (M::value) *(BU*)p = r;
  else for (int64_t i = 0; i < n; ++i) p[i] = r[i];
}}
template <class M, class T> INLINE void scatter(M, T* p, F x, int64_t n, int64_t step) {{
  for (int64_t i = 0; i < (M::value ? W : n); ++i) p[i * step] = (T)x[i];
}}
template <class M, class T> INLINE void scatter(M, T* p, I x, int64_t n, int64_t step) {{
  for (int64_t i = 0; i < (M::value ? W : n); ++i) p[i * step] = (T)(x[i] & 1);
}}
"""
"""Always present; ``lanes`` is 1, 4, 8 or 16."""

STREAM = """\
// Past the caches: the output is larger than they are and is not read again here.
template <class M> INLINE void stream(M m, float* p, F x, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (M::value && W == 16) { _mm512_stream_ps(p, as<__m512>(x)); return; }
#endif
#if defined(__AVX__)
  if constexpr (M::value && W == 8) { _mm256_stream_ps(p, as<__m256>(x)); return; }
  if constexpr (M::value && W == 4) { _mm_stream_ps(p, as<__m128>(x)); return; }
#endif
  store(m, p, x, n);
}
INLINE void stream_done() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}
"""
"""Needed by kernels with streaming stores."""

HALF = """\
struct bfloat16 { uint16_t bits; };
typedef uint32_t U __attribute__((vector_size(4 * W)));
INLINE F widen(H h) { return (F)(__builtin_convertvector(h, U) << 16); }
INLINE H narrow(F x) {  // round to nearest even; a NaN stays a quiet NaN
  U u = (U)x;
  U r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return __builtin_convertvector((I)(x != x ? (I)(U{} + 0x7fc0u) : (I)r), H);
}
template <class M> INLINE F load(M, const bfloat16* p, int64_t n) {
  H r = {};
  if constexpr (M::value) r = *(const HU*)p;
  else for (int64_t i = 0; i < n; ++i) r[i] = p[i].bits;
  return widen(r);
}
template <class M> INLINE void store(M, bfloat16* p, F x, int64_t n) {
  H r = narrow(x);
  if constexpr (M::value) *(HU*)p = r;
  else for (int64_t i = 0; i < n; ++i) p[i].bits = r[i];
}
INLINE F k_round_bfloat16(F x) { return widen(narrow(x)); }
typedef _Float16 E __attribute__((vector_size(2 * W)));
typedef E EU __attribute__((aligned(2), may_alias));
template <class M> INLINE F load(M, const _Float16* p, int64_t n) {
  E r = {};
  if constexpr (M::value) r = *(const EU*)p;
  else for (int64_t i = 0; i < n; ++i) r[i] = p[i];
  return __builtin_convertvector(r, F);
}
template <class M> INLINE void store(M, _Float16* p, F x, int64_t n) {
  E r = __builtin_convertvector(x, E);
  if constexpr (M::value) *(EU*)p = r;
  else for (int64_t i = 0; i < n; ++i) p[i] = r[i];
}
INLINE F k_round_float16(F x) { return __builtin_convertvector(__builtin_convertvector(x, E), F); }
"""
"""Needed by kernels that touch half-precision tensors."""

REDUCE = """\
// NaN wins, as in torch.
INLINE F k_maximum(F a, F b) { return ((a > b) | (a != a)) ? a : b; }
INLINE F k_minimum(F a, F b) { return ((a < b) | (a != a)) ? a : b; }
INLINE float max1(float a, float b) { return (a > b || a != a) ? a : b; }
INLINE float min1(float a, float b) { return (a < b || a != a) ? a : b; }
INLINE D widen_sum(F x) { return __builtin_convertvector(x, D); }
INLINE float total(D x) { double r = 0; for (int i = 0; i < W; ++i) r += x[i]; return (float)r; }
INLINE float product(F x) { float r = 1; for (int i = 0; i < W; ++i) r *= x[i]; return r; }
INLINE float largest(F x) {
  float r = x[0];
  for (int i = 1; i < W; ++i) r = max1(r, x[i]);
  return r;
}
INLINE float smallest(F x) {
  float r = x[0];
  for (int i = 1; i < W; ++i) r = min1(r, x[i]);
  return r;
}
INLINE int32_t any_lane(I x) { int32_t r = 0; for (int i = 0; i < W; ++i) r |= x[i]; return r; }
INLINE int32_t all_lanes(I x) { int32_t r = -1; for (int i = 0; i < W; ++i) r &= x[i]; return r; }
struct Best { F value; I index; };
// First index of the best value; a NaN beats every number, the first NaN every other.
INLINE void better_max(Best& b, F x, I i) {
  I nan = (x != x) & (b.value == b.value);
  I tie = ((x == b.value) | ((x != x) & (b.value != b.value))) & (i < b.index);
  I take = (x > b.value) | nan | tie;
  b.value = take ? x : b.value;
  b.index = take ? i : b.index;
}
INLINE void better_min(Best& b, F x, I i) {
  I nan = (x != x) & (b.value == b.value);
  I tie = ((x == b.value) | ((x != x) & (b.value != b.value))) & (i < b.index);
  I take = (x < b.value) | nan | tie;
  b.value = take ? x : b.value;
  b.index = take ? i : b.index;
}
"""
"""Needed by kernels that reduce, and by minimum, maximum and clamp."""

FLUSH = """\
struct Flush {  // subnormal operands and results count as zero while one of these lives
#if defined(__AVX__)
  unsigned saved = _mm_getcsr();
  Flush() { _mm_setcsr(saved | 0x8040u); }
  ~Flush() { _mm_setcsr(saved); }
#endif
};
"""
"""Needed where denormals are flushed."""
