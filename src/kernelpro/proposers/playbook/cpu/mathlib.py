"""C++ text of the vector mathematics, float32, one entry per function, with its dependencies.

Polynomials are our own weighted minimax fits (Lawson iteration on Chebyshev nodes). Largest errors
seen against double precision over the whole range, in ulp (``test_mathlib``): sqrt 0.5; exp, log
1.1; log1p, tanh, sin, cos, rsqrt, exp2 1.6; expm1, softplus, log2, log10 2.1; erf, sigmoid, silu
2.6; sinh, cosh 3; mish 4.2. gelu is held to torch's own absolute error instead (its far tail is
exact zero in both). NaN, infinities, signed zeros and denormal results behave as in libm. ``FAST``
variants trade denormal results for speed.
"""

from __future__ import annotations

_EXP_POLY = """\
INLINE F exp_poly(F r) {  // e^r on +-ln2/2
  F q = r * 0x1.6db4e4p-10f + 0x1.123be0p-7f;
  q = q * r + 0x1.55545ep-5f;
  q = q * r + 0x1.55548ep-3f;
  q = q * r + 0.5f;
  return q * (r * r) + r + 1.0f;
}
"""

_EXP = """\
INLINE F k_exp(F x) {
  F c = x > 89.0f ? splat(89.0f) : x;
  I gone = c < -104.0f;  // kept out of the scaling: underflow there costs a microcode assist
  c = gone ? F{} : c;
#if defined(__AVX512F__)
  if constexpr (W == 16) {
    F n = as<F>(_mm512_roundscale_ps(as<__m512>(c * 0x1.715476p+0f), 8));
    F r = (c - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
    F y = as<F>(_mm512_scalef_ps(as<__m512>(exp_poly(r)), as<__m512>(n)));
    return gone ? F{} : y;
  }
#endif
  F n = (c * 0x1.715476p+0f + 0x1.8p23f) - 0x1.8p23f;
  F r = (c - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
  I e = __builtin_convertvector(n == n ? n : F{}, I);
  I half = e >> 1;  // two steps, so that the scale itself cannot overflow
  F y = exp_poly(r) * as_float((half + 127) << 23) * as_float((e - half + 127) << 23);
  return gone ? F{} : y;
}
"""

_EXP_FAST = """\
INLINE F k_exp(F x) {  // 4 ulp; results below 1.7e-38 become zero
  F c = x > 88.7f ? splat(88.7f) : x;
  c = c < -87.0f ? splat(-87.0f) : c;
  F n = (c * 0x1.715476p+0f + 0x1.8p23f) - 0x1.8p23f;
  F r = (c - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
  F q = r * 0x1.126b2cp-7f + 0x1.573c1cp-5f;
  q = q * r + 0x1.55543ep-3f;
  q = q * r + 0x1.fffdc2p-2f;
  F p = q * (r * r) + r + 1.0f;
  F y = as_float(bits(p) + (__builtin_convertvector(n == n ? n : F{}, I) << 23));
  y = x > 88.72283f ? splat(__builtin_inff()) : y;
  y = x < -87.0f ? F{} : y;
  return x == x ? y : x;
}
"""

_LOG = """\
INLINE F k_log(F x) {
  I tiny = x < 0x1p-126f;
  F s = tiny ? x * 0x1p23f : x;
  I e = ((bits(s) - 0x3f3504f3) >> 23);
  F m = as_float(bits(s) - (e << 23));
  F n = __builtin_convertvector(e, F) - (tiny ? splat(23.0f) : F{});
  F f = m - 1.0f;
  F q = f * -0x1.392e84p-4f + 0x1.05b73ap-3f;
  q = q * f - 0x1.0d9a50p-3f;
  q = q * f + 0x1.22cf52p-3f;
  q = q * f - 0x1.546f28p-3f;
  q = q * f + 0x1.99a060p-3f;
  q = q * f - 0x1.000232p-2f;
  q = q * f + 0x1.555554p-2f;
  F z = f * f;
  F low = z * f * q - 0.5f * z + n * -0x1.bd0106p-13f;
  F y = (f + low) + n * 0x1.63p-1f;
  y = x == __builtin_inff() ? x : y;
  y = x < 0.0f ? splat(__builtin_nanf("")) : y;
  y = x == 0.0f ? splat(-__builtin_inff()) : y;
  return x == x ? y : x;
}
"""

_EXPM1 = """\
INLINE F k_expm1(F x) {
  F q = x * 0x1.a3f452p-13f + 0x1.6f88b8p-10f;
  q = q * x + 0x1.110ddcp-7f;
  q = q * x + 0x1.555130p-5f;
  q = q * x + 0x1.555558p-3f;
  q = q * x + 0x1.000002p-1f;
  F near = q * (x * x) + x;
  F size = x < 0.0f ? -x : x;
  F y = size < 0.5f ? near : k_exp(x) - 1.0f;
  return as_float(bits(y) | (bits(x) & (int32_t)0x80000000));
}
"""

_LOG1P = """\
INLINE F k_log1p(F x) {
  F u = 1.0f + x;
  F lost = (x - (u - 1.0f)) / u;
  F y = k_log(u);
  F size = lost < 0.0f ? -lost : lost;
  y = size < 1.0f ? y + lost : y;
  F small = x < 0.0f ? -x : x;
  return small < 0x1p-24f ? x : y;
}
"""

_SQRT = """\
INLINE F k_sqrt(F x) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return as<F>(_mm512_sqrt_ps(as<__m512>(x)));
#endif
#if defined(__AVX__)
  if constexpr (W == 8) return as<F>(_mm256_sqrt_ps(as<__m256>(x)));
  if constexpr (W == 4) return as<F>(_mm_sqrt_ps(as<__m128>(x)));
#endif
  F r;
  for (int i = 0; i < W; ++i) r[i] = __builtin_sqrtf(x[i]);
  return r;
}
"""

_DIVIDE_FAST = """\
INLINE F k_divide(F a, F b) {  // 3 ulp: reciprocal estimate and one Newton step
#if defined(__AVX512F__)
  if constexpr (W == 16) {
    F y = as<F>(_mm512_rcp14_ps(as<__m512>(b)));
    F better = y * (2.0f - b * y);
    return a * (better == better ? better : y);
  }
#endif
  return a / b;
}
"""

_RSQRT_FAST = """\
INLINE F k_rsqrt(F x) {  // 2 ulp: estimate and one Newton step
#if defined(__AVX512F__)
  if constexpr (W == 16) {
    F y = as<F>(_mm512_rsqrt14_ps(as<__m512>(x)));
    F better = y * (1.5f - 0.5f * x * y * y);
    return better == better ? better : y;
  }
#endif
  return 1.0f / k_sqrt(x);
}
"""

_TANH = """\
INLINE F k_tanh(F x) {
  F size = as_float(bits(x) & 0x7fffffff);
  F z = x * x;
  F q = z * -0x1.830be6p-8f + 0x1.54e014p-6f;
  q = q * z - 0x1.b89ed8p-5f;
  q = q * z + 0x1.1109dcp-3f;
  q = q * z - 0x1.55553ep-2f;
  F near = size + size * (z * q);
  F far = 1.0f - k_divide(splat(2.0f), k_exp(2.0f * size) + 1.0f);
  return as_float(bits(size < 0.6f ? near : far) | (bits(x) & (int32_t)0x80000000));
}
"""

_ERF = """\
INLINE F k_erf(F x) {
  F size = as_float(bits(x) & 0x7fffffff);
  F z = x * x;
  F q = z * 0x1.662516p-14f - 0x1.acf7f8p-11f;
  q = q * z + 0x1.5513f2p-8f;
  q = q * z - 0x1.b8162ap-6f;
  q = q * z + 0x1.ce2e60p-4f;
  q = q * z - 0x1.812744p-2f;
  q = q * z + 0x1.20dd76p+0f;
  F near = x * q;
  F t = size > 4.0f ? splat(4.0f) : size;  // erfc(4) is below half an ulp of 1
  F g = t * 0x1.520704p-16f - 0x1.bc30a4p-12f;  // -log(erfc(t))
  g = g * t + 0x1.0df20ep-8f;
  g = g * t - 0x1.9956c8p-6f;
  g = g * t + 0x1.baab56p-4f;
  g = g * t + 0x1.445e48p-1f;
  g = g * t + 0x1.2121fep+0f;
  g = g * t - 0x1.47c678p-13f;
  F far = 1.0f - k_exp(-g);
  far = as_float(bits(far) | (bits(x) & (int32_t)0x80000000));
  return size < 0.875f ? near : far;
}
"""

_EXP2 = """\
INLINE F k_exp2(F x) {  // the whole part is exact: only the fraction goes through e^x
  F c = x > 129.0f ? splat(129.0f) : x;
  I gone = c < -150.0f;
  c = gone ? F{} : c;
  F n = k_round(c);
  I e = __builtin_convertvector(n == n ? n : F{}, I);
  I half = e >> 1;
  F y = exp_poly((c - n) * 0x1.62e430p-1f);
  y = y * as_float((half + 127) << 23) * as_float((e - half + 127) << 23);
  return gone ? F{} : y;
}
"""

_SINH = """\
INLINE F k_sinh(F x) {
  F size = as_float(bits(x) & 0x7fffffff);
  F e = k_expm1(size);
  F near = 0.5f * (e + k_divide(e, e + 1.0f));
  F r = k_exp(0.5f * size);  // e^size alone would overflow too early
  F far = 0.5f * r * r;
  return as_float(bits(size > 20.0f ? far : near) | (bits(x) & (int32_t)0x80000000));
}
"""

_GELU = """\
INLINE F k_gelu(F x) {  // x times the normal distribution function, by its complement erfc
  F size = as_float(bits(x) & 0x7fffffff);
  F t = size * 0x1.6a09e6p-1f;
  F c = t > 5.0f ? splat(5.0f) : t;
  F g = c * -0x1.a9f3c8p-25f + 0x1.884070p-20f;  // -log(erfc(c))
  g = g * c - 0x1.3c1b56p-16f;
  g = g * c + 0x1.226b7ep-13f;
  g = g * c - 0x1.458dcap-11f;
  g = g * c + 0x1.92b00ap-10f;
  g = g * c + 0x1.510296p-14f;
  g = g * c - 0x1.3d3438p-6f;
  g = g * c + 0x1.a55890p-4f;
  g = g * c + 0x1.45f09ep-1f;
  g = g * c + 0x1.20dd8ap+0f;
  g = g * c - 0x1.ec24ccp-27f;
  F tail = 0.5f * k_exp(-g);
  tail = t > 5.0f ? F{} : tail;
  return x * (x < 0.0f ? tail : 1.0f - tail);
}
"""

_SINCOS = """\
// Four-step reduction by pi/2, good to |x| < 8192; larger lanes go to libm.
INLINE F sincos_poly(F x, int32_t shift) {
  F n = (x * 0x1.45f306p-1f + 0x1.8p23f) - 0x1.8p23f;
  I quadrant = __builtin_convertvector(n == n ? n : F{}, I) + shift;
  F r = ((x - n * 0x1.92p+0f) - n * 0x1.fb4p-12f) - n * 0x1.4442p-24f;
  r = r - n * 0x1.a308d4p-41f;
  F z = r * r;
  F s = r + r * (z * (-0x1.555546p-3f + z * (0x1.11073cp-7f + z * -0x1.9943f2p-13f)));
  F c = 1.0f + z * (-0.5f + z * (0x1.55554ap-5f + z * (-0x1.6c087ep-10f + z * 0x1.99eb9cp-16f)));
  F y = (quadrant & 1) != 0 ? c : s;
  return (quadrant & 2) != 0 ? -y : y;
}
"""


def _sine(name: str, shift: int) -> str:
    return f"""\
INLINE F k_{name}(F x) {{
  F size = as_float(bits(x) & 0x7fffffff);
  F y = sincos_poly(x, {shift});
  if (any_lane(!(size < 8192.0f))) {{
    for (int i = 0; i < W; ++i) if (!(size[i] < 8192.0f)) y[i] = __builtin_{name}f(x[i]);
  }}
  return y;
}}
"""


def _lanewise(name: str, arguments: int = 1) -> str:
    parameters = ", ".join(f"F {p}" for p in "xy"[:arguments])
    call = ", ".join(f"{p}[i]" for p in "xy"[:arguments])
    return f"""\
INLINE F k_{name}({parameters}) {{
  F r;
  for (int i = 0; i < W; ++i) r[i] = __builtin_{name}f({call});
  return r;
}}
"""


_ROUNDING = {"floor": 9, "ceil": 10, "trunc": 11, "round": 8}


def _rounding(name: str) -> str:
    builtin = "nearbyint" if name == "round" else name
    return f"""\
INLINE F k_{name}(F x) {{
#if defined(__AVX512F__)
  if constexpr (W == 16) return as<F>(_mm512_roundscale_ps(as<__m512>(x), {_ROUNDING[name]}));
#endif
  F r;
  for (int i = 0; i < W; ++i) r[i] = __builtin_{builtin}f(x[i]);
  return r;
}}
"""


FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "exp_poly": (_EXP_POLY, ()), "exp": (_EXP, ("exp_poly",)), "log": (_LOG, ()),
    "expm1": (_EXPM1, ("exp",)),
    "log1p": (_LOG1P, ("log",)), "sqrt": (_SQRT, ()), "tanh": (_TANH, ("exp", "divide")),
    "erf": (_ERF, ("exp",)), "sincos": (_SINCOS, ("reduce",)),
    "sin": (_sine("sin", 0), ("sincos",)), "cos": (_sine("cos", 1), ("sincos",)),
    "rsqrt": ("INLINE F k_rsqrt(F x) { return 1.0f / k_sqrt(x); }\n", ("sqrt",)),
    "divide": ("INLINE F k_divide(F a, F b) { return a / b; }\n", ()),
    "exp2": (_EXP2, ("exp_poly", "round")),
    "log2": ("INLINE F k_log2(F x) { return k_log(x) * 0x1.715476p+0f; }\n", ("log",)),
    "log10": ("INLINE F k_log10(F x) { return k_log(x) * 0x1.bcb7b2p-2f; }\n", ("log",)),
    "sinh": (_SINH, ("expm1", "divide")),
    "cosh": ("INLINE F k_cosh(F x) {  // e^x alone would overflow too early\n"
             "  F r = k_exp(0.5f * as_float(bits(x) & 0x7fffffff));\n"
             "  F h = 0.5f * r * r;\n"
             "  return h + k_divide(splat(0.25f), h);\n}\n", ("exp", "divide")),
    "sigmoid": ("INLINE F k_sigmoid(F x) { return k_divide(splat(1.0f), 1.0f + k_exp(-x)); }\n",
                ("exp", "divide")),
    "silu": ("INLINE F k_silu(F x) { return k_divide(x, 1.0f + k_exp(-x)); }\n",
             ("exp", "divide")),
    "gelu": (_GELU, ("exp",)),
    "gelu_tanh": (
        "INLINE F k_gelu_tanh(F x) {  // x * sigmoid(2 u), the same function\n"
        "  F u = 0x1.988454p-1f * (x + 0x1.6e4e26p-5f * x * x * x);\n"
        "  return k_divide(x, 1.0f + k_exp(-2.0f * u));\n}\n", ("exp", "divide")),
    "softplus": ("INLINE F k_softplus(F x) { return k_log1p(k_exp(x)); }\n", ("exp", "log1p")),
    "mish": ("INLINE F k_mish(F x) {  // tanh(log(1 + e^x)) = n / (n + 2), n = e (e + 2)\n"
             "  F e = k_exp(x > 20.0f ? splat(20.0f) : x);\n"
             "  F n = e * (e + 2.0f);\n"
             "  return x > 20.0f ? x : x * k_divide(n, n + 2.0f);\n}\n", ("exp", "divide")),
    "sign": ("INLINE F k_sign(F x) {\n"
             "  return (x > 0.0f ? splat(1.0f) : F{}) - (x < 0.0f ? splat(1.0f) : F{});\n}\n", ()),
    "abs": ("INLINE F k_abs(F x) { return as_float(bits(x) & 0x7fffffff); }\n", ()),
    "relu": ("INLINE F k_relu(F x) { return x < 0.0f ? F{} : x; }\n", ()),
    "minimum": ("", ("reduce",)), "maximum": ("", ("reduce",)),
    "round_float16": ("", ("half",)), "round_bfloat16": ("", ("half",)),
    "remainder": ("INLINE F k_remainder(F x, F y) {\n  F r;\n"
                  "  for (int i = 0; i < W; ++i) {\n"
                  "    float m = __builtin_fmodf(x[i], y[i]);\n"
                  "    r[i] = (m != 0 && (m < 0) != (y[i] < 0)) ? m + y[i] : m;\n"
                  "  }\n  return r;\n}\n", ()),
    **{name: (_rounding(name), ()) for name in _ROUNDING},
    **{name: (_lanewise(name), ()) for name in (
        "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erfc")},
    **{name: (_lanewise(name, 2), ()) for name in ("pow", "atan2", "fmod")},
}  # fmt: skip
"""Name -> (C++ text, names it needs first). ``reduce`` and ``half`` are prelude parts."""

FAST = {
    "exp": (_EXP_FAST, ()), "rsqrt": (_RSQRT_FAST, ("sqrt",)), "divide": (_DIVIDE_FAST, ()),
}  # fmt: skip
"""Replacements under approximate math."""


def required(names: set[str], *, fast: frozenset[str]) -> tuple[list[str], set[str]]:
    """Function texts for ``names`` in dependency order, and the prelude parts they need.

    ``fast``: functions to take from ``FAST`` where it has them.
    """
    texts: dict[str, str] = {}
    parts: set[str] = set()

    def visit(name: str) -> None:
        if name in ("reduce", "half"):
            parts.add(name)
        elif name not in texts and name in FUNCTIONS:
            text, needs = FAST[name] if name in fast and name in FAST else FUNCTIONS[name]
            for need in needs:
                visit(need)
            texts[name] = text

    for name in sorted(names):
        visit(name)
    return [t for t in texts.values() if t], parts
