// Shared by every generated kernel. No headers: NVRTC and nvcc compile it alike.
#define KP_INLINE __device__ __forceinline__

template <int Bytes> struct Word;
template <> struct Word<16> { using type = uint4; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<4> { using type = unsigned int; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<1> { using type = unsigned char; };

// V consecutive elements as the widest possible words; Stream = evict first.
template <typename T, int V, bool Stream> KP_INLINE void load_pack(const T* address, T (&out)[V]) {
  constexpr int bytes = sizeof(T) * V > 16 ? 16 : sizeof(T) * V;
  constexpr int step = bytes / sizeof(T);
  using W = typename Word<bytes>::type;
#pragma unroll
  for (int part = 0; part < V / step; ++part) {
    union { W word; T items[step]; } pack;
    const W* source = reinterpret_cast<const W*>(address + part * step);
    pack.word = Stream ? __ldcs(source) : *source;
#pragma unroll
    for (int i = 0; i < step; ++i) out[part * step + i] = pack.items[i];
  }
}

template <typename T, int V, bool Stream> KP_INLINE void store_pack(T* address, const T (&in)[V]) {
  constexpr int bytes = sizeof(T) * V > 16 ? 16 : sizeof(T) * V;
  constexpr int step = bytes / sizeof(T);
  using W = typename Word<bytes>::type;
#pragma unroll
  for (int part = 0; part < V / step; ++part) {
    union { W word; T items[step]; } pack;
#pragma unroll
    for (int i = 0; i < step; ++i) pack.items[i] = in[part * step + i];
    W* target = reinterpret_cast<W*>(address + part * step);
    if (Stream) __stcs(target, pack.word); else *target = pack.word;
  }
}

KP_INLINE float from_half(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
KP_INLINE unsigned short to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
KP_INLINE float from_bfloat(unsigned short bits) {
  return __uint_as_float(static_cast<unsigned int>(bits) << 16);
}
KP_INLINE unsigned short to_bfloat(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// NaN propagates, as in torch.
template <typename T> KP_INLINE T nan_max(T a, T b) { return (a > b || a != a) ? a : b; }
template <typename T> KP_INLINE T nan_min(T a, T b) { return (a < b || a != a) ? a : b; }
KP_INLINE float nan_max(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
KP_INLINE float nan_min(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}
template <typename T> KP_INLINE T sign_of(T a) { return T((a > T(0)) - (a < T(0))); }

KP_INLINE float infinity32() { return __int_as_float(0x7f800000); }
KP_INLINE double infinity64() { return __longlong_as_double(0x7ff0000000000000LL); }

// Python's remainder: the sign of the divisor.
KP_INLINE float remainder_of(float a, float b) {
  const float r = fmodf(a, b);
  return (r != 0.0f && ((r < 0.0f) != (b < 0.0f))) ? r + b : r;
}
KP_INLINE double remainder_of(double a, double b) {
  const double r = fmod(a, b);
  return (r != 0.0 && ((r < 0.0) != (b < 0.0))) ? r + b : r;
}
template <typename T> KP_INLINE T integer_remainder(T a, T b) {
  const T r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
template <typename T> KP_INLINE T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : (base == -1 ? ((exponent & 1) ? -1 : 1) : 0);
  T result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) if (exponent & 1) result *= base;
  return result;
}

KP_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }
KP_INLINE double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }
KP_INLINE float softplus_of(float x) { return x > 20.0f ? x : log1pf(expf(x)); }
KP_INLINE double softplus_of(double x) { return x > 20.0 ? x : log1p(exp(x)); }
// x * tanh(log(1 + e^x)) through one exponential: tanh(log(u)) = (u^2 - 1) / (u^2 + 1).
KP_INLINE float mish_of(float x) {
  const float e = expf(fminf(x, 20.0f));
  const float n = e * (e + 2.0f);
  return x > 20.0f ? x : (x == x ? x * (n / (n + 2.0f)) : x);
}
KP_INLINE double mish_of(double x) { return x * tanh(softplus_of(x)); }
KP_INLINE float gelu_of(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
KP_INLINE double gelu_of(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }
KP_INLINE float gelu_tanh_of(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
KP_INLINE double gelu_tanh_of(double x) {
  return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

// Approximations on the special-function unit (chosen by the knob approximate_math).
KP_INLINE float fast_exp(float x) { return __expf(x); }
KP_INLINE float fast_divide(float a, float b) { return __fdividef(a, b); }
KP_INLINE float fast_sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
KP_INLINE float fast_tanh(float x) {
  const float e = __expf(2.0f * fminf(fmaxf(x, -15.0f), 15.0f));
  return x == x ? __fdividef(e - 1.0f, e + 1.0f) : x;
}
KP_INLINE float fast_gelu_tanh(float x) {
  return 0.5f * x * (1.0f + fast_tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
// 1 - erf by Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7), without erff's branches.
KP_INLINE float fast_gelu(float x) {
  const float a = fminf(fabsf(x), 12.0f), z = a * 0.70710678118654752f;
  const float t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
  float p = fmaf(1.061405429f, t, -1.453152027f);
  p = fmaf(fmaf(fmaf(p, t, 1.421413741f), t, -0.284496736f), t, 0.254829592f);
  const float half = 0.5f * a * (p * t * __expf(-z * z));
  return x < 0.0f ? -half : x - half;
}
KP_INLINE float fast_mish(float x) {
  const float e = __expf(fminf(x, 20.0f));
  const float n = e * (e + 2.0f);
  return x > 20.0f ? x : (x == x ? x * __fdividef(n, n + 2.0f) : x);
}
KP_INLINE float fast_softplus(float x) { return x > 20.0f ? x : __logf(1.0f + __expf(x)); }

// ---- reductions: an operation combines partial results; identity is neutral -------------------
template <typename T> struct Sum {
  using type = T;
  static KP_INLINE T identity() { return T(0); }
  static KP_INLINE T combine(T a, T b) { return a + b; }
};
template <typename T> struct Product {
  using type = T;
  static KP_INLINE T identity() { return T(1); }
  static KP_INLINE T combine(T a, T b) { return a * b; }
};
template <typename T> struct Lowest;
template <> struct Lowest<float> { static KP_INLINE float value() { return -infinity32(); } };
template <> struct Lowest<double> { static KP_INLINE double value() { return -infinity64(); } };
template <> struct Lowest<int> { static KP_INLINE int value() { return -2147483647 - 1; } };
template <> struct Lowest<long long> {
  static KP_INLINE long long value() { return -9223372036854775807LL - 1; }
};
template <typename T> struct Highest;
template <> struct Highest<float> { static KP_INLINE float value() { return infinity32(); } };
template <> struct Highest<double> { static KP_INLINE double value() { return infinity64(); } };
template <> struct Highest<int> { static KP_INLINE int value() { return 2147483647; } };
template <> struct Highest<long long> {
  static KP_INLINE long long value() { return 9223372036854775807LL; }
};
template <typename T> struct Max {
  using type = T;
  static KP_INLINE T identity() { return Lowest<T>::value(); }
  static KP_INLINE T combine(T a, T b) { return nan_max(a, b); }
};
template <typename T> struct Min {
  using type = T;
  static KP_INLINE T identity() { return Highest<T>::value(); }
  static KP_INLINE T combine(T a, T b) { return nan_min(a, b); }
};
struct Any {
  using type = int;
  static KP_INLINE int identity() { return 0; }
  static KP_INLINE int combine(int a, int b) { return a | b; }
};
struct All {
  using type = int;
  static KP_INLINE int identity() { return 1; }
  static KP_INLINE int combine(int a, int b) { return a & b; }
};
template <typename T> struct Place { T value; long long index; };
// NaN counts as largest (and smallest); the first index wins among equals.
template <typename T, bool Largest> struct Arg {
  using type = Place<T>;
  static KP_INLINE type identity() {
    return {Largest ? Lowest<T>::value() : Highest<T>::value(), 9223372036854775807LL};
  }
  static KP_INLINE type combine(type a, type b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.value != b.value) {
      return ((a.value > b.value) == Largest) ? a : b;
    }
    return a.index <= b.index ? a : b;
  }
};

// The largest value and sum(exp(value - largest)), updated together. Every row in which exp() has
// no finite answer (an infinity or NaN on top) gets a sum of NaN, as it does in two passes.
struct SoftmaxState {
  float top, sum;
  KP_INLINE float largest() const { return sum == 0.0f ? -infinity32() : top; }
  KP_INLINE float total() const { return sum == 0.0f ? sum / sum : sum + (top - top); }
};
template <bool Fast> struct SoftmaxSum {
  using type = SoftmaxState;
  static KP_INLINE float power(float x) { return Fast ? fast_exp(x) : expf(x); }
  static KP_INLINE type identity() { return {-3.402823466e38f, 0.0f}; }
  static KP_INLINE type include(type a, float x) {
    const float above = x - a.top, scale = power(-fabsf(above));
    return above > 0.0f ? type{x, fmaf(a.sum, scale, 1.0f)} : type{a.top, a.sum + scale};
  }
  static KP_INLINE type combine(type a, type b) {
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * power(a.top - top) + b.sum * power(b.top - top)};
  }
};

template <typename T> KP_INLINE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <typename T> KP_INLINE Place<T> shuffle_xor(Place<T> place, int mask) {
  return {shuffle_xor(place.value, mask), shuffle_xor(place.index, mask)};
}

KP_INLINE SoftmaxState shuffle_xor(SoftmaxState state, int mask) {
  return {shuffle_xor(state.top, mask), shuffle_xor(state.sum, mask)};
}

// All lanes of a group of Width (a power of two, at most 32) get the combined value.
template <typename Op, int Width> KP_INLINE typename Op::type reduce_lanes(typename Op::type value) {
#pragma unroll
  for (int mask = Width / 2; mask > 0; mask /= 2) {
    value = Op::combine(value, shuffle_xor(value, mask));
  }
  return value;
}

// All Threads of a block get the combined value. ``slots`` holds one value per warp and must not
// be in use by an earlier reduction that some warp may still be reading.
template <typename Op, int Threads>
KP_INLINE typename Op::type reduce_block(typename Op::type value, typename Op::type* slots) {
  constexpr int warps = Threads / 32;
  value = reduce_lanes<Op, 32>(value);
  if (warps == 1) return value;
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  value = lane < warps ? slots[lane] : Op::identity();
  return reduce_lanes<Op, 32>(value);
}
