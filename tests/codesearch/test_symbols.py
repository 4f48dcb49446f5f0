"""Definitions with scope, signature, documentation and template parameters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.codesearch.symbols import find_definitions


def found(text, path="a.hpp"):
    return {(s.scope, s.name): s for s in find_definitions(path, text)}


def test_types_functions_and_macros_have_their_scope_and_line(tree):
    text = (tree / "include/toy/arch/barrier.h").read_text()
    symbols = found(text)
    assert set(symbols) == {
        ("", "DEVICE_FN"), ("toy::arch", "ClusterBarrier"),
        ("toy::arch::ClusterBarrier", "wait"), ("toy::arch::ClusterBarrier", "arrive"),
        ("toy::arch", "arrive_and_expect_tx"),
    }  # fmt: skip
    barrier = symbols["toy::arch", "ClusterBarrier"]
    assert text.split("\n")[barrier.line - 1] == "struct ClusterBarrier {"
    assert barrier.doc == "Barrier over all blocks of a cluster. Phases alternate."
    assert symbols["toy::arch::ClusterBarrier", "wait"].doc == "Wait until the phase has passed"


def test_template_parameters_carry_the_comment_beside_them(tree):
    swizzle = found((tree / "include/toy/swizzle.hpp").read_text())["toy", "Swizzle"]
    assert swizzle.template_parameters == (
        "int Bits - number of bits in the mask",
        "int Base = 3 - least significant bits kept",
        "class Shift - distance of the shift",
    )
    assert swizzle.doc == "A generic functor that XORs the bits of an address"


def test_aliases_enums_and_kernels(tree):
    symbols = found((tree / "include/toy/swizzle.hpp").read_text())
    assert symbols["toy", "Layout_MN_SW128_Atom"].kind == "alias"
    assert symbols["toy", "Major"].kind == "enum"
    kernel = found((tree / "examples/01_barrier/demo.cu").read_text())["", "demo_kernel"]
    assert kernel.kind == "kernel"


def test_both_branches_of_a_condition_may_open_the_same_brace():
    text = """
namespace n {
#if A
struct One {
#else
struct Other {
#endif
  void member() {}
};
struct After {};
}
"""
    assert ("n", "After") in found(text)


def test_initialisers_control_flow_and_operators():
    text = """
constexpr int table[] = {1, 2};
struct V { V() : x{0}, y(1) {} int x, y; };
inline bool operator==(V const& a, V const& b) { while (true) { if (a.x) { return true; } } }
auto lambda = [](int x) { return x; };
extern "C" { void c_function(int x) { } }
"""
    assert {name for _, name in found(text)} == {"V", "operator==", "c_function"}


def test_a_comment_at_the_head_of_a_file_documents_what_follows():
    assert found("/// Waits.\nvoid wait() {}\n")["", "wait"].doc == "Waits."


def test_python_files_give_their_classes_and_functions():
    symbols = found("class A(B):\n    def method(self):\n        pass\n", "a.py")
    assert {name for _, name in symbols} == {"A", "method"}


@given(
    st.text(alphabet=st.sampled_from(list("{}()<>;#/*\"'\n\\ abstructemplate,=:")), max_size=200)
)
def test_any_text_is_survived(text):
    for symbol in find_definitions("a.hpp", text):
        assert 1 <= symbol.line <= text.count("\n") + 1
