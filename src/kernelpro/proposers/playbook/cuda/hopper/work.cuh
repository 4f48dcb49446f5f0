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
  static constexpr int tiles_m = (S::m + L::step_m - 1) / L::step_m;
  static constexpr int tiles_n = (S::n + L::step_n - 1) / L::step_n;
  KP_INLINE int prepare(int*) { return tiles_m * tiles_n * S::batch; }
  KP_INLINE Tile tile(int index, int rank) const {
    const int matrix = S::batch > 1 ? index / (tiles_m * tiles_n) : 0;
    int tm, tn;
    tile_at(index - matrix * tiles_m * tiles_n, tiles_m, tiles_n, C::group, tm, tn);
    const int row = L::row(tm, rank);
    return {row, S::a_matrices > 1 ? matrix : 0, S::b_matrices > 1 ? matrix : 0,
            row, S::m, L::column(tn, rank), matrix, 0, S::k};
  }
};

// Rows of A belong to groups; ``ends[g]`` is where group g ends; B has a matrix for each group.
template <class C, class S> struct RaggedRows {
  using L = Layout<C>;
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
    return {row, 0, low, row, ends[low], L::column(tn, rank), low, 0, S::k};
  }
};

// The reduction belongs to groups: group g sums its own lines of A and B into its own result.
template <class C, class S> struct RaggedDepth {
  using L = Layout<C>;
  static constexpr int tiles_m = (S::m + L::step_m - 1) / L::step_m;
  static constexpr int tiles_n = (S::n + L::step_n - 1) / L::step_n;
  const int* ends;
  KP_INLINE int prepare(int*) { return tiles_m * tiles_n * S::groups; }
  KP_INLINE Tile tile(int index, int rank) const {
    const int group = index / (tiles_m * tiles_n);
    int tm, tn;
    tile_at(index - group * tiles_m * tiles_n, tiles_m, tiles_n, C::group, tm, tn);
    const int row = L::row(tm, rank);
    return {row, 0, 0, row, S::m, L::column(tn, rank), group, group > 0 ? ends[group - 1] : 0,
            ends[group]};
  }
};

