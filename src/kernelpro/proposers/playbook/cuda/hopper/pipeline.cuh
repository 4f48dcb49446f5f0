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
                            depth + rank * (kDepth / 2), matrix, both);
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
  const int clusters = gridDim.x / C::cluster;
  int stage = 0;
  unsigned parity = 1;  // a fresh barrier counts as passed for this parity: all stages are free
  for (int index = blockIdx.x / C::cluster; index < total; index += clusters) {
    const Tile tile = work.tile(index, rank);
    for (int depth = tile.depth; depth < tile.depth_end; depth += kDepth) {
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

// Lines ``from`` to ``to`` of both operands become zero: the tensor cores read whole slices.
template <class C> KP_INLINE void clear_lines(unsigned char* stage, int from, int to) {
  constexpr int blocks = Layout<C>::stage_bytes / kBlockBytes;
  const int lines = to - from;
  for (int i = threadIdx.x - 128; i < blocks * lines * 8; i += C::consumers * 128) {
    const int line = from + i / 8 % lines, block = i / 8 / lines;
    *reinterpret_cast<uint4*>(stage + block * kBlockBytes + line * 128 + i % 8 * 16) =
        make_uint4(0, 0, 0, 0);
  }
  fence_async_proxy();
  asm volatile("bar.sync 1, %0;" ::"n"(C::consumers * 128) : "memory");
}

template <class C>
KP_INLINE void accumulate_tile(Accumulators<C>& acc, const Tile& tile, unsigned char* shared,
                               unsigned full, unsigned empty, int& stage, unsigned& parity) {
  using L = Layout<C>;
  const int consumer = threadIdx.x / 128 - 1;
  const int depth = tile.depth_end - tile.depth;
  const int tail = C::ragged_depth ? depth % kDepth : 0;
  const int whole = C::ragged_depth ? depth / kDepth : (depth + kDepth - 1) / kDepth;
  const unsigned base = shared_address(shared);
  const unsigned mine = consumer * C::blocks_m * kBlockBytes;
  pin(acc);
  for (int k = 0; k < whole; ++k) {
    barrier_wait(full + stage * 8, parity);
    const unsigned at = base + stage * L::stage_bytes;
    multiply<C, 4>(acc, descriptor<C::a_k_major>(at + mine),
                   descriptor<C::b_k_major>(at + L::a_bytes), k > 0);
    wgmma_wait<1>();
    if (k > 0) release<C>(empty, before<C>(stage));
    if (++stage == C::stages) stage = 0, parity ^= 1;
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
      barrier_wait(full + stage * 8, parity);
      const int slices = (tail + 15) / 16;
      clear_lines<C>(shared + stage * L::stage_bytes, tail, slices * 16);
      const unsigned at = base + stage * L::stage_bytes;
      const unsigned long long a = descriptor<C::a_k_major>(at + mine);
      const unsigned long long b = descriptor<C::b_k_major>(at + L::a_bytes);
      for (int slice = 0; slice < slices; ++slice) {
        multiply<C, 1>(acc, a + slice * slice_step<C::a_k_major>(),
                       b + slice * slice_step<C::b_k_major>(), slice > 0 || whole > 0);
      }
      wgmma_wait<0>();
      pin(acc);
      release<C>(empty, stage);
      if (++stage == C::stages) stage = 0, parity ^= 1;
    }
  }
}

