// Matrix products on Hopper (sm_90a): TMA fills shared memory, a producer warp runs ahead of the
// consumer warpgroups through a ring of mbarriers, wgmma multiplies, and blocks stay on their
// multiprocessor until no tile is left. No headers; needs prelude.cuh.
//
// A Config C has: consumers (warpgroups that multiply), blocks_m (64-row blocks of each), tile_n,
// stages, cluster (1 or 2 neighbouring blocks), share_a (those are neighbours along the columns and
// share their tile of A by multicast; else along the rows, and of B), group (rows of tiles visited
// together), a_k_major and b_k_major (which dimension is contiguous), ragged_depth (the reduction
// starts and ends anywhere), stage_columns (columns a staged store holds at a time) and
// mma(accumulators, a, b, accumulate). ``Work`` says which tile is where.

struct alignas(64) TensorMap { unsigned char bytes[128]; };

constexpr int kDepth = 64;          // a row of a tile is one 128-byte swizzle span
constexpr int kBlockBytes = 8192;   // 64 rows of 128 bytes
constexpr long long kPatienceCycles = 4000000000LL;  // about two seconds: a lost signal traps

template <class C> struct Layout {
  static constexpr int tile_m = 64 * C::blocks_m * C::consumers;
  static constexpr int a_bytes = tile_m * 128, b_bytes = C::tile_n * 128;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  static constexpr int pitch = C::stage_columns * 2 + 16;  // apart by 16 bytes: no bank conflicts
  static constexpr int warp_staging = C::stage_columns ? 16 * pitch : 0;
  static constexpr int staging = C::stages * stage_bytes;
  static constexpr int barriers = staging + C::consumers * 4 * warp_staging;
  static constexpr int table = barriers + 2 * 8 * C::stages;
  static constexpr int step_m = tile_m * (C::share_a ? 1 : C::cluster);
  static constexpr int step_n = C::tile_n * (C::share_a ? C::cluster : 1);
  static KP_INLINE int row(int step, int rank) {
    return step * step_m + (C::share_a ? 0 : rank * tile_m);
  }
  static KP_INLINE int column(int step, int rank) {
    return step * step_n + (C::share_a ? rank * C::tile_n : 0);
  }
};

// One output tile: where its operands are read, what it covers, which matrix it belongs to.
struct Tile {
  int a_row, a_matrix, b_matrix;      // coordinates in the tensor maps
  int row, row_end, column, matrix;   // in the result
  int depth, depth_end;
};

KP_INLINE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
KP_INLINE void barrier_init(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
KP_INLINE bool barrier_passed(unsigned barrier, unsigned parity) {
  unsigned passed;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(passed) : "r"(barrier), "r"(parity) : "memory");
  return passed != 0;
}
KP_INLINE void barrier_wait(unsigned barrier, unsigned parity) {
  if (barrier_passed(barrier, parity)) return;
  const long long start = clock64();
  while (!barrier_passed(barrier, parity)) {
    if (clock64() - start > kPatienceCycles) __trap();
  }
}
KP_INLINE void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
KP_INLINE void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Nothing written is handed over here, only the right to overwrite. An arrive with .release.cluster
// would put a MEMBAR.ALL.GPU in front of each, which on an H200 cost a third of the throughput.
KP_INLINE void barrier_arrive_at(unsigned barrier, int block) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}"
      ::"r"(barrier), "r"(block) : "memory");
}
KP_INLINE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
KP_INLINE int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
KP_INLINE void load_box(unsigned target, const TensorMap* map, unsigned barrier, int x, int y,
                        int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];"
      ::"r"(target), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
KP_INLINE void load_box_everywhere(unsigned target, const TensorMap* map, unsigned barrier, int x,
                                   int y, int z, unsigned short mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;"
      ::"r"(target), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(mask) : "memory");
}
KP_INLINE void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
KP_INLINE void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma ------------------------------------------------------------------------------------
KP_INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KP_INLINE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending> KP_INLINE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Shared-memory descriptor of a tile with 128-byte swizzle: address and strides in 16 bytes,
// 1024 between groups of eight lines, 8192 between blocks of 64 columns where those are contiguous.
template <bool KMajor> KP_INLINE unsigned long long descriptor(unsigned address) {
  constexpr unsigned long long leading = KMajor ? 1 : kBlockBytes / 16;
  constexpr unsigned long long fixed = (1ull << 62) | (64ull << 32) | (leading << 16);
  return fixed | ((address & 0x3ffff) >> 4);
}
// Descriptor units from one slice of 16 along the reduction to the next.
template <bool KMajor> constexpr int slice_step() { return KMajor ? 2 : 128; }

template <class C> struct Accumulators { float sum[C::blocks_m][C::tile_n / 2]; };

template <class C> KP_INLINE void pin(Accumulators<C>& acc) {
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r)
#pragma unroll
    for (int i = 0; i < C::tile_n / 2; ++i) asm volatile("" : "+f"(acc.sum[r][i])::"memory");
}

// The first ``Slices`` slices of a stage.
template <class C, int Slices>
KP_INLINE void multiply(Accumulators<C>& acc, unsigned long long a, unsigned long long b,
                        bool accumulate) {
  wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < Slices; ++slice) {
#pragma unroll
    for (int r = 0; r < C::blocks_m; ++r)
      C::mma(acc.sum[r], a + slice * slice_step<C::a_k_major>() + r * (kBlockBytes / 16),
             b + slice * slice_step<C::b_k_major>(), slice > 0 || accumulate);
  }
  wgmma_commit();
}

