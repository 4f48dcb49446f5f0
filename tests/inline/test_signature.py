"""Signatures are read from what people write, and nothing is guessed."""

from __future__ import annotations

from kernelpro import inline
from kernelpro.inline.signature import Parameter


def test_signatures_survive_what_people_write() -> None:
    source = """
    // extern "C" int commented(int a) {}
    #define TILE 16 \\
        + 0
    static const char* text = "extern \\"C\\" int quoted(int a) {";
    template <typename T> __device__ T twice(T x) { return x + x; }
    extern "C" __global__ void __launch_bounds__(256, 2)
    kernel(const float* __restrict__ x, __half *y, unsigned long long n, float s,
           const __grid_constant__ CUtensorMap map, std::int64_t stride = 1, double out[])
    { if (n) { y[0] = x[0]; } }
    extern "C" {
      int declared_only(int);
      struct Hidden { int a; };
      __attribute__((visibility("default"))) int run(void) { return 0; }
      unsigned char* bytes(const unsigned char* p, size_t n) noexcept { return 0; }
    }
    """
    found = inline.signatures(source)
    assert set(found) == {"kernel", "run", "bytes"}
    assert found["kernel"].kernel and not found["run"].kernel
    assert found["kernel"].parameters == (
        Parameter("float", True, "x"), Parameter("__half", True, "y"),
        Parameter("unsigned long long", False, "n"), Parameter("float", False, "s"),
        Parameter("CUtensorMap", False, "map"), Parameter("int64_t", False, "stride"),
        Parameter("double", True, "out"),
    )  # fmt: skip
    assert found["run"].parameters == () and found["run"].result == "int"
    assert found["bytes"].result == "unsigned char *"


def test_unreadable_signatures_are_left_out() -> None:
    source = 'extern "C" int f(int (*callback)(int), int n) { return n; }'
    assert inline.signatures(source) == {}
