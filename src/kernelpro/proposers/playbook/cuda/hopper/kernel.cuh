template <class C, class Work, class Epilogue>
KP_INLINE void consume(const Work& work, Epilogue epilogue, int total, int columns,
                       unsigned char* shared, const TensorMap* map_out, Turn place, int rank) {
  using L = Layout<C>;
  const int clusters = gridDim.x / C::cluster, cluster = blockIdx.x / C::cluster;
  const int consumer = threadIdx.x / 128 - 1;
  for (int round = 0; round * clusters < total; ++round) {
    const int index = index_in<Work>(round, clusters, cluster);
    if (index >= total) continue;
    const Tile tile = work.tile(index, rank);
    if (C::alternate && place.turn % C::consumers != consumer) {  // another's: skip its stages
      const int next = place.stage + (tile.depth_end - tile.depth + C::depth - 1) / C::depth;
      place.parity ^= next / C::stages & 1;
      place.stage = next % C::stages;
      ++place.turn;
      continue;
    }
    Accumulators<C> acc;
    accumulate_tile<C>(acc, tile, shared, place);
    ++place.turn;
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
  const unsigned order = empty + C::stages * 8;
  if (threadIdx.x == 0) {
    if (shared_address(shared) % 1024) __trap();
    prefetch_map(map_a);
    prefetch_map(map_b);
    for (int i = 0; i < C::stages; ++i) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, L::sharing * C::cluster);
    }
    for (int i = 0; i < C::consumers; ++i) barrier_init(order + i * 8, 1);
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
    consume<C>(work, epilogue, total, columns, shared, map_out, Turn{full, empty, order}, rank);
  }
  // No block may leave while another can still signal its barriers or write into its memory.
  if constexpr (C::cluster > 1) cluster_sync();
}
