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

// The epilogue stores by itself, eight columns at a time.
template <class C, class Epilogue>
KP_INLINE void finish_direct(const Accumulators<C>& acc, const Epilogue& epilogue, const Tile& tile,
                             int columns) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int first = tile.row + (threadIdx.x / 128 - 1) * C::blocks_m * 64 + thread / 32 * 16;
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + r * 64 + half * 8 + lane / 4;
#pragma unroll
      for (int part = 0; part < C::tile_n / 32; ++part) {
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = acc.sum[r][(part * 4 + i / 2) * 4 + half * 2 + i % 2];
        exchange(v);
        const int column = tile.column + part * 32 + lane % 4 * 8;
        if (row < tile.row_end) {
#pragma unroll
          for (int i = 0; i < 8; i += Epilogue::lanes) {
            float some[Epilogue::lanes];
#pragma unroll
            for (int e = 0; e < Epilogue::lanes; ++e) some[e] = v[i + e];
            if (column + i < columns) epilogue(row, column + i, some);
          }
        }
      }
    }
}

// The epilogue returns two packed halves; rows leave through shared memory as bulk copies, which
// go on while the next tile is multiplied. Everything is private to a warp.
template <class C, class Epilogue>
KP_INLINE void finish_staged(const Accumulators<C>& acc, const Epilogue& epilogue, const Tile& tile,
                             int columns, unsigned char* staging) {
  using L = Layout<C>;
  const int thread = threadIdx.x % 128, lane = thread % 32, consumer = threadIdx.x / 128 - 1;
  unsigned char* mine = staging + (threadIdx.x / 32 - 4) * L::warp_staging;
  const unsigned target = shared_address(mine) + (lane / 8 % 2 * 8 + lane % 8) * L::pitch
                          + lane / 16 * 16;
#pragma unroll
  for (int r = 0; r < C::blocks_m; ++r) {
    const int first = tile.row + (consumer * C::blocks_m + r) * 64 + thread / 32 * 16;
    const int row = first + lane / 4;
#pragma unroll
    for (int part = 0; part < C::tile_n / C::stage_columns; ++part) {
      const int start = tile.column + part * C::stage_columns;
      if (lane < 16) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      __syncwarp();
#pragma unroll
      for (int b = 0; b < C::stage_columns / 16; ++b) {
        unsigned packed[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // rows 0-7 and 8-15 of one block of columns, then the next
          const int at = ((part * C::stage_columns / 8 + b * 2 + i / 2) * 2 + i % 2) * 2;
          const int column = start + b * 16 + i / 2 * 8 + lane % 4 * 2;
          const bool inside = row + i % 2 * 8 < tile.row_end && column < columns;
          packed[i] = inside ? epilogue.pack(row + i % 2 * 8, column, acc.sum[r][at],
                                             acc.sum[r][at + 1]) : 0u;
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"(target + b * 32), "r"(packed[0]), "r"(packed[1]), "r"(packed[2]),
                       "r"(packed[3]) : "memory");
      }
      fence_async_proxy();
      __syncwarp();
      if (lane < 16) {
        const int count = min(C::stage_columns, columns - start);
        if (first + lane < tile.row_end && count > 0) {
          asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                       ::"l"(epilogue.row(first + lane) + start),
                         "r"(shared_address(mine) + lane * L::pitch), "r"(count * 2) : "memory");
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
  }
}

