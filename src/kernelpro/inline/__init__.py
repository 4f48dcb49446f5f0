"""Compile C++ or CUDA source text and call it on tensors: no torch headers, nothing to install.

    module = inline.cpp('extern "C" int scale(const float* x, float* y, int64_t n, float s) {...}')
    module.scale(x, y, x.numel(), 2.0)

    module = inline.cuda('extern "C" __global__ void scale(const float* x, float* y, int n) {...}')
    module.scale[grid, block, shared_bytes](x, y, x.numel())

Arguments follow the C signature found in the source: tensors for pointers, Python numbers for
scalars, ctypes values as they are. An ``int`` result is an error code: non-zero raises.

This package is the part of kernelpro that exported candidates carry inside them: it imports the
standard library only, and knows a tensor by its ``data_ptr()``. It must not judge or time.

Environment: ``KERNELPRO_BUILD_DIR`` (default: the user's cache), ``KERNELPRO_CXX`` or ``CXX``,
``KERNELPRO_CUDA_ARCH`` (default: the current GPU's), ``CUDA_HOME``, ``CUTLASS_HOME``.
"""

from __future__ import annotations

from kernelpro.inline.cache import BuildError, ToolchainError, build_dir
from kernelpro.inline.cpp import CPP_FLAGS, Function, Module, cpp, find_compiler
from kernelpro.inline.cuda import CudaModule, Kernel, Launch, architecture, architecture_of, cuda
from kernelpro.inline.driver import Driver, DriverError, driver
from kernelpro.inline.signature import Signature, signatures
from kernelpro.inline.tma import TENSOR_MAP_CPP, tensor_map

__all__ = [
    "CPP_FLAGS", "TENSOR_MAP_CPP", "BuildError", "CudaModule", "Driver", "DriverError",
    "Function", "Kernel", "Launch", "Module", "Signature", "ToolchainError", "architecture",
    "architecture_of", "build_dir", "cpp", "cuda", "driver", "find_compiler", "signatures",
    "tensor_map",
]  # fmt: skip
