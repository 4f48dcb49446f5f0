"""The shared vocabulary of code changes: findings name moves, recipes map them to knobs.

Names only, with one line of meaning each. Which recipe can make a move is the recipe's business.
"""

from __future__ import annotations

MOVES: dict[str, str] = {
    # What is computed, and in how many passes over memory.
    "fuse_elementwise": "compute neighbouring element-wise operators in one loop",
    "fuse_epilogue": "apply the operators after a matrix product before it is stored",
    "fuse_kernels": "do the work of several kernels in one launch",
    "single_pass": "read the data once: online algorithm instead of separate passes",
    "two_pass": "two plain passes instead of one pass with a serial dependency",
    "reduce_passes": "drop a pass over memory: keep the row in registers, cache or shared memory",
    "avoid_temporaries": "write no intermediate tensor to memory",
    "library_matmul": "leave the matrix product to the vendor's library",
    "own_matmul": "write the matrix product, to fuse what surrounds it",
    "split_k": "split the reduction dimension over blocks and add the parts",
    # Inner loop.
    "widen_vectors": "use the widest SIMD registers of the CPU",
    "unroll_more": "unroll further",
    "unroll_less": "unroll less: fewer live values",
    "more_accumulators": "several independent accumulators to break a dependency chain",
    "approximate_math": "a faster approximation within the tolerance",
    "vector_math": "vectorised polynomial instead of a scalar library call",
    "hoist_division": "multiply by a reciprocal computed once, outside the loop",
    "flush_denormals": "treat subnormal numbers as zero",
    "strength_reduce": "shifts or increments instead of integer division and modulo",
    "use_32bit_indices": "32-bit instead of 64-bit index arithmetic",
    "avoid_fp64": "keep arithmetic in float32: literals with f, float functions",
    "branch_free": "select instead of branch, or sort work so that a warp takes one path",
    "warp_uniform_work": "give every lane of a warp the same amount of work",
    # Memory access.
    "streaming_stores": "stores that bypass the cache",
    "aligned_loads": "align data to the vector width",
    "block_for_cache": "tile the loops so that reused data stay in cache",
    "pack_operands": "copy operands into contiguous panels before the inner loop",
    "coalesce_loads": "neighbouring threads read neighbouring addresses",
    "structure_of_arrays": "one array per field instead of an array of structures",
    "vectorize_loads": "64- or 128-bit loads and stores per thread",
    "stage_in_shared": "load a tile into shared memory once and reuse it from there",
    "pad_shared": "pad or swizzle the shared tile so that a warp hits all banks",
    "shared_broadcast": "let a warp read one shared word together, or keep it in a register",
    "async_copy": "copy global to shared memory asynchronously (cp.async, TMA) with several stages",
    "reorder_blocks": "order blocks so that neighbours in time share cache lines",
    "registers_not_local": "compile-time indices, so that small arrays stay in registers",
    # Threads, blocks and resources.
    "use_threads": "use more CPU threads",
    "fewer_threads": "use fewer CPU threads",
    "larger_tile": "more work per tile",
    "smaller_tile": "less work per tile",
    "bigger_grid": "more blocks: split the work further",
    "persistent_grid": "as many blocks as fit at once, each looping over the work",
    "larger_block": "more threads per block",
    "smaller_block": "fewer threads per block",
    "warp_multiple_block": "block size a multiple of 32",
    "reduce_registers": "fewer live registers: smaller tile, shorter live ranges",
    "launch_bounds": "tell the compiler the block size and the blocks wanted per SM",
    "reduce_shared": "less shared memory per block",
    "more_work_per_thread": "more independent work per thread (instruction-level parallelism)",
    "fewer_barriers": "fewer __syncthreads: warp-level synchronisation, double buffering",
    "balance_before_barrier": "equal work for all warps before a barrier",
    "warp_shuffle": "exchange values by warp shuffles instead of shared memory and barriers",
    "privatize_atomics": "reduce within the block first, then one atomic per block",
    # Tensor cores.
    "use_tensor_cores": "matrix instructions instead of scalar multiply-adds",
    "use_wgmma": "Hopper's warpgroup matrix instructions fed from shared memory",
    # The system around the kernel.
    "cuda_graph": "record the launches once and replay them as one",
    "remove_sync": "no host synchronisation inside the measured work",
    "avoid_copies": "no host-device copies inside the measured work",
    "larger_batch": "more work per launch",
    "channels_last": "memory layout the library's fast kernels want",
    "fewer_multiprocessors": "a persistent grid on part of the device, where memory is the limit",
    "lower_power": "fewer joules per result: less data movement, lower precision",
}  # fmt: skip
"""Move -> meaning. Writers may ignore moves they do not know; tools may only use these."""


def meaning(move: str) -> str:
    """What ``move`` asks for; the name itself if a plug-in tool brought it."""
    return MOVES.get(move, move.replace("_", " "))
