"""What the emulator knows of Hopper: barriers that count bytes, bulk copies, warpgroup products.

Shared addresses are offsets from ``dynamic_shared``. Copies and products are done at once, so a
missing wait is not noticed; a wait for what never comes hangs.
"""

HOPPER_FUNCTIONS = (
    "shared_address", "barrier_create", "barrier_expect", "barrier_arrive", "barrier_wait",
    "barriers_ready", "give_registers", "take_registers", "copy_bulk", "wgmma_tf32",
    "wgmma_begin", "wgmma_finish",
)  # fmt: skip
"""Functions of PTX that ``HOPPER`` replaces."""

HOPPER = r"""
#include <condition_variable>
#include <map>
#include <mutex>
struct Counted { int expected, pending, bytes, phase; };
static std::mutex counting;
static std::condition_variable counted;
static std::map<unsigned, Counted> barrier_at;
static unsigned shared_address(const void* p) {
  const auto start = reinterpret_cast<std::intptr_t>(dynamic_shared);
  return unsigned(reinterpret_cast<std::intptr_t>(p) - start);
}
static void settle(Counted& b) {  // with the lock held
  if (b.pending == 0 && b.bytes == 0) ++b.phase, b.pending = b.expected, counted.notify_all();
}
static void barrier_create(unsigned at, int arrivals) {
  std::lock_guard lock(counting);
  barrier_at[at] = {arrivals, arrivals, 0, 0};
}
static void barriers_ready() {}
static void barrier_expect(unsigned at, int bytes) {
  std::lock_guard lock(counting);
  Counted& b = barrier_at.at(at);
  b.bytes += bytes, --b.pending;
  settle(b);
}
static void barrier_arrive(unsigned at) { barrier_expect(at, 0); }
static void barrier_wait(unsigned at, int parity) {
  std::unique_lock lock(counting);
  counted.wait(lock, [&] { return barrier_at.at(at).phase % 2 != parity; });
}
static void copy_bulk(unsigned to, const void* from, int bytes, unsigned at) {
  if (to % 16 || bytes % 16 || reinterpret_cast<std::uintptr_t>(from) % 16) std::abort();
  std::memcpy(dynamic_shared + to, from, bytes);
  std::lock_guard lock(counting);
  Counted& b = barrier_at.at(at);
  b.bytes -= bytes;
  settle(b);
}
static void give_registers() {}
static void take_registers() {}
static void wgmma_begin() {}
static void wgmma_finish() {}
struct Group { std::barrier<> meeting{128}; };
static Group group_meeting[2];
static unsigned group_left[2][128][4];
// The start address of the descriptor's operand, its groups of eight rows 1024 bytes apart.
static float element_of(unsigned long long operand, unsigned column, unsigned depth) {
  if (operand >> 62 != 1 || (operand >> 32 & 0x3fff) != 64) std::abort();
  unsigned at = unsigned(operand & 0x3fff) << 4;
  at += column / 8 * 1024 + column % 8 * 128 + depth * 4;
  at ^= (at >> 7 & 7) << 4;
  return bits<float>(*reinterpret_cast<unsigned*>(dynamic_shared + at) & ~0x1fffu);
}
static void wgmma_tf32(float (&d)[16][4], const unsigned (&a)[4], unsigned long long b, int add) {
  const unsigned group = threadIdx.x / 128, thread = threadIdx.x % 128, lane = thread % 32;
  std::memcpy(group_left[group][thread], a, sizeof a);
  group_meeting[group].meeting.arrive_and_wait();
  for (unsigned j = 0; j < 16; ++j) for (unsigned q = 0; q < 4; ++q) {
    double sum = add ? d[j][q] : 0.0f;
    for (unsigned k = 0; k < 8; ++k) {
      const unsigned other = thread / 32 * 32 + lane / 4 * 4 + k % 4;
      const unsigned x = group_left[group][other][q / 2 + k / 4 * 2] & ~0x1fffu;
      sum += double(bits<float>(x)) * element_of(b, j * 8 + lane % 4 * 2 + q % 2, k);
    }
    d[j][q] = towards_zero(sum);
  }
  group_meeting[group].meeting.arrive_and_wait();
}
"""
