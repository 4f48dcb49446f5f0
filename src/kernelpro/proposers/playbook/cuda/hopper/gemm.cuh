// Matrix products on Hopper (sm_90a): TMA fills shared memory, a producer warp runs ahead of the
// consumer warpgroups through a ring of mbarriers, wgmma multiplies, and blocks stay on their
// multiprocessor until no tile is left. No headers; needs prelude.cuh.
//
// A Config C has: depth (elements in 128 bytes: 64 halves, or 32 floats for TF32, which must be
// k-major), consumers (warpgroups that multiply), blocks_m (64-row blocks of each), tile_n,
// stages, cluster (1 or 2 neighbouring blocks), share_a (those are neighbours along the columns and
// share their tile of A by multicast; else along the rows, and of B), group (rows of tiles visited
// together), a_k_major and b_k_major (which dimension is contiguous), ragged_depth (the reduction
// starts and ends anywhere), alternate (each consumer has tiles of its own, in turn, so that one
// stores while the other multiplies; else they divide the rows of every tile), stage_columns (of a
// warp's rows in shared memory on their way out; 0 = stored from registers) and
// mma(accumulators, a, b, accumulate). ``Work`` says which tile is where.

struct alignas(64) TensorMap { unsigned char bytes[128]; };

constexpr int kBlockBytes = 8192;   // 64 lines of 128 bytes, the span of the swizzle
constexpr int kBufferBytes = 2048;  // 16 rows of 64 halves on their way out
constexpr long long kPatienceCycles = 4000000000LL;  // about two seconds: a lost signal traps

template <class C> struct Layout {
  static constexpr int sharing = C::alternate ? 1 : C::consumers;  // consumers of one tile
  static constexpr int tile_m = 64 * C::blocks_m * sharing;
  static constexpr int a_bytes = tile_m * 128, b_bytes = C::tile_n * 128;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  static constexpr int buffers = C::stage_columns / 64;
  static constexpr int warp_staging = buffers * kBufferBytes;
  static constexpr int staging = C::stages * stage_bytes;
  static constexpr int barriers = staging + C::consumers * 4 * warp_staging;
  static constexpr int table = barriers + 2 * 8 * C::stages;
  static constexpr int threads = 128 * (C::consumers + 1);
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
  int out_matrix;                     // its coordinate in the result's map
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
KP_INLINE void store_box(const TensorMap* map, unsigned from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y), "r"(z) : "memory");
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
// Descriptor units from one slice of 16 halves (8 floats) along the reduction to the next.
template <bool KMajor> constexpr int slice_step() { return KMajor ? 2 : 128; }

template <class C> struct Accumulators { float sum[C::blocks_m][C::tile_n / 2]; };

template <class C> KP_INLINE void pin(Accumulators<C>& acc) {
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r)
#pragma unroll
    for (int i = 0; i < C::tile_n / 2; ++i) asm volatile("" : "+f"(acc.sum[r][i])::"memory");
}

// The first ``Slices`` slices of a stage; the caller commits.
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
}

// ---- which tile is where ------------------------------------------------------------------------
// Tiles in bands of ``group`` rows share columns of B while they are in L2.
KP_INLINE void tile_at(int index, int tiles_m, int tiles_n, int group, int& tile_m, int& tile_n) {
  const int band = index / (group * tiles_n);
  const int height = min(group, tiles_m - band * group);
  const int inside = index - band * group * tiles_n;
  tile_m = band * group + inside % height;
  tile_n = inside / height;
}

// Every matrix of a batch has m x n x k. S: m, n, k, batch, a_matrices, b_matrices.
template <class C, class S> struct DenseWork {
  using L = Layout<C>;
  static constexpr bool uneven = false;
  static constexpr int tiles_m = (S::m + L::step_m - 1) / L::step_m;
  static constexpr int tiles_n = (S::n + L::step_n - 1) / L::step_n;
  KP_INLINE int prepare(int*) { return tiles_m * tiles_n * S::batch; }
  KP_INLINE Tile tile(int index, int rank) const {
    const int matrix = S::batch > 1 ? index / (tiles_m * tiles_n) : 0;
    int tm, tn;
    tile_at(index - matrix * tiles_m * tiles_n, tiles_m, tiles_n, C::group, tm, tn);
    const int row = L::row(tm, rank);
    return {row, S::a_matrices > 1 ? matrix : 0, S::b_matrices > 1 ? matrix : 0,
            row, S::m, L::column(tn, rank), matrix, matrix, 0, S::k};
  }
};

// Rows of A belong to groups; ``ends[g]`` is where group g ends; B has a matrix for each group.
template <class C, class S> struct RaggedRows {
  using L = Layout<C>;
  static constexpr bool uneven = false;
  static constexpr int tiles_n = (S::n + L::step_n - 1) / L::step_n;
  const int* ends;
  int* first;  // rows of tiles before each group, and their total
  KP_INLINE int prepare(int* table) {
    first = table;
    if (threadIdx.x < 32) {
      int total = 0;
      for (int base = 0; base < S::groups; base += 32) {
        const int g = base + threadIdx.x;
        const int end = g < S::groups ? ends[g] : 0, start = g > 0 && g < S::groups ? ends[g - 1] : 0;
        const int own = g < S::groups ? (end - start + L::step_m - 1) / L::step_m : 0;
        int sum = own;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
          const int other = __shfl_up_sync(0xffffffffu, sum, offset);
          if (threadIdx.x >= offset) sum += other;
        }
        if (g < S::groups) first[g] = total + sum - own;
        total += __shfl_sync(0xffffffffu, sum, 31);
      }
      if (threadIdx.x == 0) first[S::groups] = total;
    }
    __syncthreads();
    return first[S::groups] * tiles_n;
  }
  KP_INLINE Tile tile(int index, int rank) const {
    const int line = index / tiles_n;
    int low = 0, high = S::groups - 1;  // the last group that starts at or before this line
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first[middle] <= line) low = middle; else high = middle - 1;
    }
    const int start = low > 0 ? ends[low - 1] : 0;
    int tm, tn;
    tile_at(index - first[low] * tiles_n, first[low + 1] - first[low], tiles_n, C::group, tm, tn);
    const int row = start + L::row(tm, rank);
    return {row, 0, low, row, ends[low], L::column(tn, rank), low, 0, 0, S::k};
  }
};

// The reduction belongs to groups: group g sums its own lines of A and B into its own result.
// Long groups are bound by multiplying and short ones by storing, so tiles of the longest alternate
// with tiles of the shortest, then of the second longest and second shortest ...
template <class C, class S> struct RaggedDepth {
  using L = Layout<C>;
  static constexpr bool uneven = true;
  static constexpr int tiles_m = (S::m + L::step_m - 1) / L::step_m;
  static constexpr int tiles_n = (S::n + L::step_n - 1) / L::step_n;
  static constexpr int tiles = tiles_m * tiles_n;
  const int* ends;
  int* order;
  KP_INLINE int length(int group) const { return ends[group] - (group > 0 ? ends[group - 1] : 0); }
  KP_INLINE int prepare(int* table) {
    order = table;
    for (int g = threadIdx.x; g < S::groups; g += L::threads) {
      const int own = length(g);
      int rank = 0;  // how many groups are longer
      for (int other = 0; other < S::groups; ++other) {
        const int its = length(other);
        rank += its > own || (its == own && other < g);
      }
      const bool longer = rank < (S::groups + 1) / 2;
      order[longer ? 2 * rank : 2 * (S::groups - 1 - rank) + 1] = g;
    }
    __syncthreads();
    return tiles * S::groups;
  }
  KP_INLINE Tile tile(int index, int rank) const {
    const int pair = index / (2 * tiles), local = index - pair * 2 * tiles;
    const bool alone = 2 * pair + 1 == S::groups;
    const int group = order[2 * pair + (alone ? 0 : local % 2)];
    int tm, tn;
    tile_at(alone ? local : local / 2, tiles_m, tiles_n, C::group, tm, tn);
    const int row = L::row(tm, rank);
    return {row, 0, 0, row, S::m, L::column(tn, rank), group, group,
            group > 0 ? ends[group - 1] : 0, ends[group]};
  }
};

// The tile of a cluster in each round. Where tiles are uneven every other round goes backwards, so
// that no cluster is always early in the order.
template <class Work> KP_INLINE int index_in(int round, int clusters, int cluster) {
  const bool back = Work::uneven && round % 2;
  return round * clusters + (back ? clusters - 1 - cluster : cluster);
}

// ---- the producer -------------------------------------------------------------------------------
// One operand's tile: ``Lines`` rows (or columns) from ``at``. If ``Shared``, each of two blocks
// fetches half for both: half of the lines, or of the reduction where that is the outer dimension.
template <bool KMajor, int Lines, bool Shared>
KP_INLINE void load_operand(unsigned target, const TensorMap* map, unsigned full, int at, int depth,
                            int matrix, int rank) {
  constexpr unsigned short both = 3;
  if constexpr (KMajor && Shared) {
    constexpr int half = Lines / 2;
    load_box_everywhere(target + rank * half * 128, map, full, depth, at + rank * half, matrix,
                        both);
  } else if constexpr (KMajor) {
    load_box(target, map, full, depth, at, matrix);
  } else {
#pragma unroll
    for (int i = 0; i < Lines / 64; ++i) {
      const unsigned block = target + i * kBlockBytes;
      if constexpr (Shared) {
        load_box_everywhere(block + rank * (kBlockBytes / 2), map, full, at + i * 64,
                            depth + rank * 32, matrix, both);
      } else {
        load_box(block, map, full, at + i * 64, depth, matrix);
      }
    }
  }
}

template <class C>
KP_INLINE void load_stage(const TensorMap* map_a, const TensorMap* map_b, unsigned stage,
                          unsigned full, const Tile& tile, int depth, int rank) {
  using L = Layout<C>;
  constexpr bool pair = C::cluster == 2;
  load_operand<C::a_k_major, L::tile_m, pair && C::share_a>(stage, map_a, full, tile.a_row, depth,
                                                            tile.a_matrix, rank);
  load_operand<C::b_k_major, C::tile_n, pair && !C::share_a>(
      stage + L::a_bytes, map_b, full, tile.column, depth, tile.b_matrix, rank);
}

template <class C, class Work>
KP_INLINE void produce(const TensorMap* map_a, const TensorMap* map_b, const Work& work, int total,
                       unsigned shared, unsigned full, unsigned empty, int rank) {
  const int clusters = gridDim.x / C::cluster, cluster = blockIdx.x / C::cluster;
  int stage = 0;
  unsigned parity = 1;  // a fresh barrier counts as passed for this parity: all stages are free
  for (int round = 0; round * clusters < total; ++round) {
    const int index = index_in<Work>(round, clusters, cluster);
    if (index >= total) continue;
    const Tile tile = work.tile(index, rank);
    for (int depth = tile.depth; depth < tile.depth_end; depth += C::depth) {
      barrier_wait(empty + stage * 8, parity);
      barrier_expect(full + stage * 8, Layout<C>::stage_bytes);
      load_stage<C>(map_a, map_b, shared + stage * Layout<C>::stage_bytes, full + stage * 8, tile,
                    depth, rank);
      if (++stage == C::stages) stage = 0, parity ^= 1;
    }
  }
}

// ---- the consumers ------------------------------------------------------------------------------
// Tell every block that writes into this stage that this warpgroup is done with it.
template <class C> KP_INLINE void release(unsigned empty, int stage) {
  const int thread = threadIdx.x % 128;
  if constexpr (C::cluster == 1) {
    if (thread == 0) barrier_arrive(empty + stage * 8);
  } else {
    if (thread % 32 == 0 && thread / 32 < C::cluster)
      barrier_arrive_at(empty + stage * 8, thread / 32);
  }
}
template <class C> KP_INLINE int before(int stage) { return (stage ? stage : C::stages) - 1; }

// Lines ``from`` to the next multiple of 16 become zero in both operands, because the tensor cores
// read whole slices and what follows belongs to the next group.
template <class C> KP_INLINE void clear_lines(unsigned char* stage, int from) {
  constexpr int threads = 128 * Layout<C>::sharing;
  constexpr int pieces = Layout<C>::stage_bytes / kBlockBytes * 8 * 16;
  const int thread = C::alternate ? threadIdx.x % 128 : threadIdx.x - 128;
#pragma unroll
  for (int step = 0; step < (pieces + threads - 1) / threads; ++step) {
    const int i = step * threads + thread, line = (from & ~15) + i / 8 % 16;
    if (i < pieces && line >= from)
      *reinterpret_cast<uint4*>(stage + i / 128 * kBlockBytes + line * 128 + i % 8 * 16) =
          make_uint4(0, 0, 0, 0);
  }
  fence_async_proxy();
  const int barrier = C::alternate ? threadIdx.x / 128 : 1;
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

template <class C>
KP_INLINE void accumulate_tile(Accumulators<C>& acc, const Tile& tile, unsigned char* shared,
                               unsigned full, unsigned empty, int& stage, unsigned& parity) {
  using L = Layout<C>;
  const int depth = tile.depth_end - tile.depth;
  const int tail = C::ragged_depth ? depth % C::depth : 0;
  const int whole = C::ragged_depth ? depth / C::depth : (depth + C::depth - 1) / C::depth;
  const unsigned base = shared_address(shared);
  const unsigned mine = C::alternate ? 0 : (threadIdx.x / 128 - 1) * C::blocks_m * kBlockBytes;
  pin(acc);
  for (int k = 0; k < whole; ++k) {
    barrier_wait(full + stage * 8, parity);
    const unsigned at = base + stage * L::stage_bytes;
    multiply<C, 4>(acc, descriptor<C::a_k_major>(at + mine),
                   descriptor<C::b_k_major>(at + L::a_bytes), k > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (k > 0) release<C>(empty, before<C>(stage));
    if (++stage == C::stages) stage = 0, parity ^= 1;
  }
  if constexpr (C::ragged_depth) {
    if (tail > 0) {  // while the last whole stage is being multiplied
      barrier_wait(full + stage * 8, parity);
      clear_lines<C>(shared + stage * L::stage_bytes, tail);
    }
  }
  wgmma_wait<0>();
  pin(acc);
  if (whole > 0) release<C>(empty, before<C>(stage));
  if constexpr (C::ragged_depth) {
    if (depth <= 0) {
#pragma unroll
      for (int r = 0; r < C::blocks_m; ++r)
#pragma unroll
        for (int i = 0; i < C::tile_n / 2; ++i) acc.sum[r][i] = 0.0f;
    }
    if (tail > 0) {
      const unsigned at = base + stage * L::stage_bytes;
      const unsigned long long a = descriptor<C::a_k_major>(at + mine);
      const unsigned long long b = descriptor<C::b_k_major>(at + L::a_bytes);
      for (int slice = 0; slice * 16 < tail; ++slice) {
        multiply<C, 1>(acc, a + slice * slice_step<C::a_k_major>(),
                       b + slice * slice_step<C::b_k_major>(), slice > 0 || whole > 0);
        wgmma_commit();
      }
      wgmma_wait<0>();
      pin(acc);
      release<C>(empty, stage);
      if (++stage == C::stages) stage = 0, parity ^= 1;
    }
  }
}

// ---- results ------------------------------------------------------------------------------------
// Lane q of four holds columns 2q and 2q + 1 of four neighbouring 8-column blocks; afterwards it
// holds all of block q, in order.
KP_INLINE void exchange(float (&v)[8]) {
  const int lane = threadIdx.x;
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = lane & bit;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      if (pair & bit) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int low = pair * 2 + e, high = (pair + bit) * 2 + e;
        const float got = __shfl_xor_sync(0xffffffffu, upper ? v[low] : v[high], bit);
        if (upper) v[low] = got; else v[high] = got;
      }
    }
  }
}

// First row of this warp within the tile.
template <class C> KP_INLINE int warp_row() {
  const int consumer = C::alternate ? 0 : threadIdx.x / 128 - 1;
  return consumer * C::blocks_m * 64 + threadIdx.x % 128 / 32 * 16;
}

// The epilogue stores by itself, eight columns at a time. ``Whole``: nothing is outside.
template <class C, bool Whole, class Epilogue>
KP_INLINE void finish_direct(const Accumulators<C>& acc, const Epilogue& epilogue, const Tile& tile,
                             int columns) {
  const int lane = threadIdx.x % 32, first = tile.row + warp_row<C>() + lane / 4;
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + r * 64 + half * 8;
#pragma unroll
      for (int part = 0; part < C::tile_n / 32; ++part) {
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = acc.sum[r][(part * 4 + i / 2) * 4 + half * 2 + i % 2];
        exchange(v);
        const int column = tile.column + part * 32 + lane % 4 * 8;
        if (Whole || row < tile.row_end) {
#pragma unroll
          for (int i = 0; i < 8; i += Epilogue::lanes) {
            float some[Epilogue::lanes];
#pragma unroll
            for (int e = 0; e < Epilogue::lanes; ++e) some[e] = v[i + e];
            if (Whole || column + i < columns) epilogue(row, column + i, some);
          }
        }
      }
    }
}

// Sixteen rows of 64 results in a swizzled buffer, for rows that a box would write too much of.
template <class Epilogue>
KP_INLINE void copy_rows(const unsigned char* buffer, const Epilogue& epilogue, int row,
                         int row_end, int column, int columns) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const int i = step * 32 + threadIdx.x % 32, line = i / 8, piece = i % 8;
    if (row + line < row_end && column + piece * 8 < columns)
      *reinterpret_cast<uint4*>(epilogue.row(row + line) + column + piece * 8) =
          *reinterpret_cast<const uint4*>(buffer + line * 128 + (piece ^ (line % 8)) * 16);
  }
}

// The epilogue returns two packed halves; they leave through shared memory as boxes of 16 rows,
// which goes on while the next tile is multiplied. Everything is private to a warp.
template <class C, bool Whole, class Epilogue>
KP_INLINE void finish_staged(const Accumulators<C>& acc, const Epilogue& epilogue, const Tile& tile,
                             int columns, unsigned char* staging, const TensorMap* map) {
  using L = Layout<C>;
  constexpr int parts = C::tile_n / 64;
  const int lane = threadIdx.x % 32, line = lane % 16, piece = lane / 16;
  unsigned char* mine = staging + (threadIdx.x / 32 - 4) * L::warp_staging;
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r) {
    const int first = tile.row + warp_row<C>() + r * 64, row = first + lane / 4;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int start = tile.column + part * 64;
      unsigned char* buffer = mine + (r * parts + part) % L::buffers * kBufferBytes;
      const unsigned target = shared_address(buffer) + line * 128;
      if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(L::buffers - 1)
                                  : "memory");
      __syncwarp();
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        unsigned packed[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // rows 0-7 and 8-15 of one block of columns, then the next
          const int at = ((part * 8 + b * 2 + i / 2) * 2 + i % 2) * 2;
          const int column = start + b * 16 + i / 2 * 8 + lane % 4 * 2;
          const bool inside = Whole || (row + i % 2 * 8 < tile.row_end && column < columns);
          packed[i] = inside ? epilogue.pack(row + i % 2 * 8, column, acc.sum[r][at],
                                             acc.sum[r][at + 1]) : 0u;
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"(target + ((b * 2 + piece) ^ (line % 8)) * 16), "r"(packed[0]),
                       "r"(packed[1]), "r"(packed[2]), "r"(packed[3]) : "memory");
      }
      fence_async_proxy();
      __syncwarp();
      if (!Whole && first + 16 > tile.row_end) {
        copy_rows(buffer, epilogue, first, tile.row_end, start, columns);
      } else if (lane == 0 && (Whole || start < columns)) {
        store_box(map, shared_address(buffer), start, first, tile.out_matrix);
      }
      if (lane == 0) asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
}

template <class C, class Work, class Epilogue>
KP_INLINE void consume(const Work& work, Epilogue epilogue, int total, int columns,
                       unsigned char* shared, const TensorMap* map_out, unsigned full,
                       unsigned empty, int rank) {
  using L = Layout<C>;
  const int clusters = gridDim.x / C::cluster, cluster = blockIdx.x / C::cluster;
  const int consumer = threadIdx.x / 128 - 1;
  int stage = 0, turn = 0;
  unsigned parity = 0;
  for (int round = 0; round * clusters < total; ++round) {
    const int index = index_in<Work>(round, clusters, cluster);
    if (index >= total) continue;
    const Tile tile = work.tile(index, rank);
    if (C::alternate && turn++ % C::consumers != consumer) {  // another's: skip its stages
      const int next = stage + (tile.depth_end - tile.depth + C::depth - 1) / C::depth;
      parity ^= next / C::stages & 1;
      stage = next % C::stages;
      continue;
    }
    Accumulators<C> acc;
    accumulate_tile<C>(acc, tile, shared, full, empty, stage, parity);
    epilogue.batch = tile.matrix;
    const bool whole = tile.row + L::tile_m <= tile.row_end && tile.column + C::tile_n <= columns;
    if constexpr (C::stage_columns > 0) {
      unsigned char* staging = shared + L::staging;
      if (whole) finish_staged<C, true>(acc, epilogue, tile, columns, staging, map_out);
      else finish_staged<C, false>(acc, epilogue, tile, columns, staging, map_out);
    } else {
      if (whole) finish_direct<C, true>(acc, epilogue, tile, columns);
      else finish_direct<C, false>(acc, epilogue, tile, columns);
    }
  }
  if constexpr (C::stage_columns > 0) {
    if (threadIdx.x % 32 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// The kernel. ``columns``: width of the result. ``shared``: aligned to 1024 bytes.
template <class C, class Work, class Epilogue>
KP_INLINE void hopper_gemm(const TensorMap* map_a, const TensorMap* map_b,
                           const TensorMap* map_out, Work work, const Epilogue& epilogue,
                           int columns, unsigned char* shared) {
  using L = Layout<C>;
  const int rank = C::cluster > 1 ? cluster_rank() : 0;
  const unsigned full = shared_address(shared + L::barriers), empty = full + C::stages * 8;
  if (threadIdx.x == 0) {
    if (shared_address(shared) % 1024) __trap();
    prefetch_map(map_a);
    prefetch_map(map_b);
    for (int i = 0; i < C::stages; ++i) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, L::sharing * C::cluster);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  const int total = work.prepare(reinterpret_cast<int*>(shared + L::table));
  if constexpr (C::cluster > 1) cluster_sync(); else __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(C::producer_registers));
    if (threadIdx.x == 0)
      produce<C>(map_a, map_b, work, total, shared_address(shared), full, empty, rank);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(C::consumer_registers));
    consume<C>(work, epilogue, total, columns, shared, map_out, full, empty, rank);
  }
  // No block may leave while another can still signal its barriers or write into its memory.
  if constexpr (C::cluster > 1) cluster_sync();
}
