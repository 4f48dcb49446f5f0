// ---- half precision on the tensor cores ---------------------------------------------------------
KP_INLINE void load_matrices(unsigned (&r)[4], const unsigned short* shared, bool transposed) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
  }
}
template <bool BFloat>
KP_INLINE void mma_half(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (BFloat) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
template <bool BFloat> KP_INLINE unsigned short narrow(float v) {
  return BFloat ? to_bfloat(v) : to_half(v);
}
template <bool BFloat> KP_INLINE unsigned short narrow(unsigned short v) { return v; }

// Operands of type T (float is rounded on the way to shared memory). Register-staged, two slots.
template <class S, int BM, int BN, int BK, bool BFloat, class T, class Epilogue>
KP_INLINE void gemm_half(const T* __restrict__ a, const T* __restrict__ b,
                         unsigned short* shared, const Epilogue& epilogue) {
  constexpr int threads = 256, mt = BM / 32, nt = BN / 32;
  constexpr bool a_depth = S::a_depth == 1, b_depth = S::b_depth == 1;
  using A = TileLayout<BM, BK, a_depth, 8>;
  using B = TileLayout<BN, BK, b_depth, 8>;
  constexpr int wide = sizeof(T) == 4 ? 4 : 8;
  constexpr int va = S::a_wide ? wide : 1, vb = S::b_wide ? wide : 1;
  constexpr int steps_a = (BM * BK / va + threads - 1) / threads;
  constexpr int steps_b = (BN * BK / vb + threads - 1) / threads;
  constexpr int slot_size = A::size + B::size;
  constexpr int tiles_m = (S::m + BM - 1) / BM, tiles_n = (S::n + BN - 1) / BN;
  constexpr int tiles_k = (S::k + BK - 1) / BK;
  int tile_m, tile_n;
  tile_place<tiles_m, tiles_n>(blockIdx.x, tile_m, tile_n);
  const int row0 = tile_m * BM, column0 = tile_n * BN;
  T next_a[steps_a][va], next_b[steps_b][vb];
  auto fetch = [&](int kt) {
    each_piece<A, a_depth, va, threads>([&](int step, int row, int depth, int) {
      const int r = row0 + row, d = kt * BK + depth;
#pragma unroll
      for (int i = 0; i < va; ++i) next_a[step][i] = T(0);
      if (r < S::m && d < S::k)
        load_pack<T, va, false>(a + r * S::a_row + d * S::a_depth, next_a[step]);
    });
    each_piece<B, b_depth, vb, threads>([&](int step, int column, int depth, int) {
      const int c = column0 + column, d = kt * BK + depth;
#pragma unroll
      for (int i = 0; i < vb; ++i) next_b[step][i] = T(0);
      if (c < S::n && d < S::k)
        load_pack<T, vb, false>(b + d * S::b_depth + c * S::b_column, next_b[step]);
    });
  };
  auto deposit = [&](int slot) {
    unsigned short* to = shared + slot * slot_size;
    each_piece<A, a_depth, va, threads>([&](int step, int, int, int place) {
      unsigned short bits[va];
#pragma unroll
      for (int i = 0; i < va; ++i) bits[i] = narrow<BFloat>(next_a[step][i]);
      store_pack<unsigned short, va, false>(to + place, bits);
    });
    each_piece<B, b_depth, vb, threads>([&](int step, int, int, int place) {
      unsigned short bits[vb];
#pragma unroll
      for (int i = 0; i < vb; ++i) bits[i] = narrow<BFloat>(next_b[step][i]);
      store_pack<unsigned short, vb, false>(to + A::size + place, bits);
    });
  };
  float sum[mt][nt][4];
#pragma unroll
  for (int i = 0; i < mt; ++i)
#pragma unroll
    for (int j = 0; j < nt; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) sum[i][j][q] = 0.0f;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, member = lane % 4, quad = lane / 8, line = lane % 8;
  const int warp_row = warp / 4 * (BM / 2), warp_column = warp % 4 * (BN / 4);
  fetch(0);
  deposit(0);
  __syncthreads();
  for (int kt = 0; kt < tiles_k; ++kt) {
    const int slot = kt % 2;
    if (kt + 1 < tiles_k) fetch(kt + 1);
    const unsigned short* tile_a = shared + slot * slot_size;
    const unsigned short* tile_b = tile_a + A::size;
#pragma unroll
    for (int depth = 0; depth < BK; depth += 16) {
      unsigned fa[mt][4], fb[nt / 2][4];
#pragma unroll
      for (int i = 0; i < mt; ++i) {
        const int row = warp_row + i * 16 + quad % 2 * 8, d = depth + quad / 2 * 8;
        load_matrices(fa[i], tile_a + A::at(row + (a_depth ? line : 0), d + (a_depth ? 0 : line)),
                      !a_depth);
      }
#pragma unroll
      for (int j = 0; j < nt / 2; ++j) {
        const int column = warp_column + j * 16 + quad / 2 * 8, d = depth + quad % 2 * 8;
        load_matrices(fb[j],
                      tile_b + B::at(column + (b_depth ? line : 0), d + (b_depth ? 0 : line)),
                      !b_depth);
      }
#pragma unroll
      for (int i = 0; i < mt; ++i)
#pragma unroll
        for (int j = 0; j < nt; ++j)
          mma_half<BFloat>(sum[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
    if (kt + 1 < tiles_k) {
      deposit(1 - slot);
      __syncthreads();
    }
  }
  finish_fragments<S>(sum, row0 + warp_row + group, column0 + warp_column + member * 2, epilogue);
}
