"""Which captured kernel is the candidate's, and how that is said."""

from __future__ import annotations

import pytest

from kernelpro.profiling.cuda.kernel_match import base_name, choose, origin


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("void ns::k<float, 4>(float *, int)", "k"),
        ("_ZN2ns1kIfLi4EEEvPfi", "k"),
        ("_Z3fooPf", "foo"),
        ("foo", "foo"),
        ("(anonymous namespace)::bar<(int)3>(float)", "bar"),
        ("void a::b<c<d>, e>::f<g>(h)", "f"),
    ],
)
def test_base_name(kernel: str, expected: str) -> None:
    assert base_name(kernel) == expected


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, X>(int)", "framework"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "library"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8", "library"),
        ("ampere_sgemm_128x64_tn", "library"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5>(P)", "library"),
        ("void cudnn::winograd_nonfused::f(X)", "library"),
        ("[CUDA memcpy HtoD]", "copy"),
        ("my_softmax", "unknown"),
        ("void my_gemm_kernel<128>(float *)", "unknown"),
    ],
)
def test_origin_by_name(kernel: str, expected: str) -> None:
    assert origin(kernel) == expected


def test_a_built_entry_point_wins_even_with_a_library_like_name() -> None:
    origins, said = choose(
        [("sm90_gemm_s1688_mine(float *)", 10.0), ("nvjet_x", 50.0)], ["sm90_gemm_s1688_mine"]
    )
    assert origins == ("candidate", "library")
    assert "entry point" in said and said.startswith("sm90_gemm_s1688_mine")


def test_an_unclaimed_kernel_is_taken_and_the_sentence_says_inferred() -> None:
    kernels = [("at::native::fill", 1.0), ("a(int)", 2.0), ("b(int)", 5.0)]
    origins, said = choose(kernels)
    assert origins == ("framework", "candidate", "candidate")
    assert said.startswith("b is") and "inferred" in said and "1 more" in said


def test_nothing_of_the_candidate_is_said() -> None:
    assert choose([])[1] == "no kernel was captured"
    assert "no kernel of the candidate's own" in choose([("nvjet_x", 1.0)])[1]
