"""How each reduction accumulates in C++: identity, step, folding, final value.

Sums in float32 are folded into float64 every few hundred vectors, so that their error stays
below that of pairwise summation; everything else is exact or associative enough as it is.
"""

from __future__ import annotations

from kernelpro.proposers.playbook.cpu.expressions import C_TYPES
from kernelpro.proposers.playbook.plan.ir import Node

FOLD_VECTORS = 256
"""Vectors added in float32 before a fold (chosen: error of 256 additions is about 2^-20)."""

SCALAR_REDUCE = """\
#include <limits>
template <class T> INLINE T lowest1() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <class T> INLINE T highest1() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}
template <class T> struct Best1 { T value; int64_t index; };
template <class T> INLINE void better_max(Best1<T>& b, T x, int64_t i) {
  bool nan = (x != x) && (b.value == b.value);
  bool tie = (x == b.value || (x != x && b.value != b.value)) && i < b.index;
  if (x > b.value || nan || tie) b = {x, i};
}
template <class T> INLINE void better_min(Best1<T>& b, T x, int64_t i) {
  bool nan = (x != x) && (b.value == b.value);
  bool tie = (x == b.value || (x != x && b.value != b.value)) && i < b.index;
  if (x < b.value || nan || tie) b = {x, i};
}
"""
"""Needed by scalar kernels that reduce."""

BEST_INDEX = """\
INLINE I best_index(Best b, bool largest) {
  int32_t at = b.index[0];
  float v = b.value[0];
  for (int i = 1; i < W; ++i) {
    float x = b.value[i];
    bool nan = (x != x) && (v == v), tie = (x == v || (x != x && v != v)) && b.index[i] < at;
    if ((largest ? x > v : x < v) || nan || tie) { v = x; at = b.index[i]; }
  }
  return splat(at);
}
"""
"""Needed by vector argmax and argmin along the lanes."""


class Accumulator:
    """Text of one reduce node; ``name`` is the variable stem."""

    def __init__(self, node: Node, operand: Node, name: str, *, vector: bool) -> None:
        self.op = node.op
        self.name = name
        self.vector = vector
        self.kind = C_TYPES[node.dtype]
        self.operand = C_TYPES[operand.dtype]
        self.float_sum = node.op == "sum" and vector

    @property
    def arg(self) -> bool:
        """True for argmax and argmin."""
        return self.op in ("argmax", "argmin")

    @property
    def type(self) -> str:
        """Type of one accumulator."""
        if self.arg:
            return "Best" if self.vector else f"Best1<{self.operand}>"
        if self.vector:
            return "I" if self.op in ("any", "all") else "F"
        if self.op == "sum":
            return "double" if self.kind in ("float", "double") else "int64_t"
        return self.kind

    @property
    def identity(self) -> str:
        """Initial value of one accumulator."""
        low, high = "-__builtin_inff()", "__builtin_inff()"
        if self.vector:
            worst = f"splat({low if self.op == 'argmax' else high})"
            return {
                "sum": "F{}", "prod": "splat(1.0f)", "max": f"splat({low})",
                "min": f"splat({high})", "any": "I{}", "all": "~I{}",
                "argmax": f"Best{{{worst}, splat(INT32_MAX)}}",
                "argmin": f"Best{{{worst}, splat(INT32_MAX)}}",
            }[self.op]  # fmt: skip
        t = self.operand
        return {
            "sum": "0", "prod": "1", "max": f"lowest1<{self.kind}>()",
            "min": f"highest1<{self.kind}>()", "any": "false", "all": "true",
            "argmax": f"Best1<{t}>{{lowest1<{t}>(), INT64_MAX}}",
            "argmin": f"Best1<{t}>{{highest1<{t}>(), INT64_MAX}}",
        }[self.op]  # fmt: skip

    def step(self, target: str, value: str, index: str) -> str:
        """Statement that feeds full lanes."""
        simple = {"sum": "+=", "prod": "*=", "any": "|=", "all": "&="}
        if self.op in simple:
            return f"{target} {simple[self.op]} {value};"
        if self.arg:
            return f"better_{self.op.removeprefix('arg')}({target}, {value}, {index});"
        return f"{target} = k_{self.op}imum({target}, {value});"

    def fill(self, value: str) -> str:
        """``value`` with the lanes beyond ``n`` made harmless."""
        low, high = "-__builtin_inff()", "__builtin_inff()"
        identity = {"sum": "0.0f", "prod": "1.0f", "max": low, "min": high, "any": "0",
                    "all": "-1", "argmax": low, "argmin": high}[self.op]  # fmt: skip
        return f"fill({value}, n, {identity})"

    def merge(self, target: str, other: str) -> str:
        """Statement that merges accumulator ``other`` into ``target``."""
        if self.arg:
            return self.step(target, f"{other}.value", f"{other}.index")
        return self.step(target, other, "")

    def across(self, target: str) -> str:
        """Expression of the row value from one accumulator, over its lanes, in every lane."""
        if not self.vector:
            return f"{target}.index" if self.arg else f"({self.kind}){target}"
        if self.arg:
            return f"best_index({target}, {'true' if self.op == 'argmax' else 'false'})"
        return {
            "sum": f"splat(total({target}))", "prod": f"splat(product({target}))",
            "max": f"splat(largest({target}))", "min": f"splat(smallest({target}))",
            "any": f"splat(any_lane({target}))", "all": f"splat(all_lanes({target}))",
        }[self.op]  # fmt: skip

    def lanewise(self, target: str) -> str:
        """Expression of the values when every lane is a row of its own."""
        if self.arg:
            return f"{target}.index"
        if self.float_sum:
            return f"__builtin_convertvector({target}, F)"
        return target if self.vector else f"({self.kind}){target}"
