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

