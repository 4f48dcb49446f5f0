// ---- float32 on Hopper's tensor cores: the split of gemm_split.cuh, by whole warpgroups ---------
// Two warpgroups compute 128 x 128 results each; a third only copies. B comes packed: tiles of
// 128 columns x 32 deep, split already, laid out as wgmma reads them (128-byte swizzle), so that
// one bulk copy moves a tile. A comes as it is, a row of a tile at a time, and is split in
// registers, from where wgmma takes it.

struct Wgmma {
  static constexpr int rows = 256, columns = 128, depth = 32;
  static constexpr int threads = 384, producer = 2;  // warpgroups 0 and 1 compute
  static constexpr int pitch = depth + 4;            // of A in shared memory: no bank twice
  static constexpr int part_b = columns * depth;     // elements of the big or the small half
  static constexpr int bytes_a = rows * pitch * 4, bytes_b = 2 * part_b * 4;
  static constexpr int stage = bytes_a + bytes_b;
};

KP_INLINE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
KP_INLINE void barrier_create(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
KP_INLINE void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
KP_INLINE void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
KP_INLINE void barrier_wait(unsigned barrier, int parity) {
  unsigned done = 0;
#pragma unroll 1
  for (int tries = 1 << 22; done == 0 && tries > 0; --tries) {  // a lost signal must not hang
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  }
}
KP_INLINE void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
KP_INLINE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"); }
KP_INLINE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); }
KP_INLINE void copy_bulk(unsigned shared, const void* global, int bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(shared), "l"(global), "r"(bytes), "r"(barrier) : "memory");
}

// d (64 x 128) = or += a (64 x 8, in registers) * b (8 x 128, in shared memory). A thread of warp w
// has rows 16 w + lane / 4 and 8 below, and of every 8 columns those of mma's fragments.
KP_INLINE void wgmma_tf32(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1;\n}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
        "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
        "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
        "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
        "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
        "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
        "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
        "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
        "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
        "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]),
        "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
        "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]),
        "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
        "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
        "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
KP_INLINE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KP_INLINE void wgmma_finish() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Operand B of wgmma at a shared address: rows of 128 bytes, swizzled in groups of eight.
KP_INLINE unsigned long long wgmma_operand(unsigned address) {
  constexpr unsigned long long group = 1024 >> 4, swizzle_128 = 1;
  return (address & 0x3ffff) >> 4 | 1ull << 16 | group << 32 | swizzle_128 << 62;
}

// Packs the tile of B that this block stands for: 32 KiB, the big halves before the small ones.
template <class S> KP_INLINE void pack_split(const float* __restrict__ b, float* packed) {
  constexpr bool b_depth = S::b_depth == 1;
  constexpr int tiles_k = S::k / Wgmma::depth, pieces = Wgmma::depth / 4;
  const int tile_n = blockIdx.x / tiles_k, kt = blockIdx.x % tiles_k;
  float* to = packed + static_cast<long long>(blockIdx.x) * 2 * Wgmma::part_b;
#pragma unroll
  for (int step = 0; step < Wgmma::columns * pieces / 256; ++step) {
    const int unit = step * 256 + threadIdx.x;
    const int column = b_depth ? unit / pieces : unit % Wgmma::columns;
    const int piece = b_depth ? unit % pieces : unit / Wgmma::columns;
    const int c = tile_n * Wgmma::columns + column, d = kt * Wgmma::depth + piece * 4;
    float value[4] = {}, halves[2][4];
    if (c < S::n) {
      const float* from = b + d * S::b_depth + c * S::b_column;
      if constexpr (b_depth && S::b_wide) {
        load_pack<float, 4, false>(from, value);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) value[i] = from[i * S::b_depth];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unsigned big, small;
      split_tf32(value[i], big, small);
      halves[0][i] = __uint_as_float(big);
      halves[1][i] = __uint_as_float(small);
    }
    const int place = column * Wgmma::depth + (piece ^ column % 8) * 4;
    store_pack<float, 4, false>(to + place, halves[0]);
    store_pack<float, 4, false>(to + Wgmma::part_b + place, halves[1]);
  }
}

template <class S, int Stages>
KP_INLINE void wgmma_copies(const float* __restrict__ a, const float* __restrict__ packed,
                            unsigned shared, unsigned full, unsigned empty, int row0, int tile_n) {
  constexpr int tiles_k = S::k / Wgmma::depth, row_bytes = Wgmma::depth * 4;
  const int lane = threadIdx.x % 32;
  for (int kt = 0; kt < tiles_k; ++kt) {
    const int slot = kt % Stages;
    barrier_wait(empty + slot * 8, kt / Stages % 2 ^ 1);
    const unsigned to = shared + slot * Wgmma::stage, ready = full + slot * 8;
    if (lane == 0) {
      barrier_expect(ready, Wgmma::bytes_b + Wgmma::rows * row_bytes);
      const long long tile = static_cast<long long>(tile_n) * tiles_k + kt;
      copy_bulk(to, packed + tile * 2 * Wgmma::part_b, Wgmma::bytes_b, ready);
    }
    __syncwarp();
#pragma unroll
    for (int step = 0; step < Wgmma::rows / 32; ++step) {
      const int row = step * 32 + lane;
      // Rows beyond the last are copies of it; their results are not stored.
      const float* from = a + min(row0 + row, static_cast<int>(S::m) - 1) * S::a_row;
      copy_bulk(to + Wgmma::bytes_b + row * Wgmma::pitch * 4, from + kt * Wgmma::depth, row_bytes,
                ready);
    }
  }
}

// Grid: one block a tile of 256 x 128. A is depth-contiguous, its rows 16-byte aligned; k % 32 == 0.
template <class S, int Stages, class Epilogue>
KP_INLINE void gemm_wgmma(const float* __restrict__ a, const float* __restrict__ b,
                          const float* __restrict__ packed, unsigned char* memory,
                          const Epilogue& epilogue) {
  constexpr int tiles_k = S::k / Wgmma::depth, steps = Wgmma::depth / 8;
  using A = TileLayout<Wgmma::rows, Wgmma::depth, true, 4>;
  static_assert(S::k % Wgmma::depth == 0 && S::a_depth == 1 && S::a_wide, "see supports()");
  __shared__ __align__(8) unsigned long long barriers[2][Stages];
  unsigned char* aligned = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const unsigned shared = shared_address(aligned);
  const unsigned full = shared_address(barriers[0]), empty = shared_address(barriers[1]);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < Stages; ++slot) {
      barrier_create(full + slot * 8, 1);
      barrier_create(empty + slot * 8, 8);  // one for each warp that reads
    }
    barriers_ready();
  }
  __syncthreads();
  int tile_m, tile_n;
  tile_place<(S::m + Wgmma::rows - 1) / Wgmma::rows,
             (S::n + Wgmma::columns - 1) / Wgmma::columns>(blockIdx.x, tile_m, tile_n);
  const int row0 = tile_m * Wgmma::rows;
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (group == Wgmma::producer) {
    give_registers();
    if (threadIdx.x / 32 % 4 == 0)
      wgmma_copies<S, Stages>(a, packed, shared, full, empty, row0, tile_n);
    return;
  }
  take_registers();
  const int lane = threadIdx.x % 32, warp_row = group * 128 + threadIdx.x / 32 % 4 * 16;
  float sum[2][1][16][4] = {};
  for (int kt = 0; kt < tiles_k; ++kt) {
    const int slot = kt % Stages;
    barrier_wait(full + slot * 8, kt / Stages % 2);
    const unsigned tile_b = shared + slot * Wgmma::stage;
    const float* tile_a =
        reinterpret_cast<const float*>(aligned + slot * Wgmma::stage + Wgmma::bytes_b);
    const unsigned long long big_b = wgmma_operand(tile_b);
    const unsigned long long small_b = wgmma_operand(tile_b + Wgmma::part_b * 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned big[steps][4], small[steps][4];
#pragma unroll
      for (int s = 0; s < steps; ++s) {
        float four[4];
        load_left<A, true>(four, tile_a, warp_row + half * 64, s * 8);
#pragma unroll
        for (int q = 0; q < 4; ++q) split_tf32(four[q], big[s][q], small[s][q]);
      }
      float part[16][4];
      wgmma_begin();
#pragma unroll
      for (int s = 0; s < steps; ++s) wgmma_tf32(part, small[s], big_b + s * 2, s > 0);
#pragma unroll
      for (int s = 0; s < steps; ++s) wgmma_tf32(part, big[s], small_b + s * 2, 1);
#pragma unroll
      for (int s = 0; s < steps; ++s) wgmma_tf32(part, big[s], big_b + s * 2, 1);
      wgmma_finish();
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[half][0][j][q] += part[j][q];
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + slot * 8);
  }
  const int column = tile_n * Wgmma::columns + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + warp_row + half * 64 + lane / 4;
    finish_split<S>(a, b, sum[half], row, column, epilogue);
  }
}
