"""A small tree of headers in the manner of CUTLASS, and an index of it."""

from __future__ import annotations

import pytest

from kernelpro.codesearch.index import CodeIndex

LICENSE = """\
/***************************************************************************************************
 * Copyright (c) 2024 Somebody. All rights reserved.
 * Redistribution and use of swizzle in source and binary forms are permitted.
 **************************************************************************************************/
"""
BARRIER = (
    LICENSE
    + """\
#pragma once
#include <cstdint>

#if defined(ENABLED)
#define DEVICE_FN __forceinline__ __device__
#else
#define DEVICE_FN
#endif

namespace toy {
namespace arch {

////////////////////////////////////////////////////////////////////////////////

/// Barrier over all blocks of a cluster.
/// Phases alternate.
struct ClusterBarrier {
  using ValueType = uint64_t;

  // Wait until the phase has passed
  DEVICE_FN
  void wait(uint32_t phase) const {
    if (phase) { spin(); }
  }

  DEVICE_FN static void arrive(ValueType const* smem_ptr) { (void)smem_ptr; }
};

/// Arrive and expect a number of transaction bytes
DEVICE_FN inline void arrive_and_expect_tx(uint64_t* barrier, uint32_t bytes) {
  char const* text = "struct NotAStruct { }";
  (void)barrier;
}

} // namespace arch
} // namespace toy
"""
)
SWIZZLE = (
    LICENSE
    + """\
#pragma once
namespace toy {

// A generic functor that XORs the bits of an address
template <
  int Bits,           ///< number of bits in the mask
  int Base = 3,       ///< least significant bits kept
  class Shift         /// distance of the shift
>
struct Swizzle {
  template <class Offset>
  constexpr static auto apply(Offset const& offset) { return offset ^ (offset >> Bits); }
};

template <class Type>
using Layout_MN_SW128_Atom = decltype(upcast<sizeof(Type)>(Swizzle<3, 4, 3>{}));

enum class Major { K, MN };

} // namespace toy
"""
)
EXAMPLE = (
    LICENSE
    + """\
#include "toy/arch/barrier.h"
// ClusterBarrier is explained elsewhere
__global__ void __launch_bounds__(128, 1) demo_kernel(int* out) {
  toy::arch::ClusterBarrier barrier;
  barrier.wait(0);
  toy::arch::arrive_and_expect_tx(nullptr, 128);
}
int main() { return 0; }
"""
)
FILES = {
    "include/toy/arch/barrier.h": BARRIER,
    "include/toy/swizzle.hpp": SWIZZLE,
    "include/toy/sm90_epilogue_tma_warpspecialized.hpp":
        "#pragma once\n" + "int padding;\n" * 300 + "struct Epilogue { void store(); };\n",
    "examples/01_barrier/demo.cu": EXAMPLE,
    "docs/barriers.md": "# Barriers\n\nHow a barrier works, and when to wait.\n",
    "CMakeLists.txt": "project(toy)\n",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "toy"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def index(tree, tmp_path):
    opened = CodeIndex(tree, tmp_path / "cache")
    yield opened
    opened.close()
