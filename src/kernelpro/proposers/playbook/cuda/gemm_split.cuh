// ---- float32 on the tensor cores: three TF32 products for one -----------------------------------
// Each operand is the sum of two TF32 numbers, big + small, and
//   x * y = small * big + big * small + big * big   (small * small is below 2^-22 of it).
// Tensor cores truncate what they accumulate, always towards zero. So they sum no more than
// ``Chunk`` products at a time; these partial sums are added up in float32, which rounds.

// Dekker's split at 13 bits with one FMA: ``big`` has 11 significant bits, which is what TF32
// holds. ``small`` is exact, with at most 12; the tensor core ignores what does not fit.
// Beyond 2^115 big is not finite: see ``repair``.
KP_INLINE void split_tf32(float value, unsigned& big, unsigned& small) {
  const float rounded = __fmaf_rn(value, -8192.0f, __fmul_rn(value, 8193.0f));
  big = __float_as_uint(rounded);
  small = __float_as_uint(__fsub_rn(value, rounded));
}

// Four 8 x 4 blocks of 32-bit words, one row from each lane's address; block q goes to r[q].
KP_INLINE void load_words(float (&r)[4], const float* shared) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]) : "r"(address));
}

// A 16 x 8 (rows x depth) fragment of A, and two 8 x 8 (depth x columns) fragments of B.
template <class A, bool DepthContiguous>
KP_INLINE void load_left(float (&r)[4], const float* tile, int row, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (DepthContiguous) {
    load_words(r, tile + A::at(row + lane / 8 % 2 * 8 + lane % 8, depth + lane / 16 * 4));
  } else {
#pragma unroll
    for (int q = 0; q < 4; ++q)
      r[q] = tile[A::at(row + lane / 4 + q % 2 * 8, depth + lane % 4 + q / 2 * 4)];
  }
}
template <class B, bool DepthContiguous>
KP_INLINE void load_right(float (&r)[4], const float* tile, int column, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (DepthContiguous) {
    load_words(r, tile + B::at(column + lane / 16 * 8 + lane % 8, depth + lane / 8 % 2 * 4));
  } else {
#pragma unroll
    for (int q = 0; q < 4; ++q)
      r[q] = tile[B::at(column + lane / 4 + q / 2 * 8, depth + lane % 4 + q % 2 * 4)];
  }
}

// Results that are not finite, or came from operands too large to split, as float32 has them.
template <class S, int MT, int NT, class Epilogue>
KP_INLINE void repair(const float* __restrict__ a, const float* __restrict__ b, int row, int column,
                      const Epilogue& epilogue) {
#pragma unroll 1
  for (int half = 0; half < 2 * MT; ++half) {
    const int r = row + half * 8;
    if (r >= S::m) break;
#pragma unroll 1
    for (int j = 0; j < NT; ++j) {
      const int c = column + j * 8;
      if (c >= S::n) break;
      const bool second = c + 1 < S::n;
      float two[2] = {};
      for (int d = 0; d < S::k; ++d) {
        const float x = a[r * S::a_row + d * S::a_depth];
        two[0] = fmaf(x, b[d * S::b_depth + c * S::b_column], two[0]);
        if (second) two[1] = fmaf(x, b[d * S::b_depth + (c + 1) * S::b_column], two[1]);
      }
      finish_columns(epilogue, r, c, S::n, two);
    }
  }
}

template <class S, int MT, int NT, class Epilogue>
KP_INLINE void finish_split(const float* __restrict__ a, const float* __restrict__ b,
                            const float (&sum)[MT][NT][4], int row, int column,
                            const Epilogue& epilogue) {
  float check = 0.0f;  // NaN if any result is not finite
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) check = __fmaf_rn(sum[i][j][q], 0.0f, check);
  if (check == check) {
    finish_fragments<S>(sum, row, column, epilogue);
  } else {
    repair<S, MT, NT>(a, b, row, column, epilogue);
  }
}

// Eight warps as 2 x 4; each BM/2 x BN/4 results.
template <class S, int BM, int BN, int BK, int Stages, int Chunk, class Epilogue>
KP_INLINE void gemm_split(const float* __restrict__ a, const float* __restrict__ b,
                          float* shared, const Epilogue& epilogue) {
  constexpr int mt = BM / 32, nt = BN / 32, depths = Chunk / 8;
  static_assert(BK % Chunk == 0 && Chunk % 8 == 0 && nt % 2 == 0, "whole fragments");
  using Tiles = AsyncTiles<S, BM, BN, BK, Stages, 256>;
  using A = typename Tiles::A;
  using B = typename Tiles::B;
  int tile_m, tile_n;
  tile_place<(S::m + BM - 1) / BM, (S::n + BN - 1) / BN>(blockIdx.x, tile_m, tile_n);
  const Tiles tiles{a, b, shared, tile_m * BM, tile_n * BN};
  float sum[mt][nt][4] = {};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 4 * (BM / 2), warp_column = warp % 4 * (BN / 4);
  tiles.start();
  for (int kt = 0; kt < Tiles::tiles_k; ++kt) {
    const float* tile_a = tiles.next(kt);
    const float* tile_b = tile_a + A::size;
#pragma unroll 1
    for (int chunk = 0; chunk < BK; chunk += Chunk) {
      unsigned b_big[depths][nt][2], b_small[depths][nt][2];
#pragma unroll
      for (int s = 0; s < depths; ++s)
#pragma unroll
        for (int j = 0; j < nt; j += 2) {
          float four[4];
          load_right<B, Tiles::b_depth>(four, tile_b, warp_column + j * 8, chunk + s * 8);
#pragma unroll
          for (int q = 0; q < 4; ++q)
            split_tf32(four[q], b_big[s][j + q / 2][q % 2], b_small[s][j + q / 2][q % 2]);
        }
#pragma unroll
      for (int i = 0; i < mt; ++i) {
        float part[nt][4] = {};
#pragma unroll
        for (int s = 0; s < depths; ++s) {
          float four[4];
          unsigned big[4], small[4];
          load_left<A, Tiles::a_depth>(four, tile_a, warp_row + i * 16, chunk + s * 8);
#pragma unroll
          for (int q = 0; q < 4; ++q) split_tf32(four[q], big[q], small[q]);
#pragma unroll
          for (int j = 0; j < nt; ++j) mma_tf32(part[j], small, b_big[s][j]);
#pragma unroll
          for (int j = 0; j < nt; ++j) mma_tf32(part[j], big, b_small[s][j]);
#pragma unroll
          for (int j = 0; j < nt; ++j) mma_tf32(part[j], big, b_big[s][j]);
        }
#pragma unroll
        for (int j = 0; j < nt; ++j)
#pragma unroll
          for (int q = 0; q < 4; ++q) sum[i][j][q] += part[j][q];
      }
    }
  }
  const int row = tiles.row0 + warp_row + lane / 4;
  const int column = tiles.column0 + warp_column + lane % 4 * 2;
  finish_split<S>(a, b, sum, row, column, epilogue);
}
