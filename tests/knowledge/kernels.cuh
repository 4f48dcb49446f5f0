// Small kernels behind the statements of prompts/knowledge_cute.md. Compiled after prelude.cuh,
// the Hopper template and the wrappers wgmma_f16_n64 and wgmma_f16_n128.

// Where element (line, column) of a tile of 64-half lines lies under the 128-byte swizzle.
KP_INLINE int swizzled(int line, int column) {
  return line * 64 + ((column / 8) ^ (line % 8)) * 8 + column % 8;
}
KP_INLINE void deposit(unsigned short* tile, const unsigned short* from, int lines, int pitch) {
  for (int i = threadIdx.x; i < lines * 64; i += 128)
    tile[swizzled(i / 64, i % 64)] = from[i / 64 * pitch + i % 64];
}
KP_INLINE unsigned long long described(unsigned address, int leading, int stride) {
  return (1ull << 62) | (static_cast<unsigned long long>(stride / 16) << 32)
         | (static_cast<unsigned long long>(leading / 16) << 16) | ((address & 0x3ffff) >> 4);
}
template <int Columns> KP_INLINE void write_fragments(const float (&d)[Columns / 2], float* out) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < Columns / 2; ++i) {
    const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
    out[row * Columns + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
}

// 64 x 64 x 64. A and B are given line by line: rows if k-major, steps of the reduction if not.
template <bool AK, bool BK>
KP_INLINE void product(const unsigned short* a, const unsigned short* b, float* out, int leading,
                       float start) {
  __shared__ __align__(1024) unsigned short sa[64 * 64];
  __shared__ __align__(1024) unsigned short sb[64 * 64];
  deposit(sa, a, 64, 64);
  deposit(sb, b, 64, 64);
  fence_async_proxy();
  __syncthreads();
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = start;
  const unsigned at = shared_address(sa), bt = shared_address(sb);
  wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < 4; ++slice)
    wgmma_f16_n64<!AK, !BK>(d, described(at + slice * (AK ? 32 : 2048), leading, 1024),
                            described(bt + slice * (BK ? 32 : 2048), leading, 1024), slice > 0);
  wgmma_commit();
  wgmma_wait<0>();
  write_fragments<64>(d, out);
}
#define PRODUCT(name, ak, bk)                                                                  \
  extern "C" __global__ void __launch_bounds__(128) name(                                      \
      const unsigned short* a, const unsigned short* b, float* out, int leading, float start) { \
    product<ak, bk>(a, b, out, leading, start);                                                \
  }
PRODUCT(product_kk, true, true)
PRODUCT(product_kn, true, false)
PRODUCT(product_mk, false, true)
PRODUCT(product_mn, false, false)

// 64 x 128 x 64 with B as two blocks of 64 columns, ``apart`` bytes from each other.
extern "C" __global__ void __launch_bounds__(128)
product_blocks(const unsigned short* a, const unsigned short* b, float* out, int apart) {
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned short* sa = reinterpret_cast<unsigned short*>(memory);
  unsigned char* sb = memory + 8192;
  deposit(sa, a, 64, 64);
  deposit(reinterpret_cast<unsigned short*>(sb), b, 64, 128);
  deposit(reinterpret_cast<unsigned short*>(sb + apart), b + 64, 64, 128);
  fence_async_proxy();
  __syncthreads();
  float d[64];
  for (int i = 0; i < 64; ++i) d[i] = 0.0f;
  wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < 4; ++slice)
    wgmma_f16_n128<0, 1>(d, described(shared_address(sa) + slice * 32, 16, 1024),
                         described(shared_address(sb) + slice * 2048, apart, 1024), slice > 0);
  wgmma_commit();
  wgmma_wait<0>();
  write_fragments<128>(d, out);
}

// One box of 64 lines as it lies in shared memory, and what barriers say before and after.
extern "C" __global__ void __launch_bounds__(128)
copied_box(const __grid_constant__ TensorMap map, unsigned short* out, int* said, int x, int y) {
  __shared__ __align__(1024) unsigned short tile[64 * 64];
  __shared__ __align__(8) unsigned long long memory;
  const unsigned barrier = shared_address(&memory);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    said[0] = barrier_passed(barrier, 1);  // the phase before the first counts as over
    said[1] = barrier_passed(barrier, 0);  // the first is not
    barrier_expect(barrier, 8192);         // all of the box, outside the tensor too
    load_box(shared_address(tile), &map, barrier, x, y, 0);
  }
  __syncthreads();
  barrier_wait(barrier, 0);
  if (threadIdx.x == 0) said[2] = barrier_passed(barrier, 0), said[3] = barrier_passed(barrier, 1);
  for (int i = threadIdx.x; i < 64 * 64; i += 128) out[i] = tile[i];
}

// Two blocks: the first sends one box to both and the second signals the first's own barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
shared_box(const __grid_constant__ TensorMap map, unsigned short* out) {
  __shared__ __align__(1024) unsigned short tile[64 * 64];
  __shared__ __align__(8) unsigned long long memory[2];
  const unsigned full = shared_address(memory), ready = full + 8;
  const int rank = cluster_rank();
  if (threadIdx.x == 0) {
    barrier_init(full, 1);
    barrier_init(ready, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    barrier_expect(full, 8192);
  }
  cluster_sync();
  if (threadIdx.x == 0 && rank == 1) barrier_arrive_at(ready, 0);
  if (threadIdx.x == 0 && rank == 0) {
    barrier_wait(ready, 0);
    load_box_everywhere(shared_address(tile), &map, full, 0, 0, 0, 3);
  }
  barrier_wait(full, 0);
  for (int i = threadIdx.x; i < 64 * 64; i += 128) out[rank * 4096 + i] = tile[i];
  cluster_sync();
}

// Sums of a warpgroup as halves through stmatrix into lines 16 bytes longer than the row, and from
// there by one bulk copy a row.
extern "C" __global__ void __launch_bounds__(128) rows_out(unsigned short* out, int pitch) {
  __shared__ __align__(128) unsigned char staging[64 * 144];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned char* mine = staging + warp * 16 * 144;
  const unsigned target = shared_address(mine) + (lane / 8 % 2 * 8 + lane % 8) * 144
                          + lane / 16 * 16;
  for (int b = 0; b < 4; ++b) {
    unsigned packed[4];
    for (int i = 0; i < 4; ++i) {
      const int row = warp * 16 + lane / 4 + i % 2 * 8, column = b * 16 + i / 2 * 8 + lane % 4 * 2;
      packed[i] = static_cast<unsigned>(row * 64 + column)
                  | static_cast<unsigned>(row * 64 + column + 1) << 16;
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(target + b * 32), "r"(packed[0]), "r"(packed[1]), "r"(packed[2]),
                   "r"(packed[3]) : "memory");
  }
  fence_async_proxy();
  __syncwarp();
  if (lane < 16) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                 ::"l"(out + (warp * 16 + lane) * pitch), "r"(shared_address(mine) + lane * 144)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// Registers handed from one warpgroup to two others.
extern "C" __global__ void __launch_bounds__(384, 1) handed_over(float* out) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = 1.0f;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float v[180];
#pragma unroll
    for (int i = 0; i < 180; ++i) v[i] = out[384 + (threadIdx.x + i) % 128];
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int i = 0; i < 180; ++i) v[i] = fmaf(v[i], v[(i + 7) % 180], 1.0f);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 180; ++i) sum += v[i];
    out[threadIdx.x] = sum;
  }
}
