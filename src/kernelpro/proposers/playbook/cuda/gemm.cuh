// Matrix products with a fused epilogue. Sizes and strides are compile-time members of a Shape:
//   m, n, k; a_row, a_depth, b_depth, b_column (strides in elements); a_wide, b_wide (vectors fit).
// An Epilogue has ``lanes`` and is called as epilogue(i, j, values) for ``lanes`` columns from j.

template <int Bytes> KP_INLINE void copy_async(void* shared, const void* global, bool inside) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = inside ? Bytes : 0;  // the rest is filled with zeros
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
                 "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(global),
                 "r"(bytes));
  }
}
KP_INLINE void commit_async() { asm volatile("cp.async.commit_group;"); }
template <int Pending> KP_INLINE void wait_async() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

// Where a tile of an operand lies in shared memory. ``Depth`` is the reduction. Padding spreads
// the accesses of a warp over all banks.
template <int Rows, int Depth, bool DepthContiguous, int Pad> struct TileLayout {
  static constexpr int lines = DepthContiguous ? Rows : Depth;
  static constexpr int length = DepthContiguous ? Depth : Rows;
  static constexpr int pitch = length + Pad;
  static constexpr int size = lines * pitch;
  static KP_INLINE int at(int row, int depth) {
    return DepthContiguous ? row * pitch + depth : depth * pitch + row;
  }
};

// Visits the Vec-element pieces of a tile that belong to this thread.
template <class Layout, bool DepthContiguous, int Vec, int Threads, class Visit>
KP_INLINE void each_piece(Visit visit) {
  constexpr int per_line = Layout::length / Vec;
  constexpr int pieces = Layout::lines * per_line;
  // Where whole lines fit the threads, all but the first of these is a constant further on.
  constexpr bool aligned = Threads % per_line == 0;
  const int first_line = threadIdx.x / per_line, first_part = threadIdx.x % per_line * Vec;
#pragma unroll
  for (int step = 0; step < (pieces + Threads - 1) / Threads; ++step) {
    const int piece = step * Threads + threadIdx.x;
    if (pieces % Threads == 0 || piece < pieces) {
      const int line = aligned ? step * (Threads / per_line) + first_line : piece / per_line;
      const int part = aligned ? first_part : (piece % per_line) * Vec;
      visit(step, DepthContiguous ? line : part, DepthContiguous ? part : line,
            line * Layout::pitch + part);
    }
  }
}

// Tiles in groups of eight rows share columns of B while they are in L2.
template <int TilesM, int TilesN> KP_INLINE void tile_place(int tile, int& tile_m, int& tile_n) {
  constexpr int group = 8;
  const int band = tile / (group * TilesN);
  const int height = min(group, TilesM - band * group);
  const int inside = tile % (group * TilesN);
  tile_m = band * group + inside % height;
  tile_n = inside / height;
}

template <class Epilogue, int Count>
KP_INLINE void finish_columns(const Epilogue& epilogue, int i, int j, int columns,
                              const float (&values)[Count]) {
  if constexpr (Epilogue::lanes == Count) {
    if (j < columns) epilogue(i, j, values);
  } else {
#pragma unroll
    for (int part = 0; part < Count; ++part) {
      const float one[1] = {values[part]};
      if (j + part < columns) epilogue(i, j + part, one);
    }
  }
}

// ---- float32 on the CUDA cores ---------------------------------------------------------------
// 256 threads, each 8 x 8 results as four 4 x 4 blocks, so that shared loads are 128 bits wide.
template <class S, int BM, int BN, int BK, class Epilogue>
KP_INLINE void gemm_simt(const float* __restrict__ a, const float* __restrict__ b,
                         const Epilogue& epilogue) {
  constexpr int threads = 256;
  constexpr bool a_depth = S::a_depth == 1, b_depth = S::b_depth == 1;
  using A = TileLayout<BM, BK, false, 4>;
  using B = TileLayout<BN, BK, false, 4>;
  using FromA = TileLayout<BM, BK, a_depth, 0>;
  using FromB = TileLayout<BN, BK, b_depth, 0>;
  constexpr int va = S::a_wide ? 4 : 1, vb = S::b_wide ? 4 : 1;
  constexpr int steps_a = (BM * BK / va + threads - 1) / threads;
  constexpr int steps_b = (BN * BK / vb + threads - 1) / threads;
  __shared__ __align__(16) float shared_a[2][A::size];
  __shared__ __align__(16) float shared_b[2][B::size];
  constexpr int tiles_m = (S::m + BM - 1) / BM, tiles_n = (S::n + BN - 1) / BN;
  int tile_m, tile_n;
  tile_place<tiles_m, tiles_n>(blockIdx.x, tile_m, tile_n);
  const int row0 = tile_m * BM, column0 = tile_n * BN;
  float next_a[steps_a][va], next_b[steps_b][vb];
  auto fetch = [&](int depth0) {
    each_piece<FromA, a_depth, va, threads>([&](int step, int row, int depth, int) {
      const int r = row0 + row, d = depth0 + depth;
#pragma unroll
      for (int i = 0; i < va; ++i) next_a[step][i] = 0.0f;
      if (r < S::m && d < S::k)
        load_pack<float, va, false>(a + r * S::a_row + d * S::a_depth, next_a[step]);
    });
    each_piece<FromB, b_depth, vb, threads>([&](int step, int column, int depth, int) {
      const int c = column0 + column, d = depth0 + depth;
#pragma unroll
      for (int i = 0; i < vb; ++i) next_b[step][i] = 0.0f;
      if (c < S::n && d < S::k)
        load_pack<float, vb, false>(b + d * S::b_depth + c * S::b_column, next_b[step]);
    });
  };
  auto deposit = [&](int slot) {
    each_piece<FromA, a_depth, va, threads>([&](int step, int row, int depth, int) {
#pragma unroll
      for (int i = 0; i < va; ++i)
        shared_a[slot][A::at(row + (a_depth ? 0 : i), depth + (a_depth ? i : 0))] =
            next_a[step][i];
    });
    each_piece<FromB, b_depth, vb, threads>([&](int step, int column, int depth, int) {
#pragma unroll
      for (int i = 0; i < vb; ++i)
        shared_b[slot][B::at(column + (b_depth ? 0 : i), depth + (b_depth ? i : 0))] =
            next_b[step][i];
    });
  };
  constexpr int rm = BM / 64, rn = BN / 64;  // 4-row and 4-column blocks per thread
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  float sum[rm * 4][rn * 4];
#pragma unroll
  for (int i = 0; i < rm * 4; ++i)
#pragma unroll
    for (int j = 0; j < rn * 4; ++j) sum[i][j] = 0.0f;
  constexpr int tiles_k = (S::k + BK - 1) / BK;
  fetch(0);
  deposit(0);
  __syncthreads();
  for (int kt = 0; kt < tiles_k; ++kt) {
    const int slot = kt % 2;
    if (kt + 1 < tiles_k) fetch((kt + 1) * BK);
#pragma unroll
    for (int depth = 0; depth < BK; ++depth) {
      float x[rm * 4], y[rn * 4];
#pragma unroll
      for (int block = 0; block < rm; ++block) {
        const float4 four = *reinterpret_cast<const float4*>(
            &shared_a[slot][A::at(block * 64 + ty * 4, depth)]);
        x[block * 4] = four.x, x[block * 4 + 1] = four.y;
        x[block * 4 + 2] = four.z, x[block * 4 + 3] = four.w;
      }
#pragma unroll
      for (int block = 0; block < rn; ++block) {
        const float4 four = *reinterpret_cast<const float4*>(
            &shared_b[slot][B::at(block * 64 + tx * 4, depth)]);
        y[block * 4] = four.x, y[block * 4 + 1] = four.y;
        y[block * 4 + 2] = four.z, y[block * 4 + 3] = four.w;
      }
#pragma unroll
      for (int i = 0; i < rm * 4; ++i)
#pragma unroll
        for (int j = 0; j < rn * 4; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
    if (kt + 1 < tiles_k) {
      deposit(1 - slot);
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < rm * 4; ++i) {
    const int row = row0 + (i / 4) * 64 + ty * 4 + i % 4;
    if (row >= S::m) continue;
#pragma unroll
    for (int block = 0; block < rn; ++block) {
      const float four[4] = {sum[i][block * 4], sum[i][block * 4 + 1], sum[i][block * 4 + 2],
                             sum[i][block * 4 + 3]};
      finish_columns(epilogue, row, column0 + block * 64 + tx * 4, S::n, four);
    }
  }
}

// ---- TF32 on the tensor cores -----------------------------------------------------------------
KP_INLINE unsigned to_tf32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
KP_INLINE void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Copies tiles of both operands to one of ``Stages`` places in shared memory while others are used.
// Beyond the edges of an operand the tiles are zero.
template <class S, int BM, int BN, int BK, int Stages, int Threads> struct AsyncTiles {
  static constexpr bool a_depth = S::a_depth == 1, b_depth = S::b_depth == 1;
  using A = TileLayout<BM, BK, a_depth, a_depth ? 4 : 8>;
  using B = TileLayout<BN, BK, b_depth, b_depth ? 4 : 8>;
  static constexpr int tiles_k = (S::k + BK - 1) / BK;
  static constexpr int stage_size = A::size + B::size;
  const float* a;
  const float* b;
  float* shared;
  int row0, column0;

  KP_INLINE void fetch(int kt) const {
    constexpr int va = S::a_wide ? 4 : 1, vb = S::b_wide ? 4 : 1;
    constexpr bool all_m = S::m % BM == 0, all_n = S::n % BN == 0, all_k = S::k % BK == 0;
    float* to = shared + (kt % Stages) * stage_size;
    each_piece<A, a_depth, va, Threads>([&](int, int row, int depth, int place) {
      const int r = row0 + row, d = kt * BK + depth;
      const bool inside = (all_m || r < S::m) && (all_k || d < S::k);
      copy_async<va * 4>(to + place, inside ? a + r * S::a_row + d * S::a_depth : a, inside);
    });
    each_piece<B, b_depth, vb, Threads>([&](int, int column, int depth, int place) {
      const int c = column0 + column, d = kt * BK + depth;
      const bool inside = (all_n || c < S::n) && (all_k || d < S::k);
      copy_async<vb * 4>(to + A::size + place,
                         inside ? b + d * S::b_depth + c * S::b_column : b, inside);
    });
  }
  KP_INLINE void start() const {
#pragma unroll
    for (int kt = 0; kt < Stages - 1; ++kt) {
      if (kt < tiles_k) fetch(kt);
      commit_async();
    }
  }
  // Tile ``kt`` of A (B lies behind it), complete and visible to all; a later one is on its way.
  KP_INLINE const float* next(int kt) const {
    wait_async<Stages - 2>();
    __syncthreads();
    if (kt + Stages - 1 < tiles_k) fetch(kt + Stages - 1);
    commit_async();
    return shared + (kt % Stages) * stage_size;
  }
};

// Hands the results of a warp to the epilogue, two columns at a time. ``row`` and ``column``: of
// this thread's first result.
template <class S, int MT, int NT, class Epilogue>
KP_INLINE void finish_fragments(const float (&sum)[MT][NT][4], int row, int column,
                                const Epilogue& epilogue) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + i * 16 + half * 8;
      if (r >= S::m) continue;
#pragma unroll
      for (int j = 0; j < NT; ++j) {
        const float two[2] = {sum[i][j][half * 2], sum[i][j][half * 2 + 1]};
        finish_columns(epilogue, r, column + j * 8, S::n, two);
      }
    }
}

// Eight warps as 2 x 4; each BM/2 x BN/4 results.
template <class S, int BM, int BN, int BK, int Stages, class Epilogue>
KP_INLINE void gemm_tf32(const float* __restrict__ a, const float* __restrict__ b,
                         float* shared, const Epilogue& epilogue) {
  constexpr int mt = BM / 32, nt = BN / 32;
  using Tiles = AsyncTiles<S, BM, BN, BK, Stages, 256>;
  using A = typename Tiles::A;
  using B = typename Tiles::B;
  int tile_m, tile_n;
  tile_place<(S::m + BM - 1) / BM, (S::n + BN - 1) / BN>(blockIdx.x, tile_m, tile_n);
  const Tiles tiles{a, b, shared, tile_m * BM, tile_n * BN};
  float sum[mt][nt][4] = {};
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  const int warp_row = warp / 4 * (BM / 2), warp_column = warp % 4 * (BN / 4);
  tiles.start();
  for (int kt = 0; kt < Tiles::tiles_k; ++kt) {
    const float* tile_a = tiles.next(kt);
    const float* tile_b = tile_a + A::size;
#pragma unroll
    for (int depth = 0; depth < BK; depth += 8) {
      unsigned fa[mt][4], fb[nt][2];
#pragma unroll
      for (int i = 0; i < mt; ++i) {
        const int row = warp_row + i * 16 + group;
#pragma unroll
        for (int q = 0; q < 4; ++q)
          fa[i][q] = to_tf32(tile_a[A::at(row + q % 2 * 8, depth + member + q / 2 * 4)]);
      }
#pragma unroll
      for (int j = 0; j < nt; ++j) {
        const int column = warp_column + j * 8 + group;
#pragma unroll
        for (int q = 0; q < 2; ++q)
          fb[j][q] = to_tf32(tile_b[B::at(column, depth + member + q * 4)]);
      }
#pragma unroll
      for (int i = 0; i < mt; ++i)
#pragma unroll
        for (int j = 0; j < nt; ++j) mma_tf32(sum[i][j], fa[i], fb[j]);
    }
  }
  finish_fragments<S>(sum, tiles.row0 + warp_row + group, tiles.column0 + warp_column + member * 2,
                      epilogue);
}
