// One 64 x 64 x 64 product of halves by one warpgroup, in CuTe.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
using namespace cute;
extern "C" __global__ void __launch_bounds__(128) product(const half_t* a, const half_t* b, float* c) {
  auto layout = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _64>{});
  __shared__ alignas(1024) half_t sa_memory[64 * 64], sb_memory[64 * 64];
  Tensor sa = make_tensor(make_smem_ptr(sa_memory), layout);
  Tensor sb = make_tensor(make_smem_ptr(sb_memory), layout);
  for (int i = threadIdx.x; i < 64 * 64; i += 128) {
    sa(i / 64, i % 64) = a[i];
    sb(i / 64, i % 64) = b[i];
  }
  cutlass::arch::fence_view_async_shared();
  __syncthreads();
  TiledMMA mma = make_tiled_mma(SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor fa = thread.make_fragment_A(thread.partition_A(sa));
  Tensor fb = thread.make_fragment_B(thread.partition_B(sb));
  Tensor gc = make_tensor(make_gmem_ptr(c), make_layout(Shape<_64, _64>{}, LayoutRight{}));
  Tensor tc = thread.partition_C(gc);
  Tensor sums = thread.make_fragment_C(tc);
  clear(sums);
  warpgroup_fence_operand(sums);
  warpgroup_arrive();
  gemm(mma, fa, fb, sums);
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  warpgroup_fence_operand(sums);
  copy(sums, tc);
}
