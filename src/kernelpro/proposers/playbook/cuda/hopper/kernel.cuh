template <class C, class Work, class Epilogue>
KP_INLINE void consume(const Work& work, Epilogue epilogue, int total, int columns,
                       unsigned char* shared, unsigned full, unsigned empty, int rank) {
  const int clusters = gridDim.x / C::cluster;
  int stage = 0;
  unsigned parity = 0;
  for (int index = blockIdx.x / C::cluster; index < total; index += clusters) {
    const Tile tile = work.tile(index, rank);
    Accumulators<C> acc;
    accumulate_tile<C>(acc, tile, shared, full, empty, stage, parity);
    epilogue.batch = tile.matrix;
    if constexpr (C::stage_columns > 0) {
      finish_staged<C>(acc, epilogue, tile, columns, shared + Layout<C>::staging);
    } else {
      finish_direct<C>(acc, epilogue, tile, columns);
    }
  }
  if constexpr (C::stage_columns > 0) {
    if (threadIdx.x % 32 < 16) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// The kernel. ``columns``: width of the result. ``shared``: aligned to 1024 bytes.
template <class C, class Work, class Epilogue>
KP_INLINE void hopper_gemm(const TensorMap* map_a, const TensorMap* map_b, Work work,
                           const Epilogue& epilogue, int columns, unsigned char* shared) {
  using L = Layout<C>;
  const int rank = C::cluster > 1 ? cluster_rank() : 0;
  const unsigned full = shared_address(shared + L::barriers), empty = full + C::stages * 8;
  if (threadIdx.x == 0) {
    if (shared_address(shared) % 1024) __trap();
    prefetch_map(map_a);
    prefetch_map(map_b);
    for (int i = 0; i < C::stages; ++i) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, C::consumers * C::cluster);
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
    consume<C>(work, epilogue, total, columns, shared, full, empty, rank);
  }
  // No block may leave while another can still signal its barriers or write into its memory.
  if constexpr (C::cluster > 1) cluster_sync();
}
