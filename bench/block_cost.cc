/*
  Prints what a block costs, in nanoseconds for taking and freeing it: of
  malloc(), of a pool as upstream's hooks ask for it, and of a pool while blocks
  of the general allocator live that serve for it: one, and so many that each
  free has to ask where its block came from. A program without the server:

    cmake --build --preset dev --target memdiag_block_cost
    build/dev/unittest/memdiag_block_cost

  Threads keep 16 blocks each and replace the oldest. The ways take turns within
  a round; printed are medians of the rounds, and the ratio to malloc().
*/

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/pools/sharing.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/upstream/hooks.h"

namespace {

constexpr int rounds = 15;
constexpr int blocks_each = 200'000;
constexpr unsigned kept = 16;

struct Malloc {
  static void *take(size_t size) { return malloc(size); }
  static void give(void *block, size_t) { free(block); }
};

struct Of_pool {
  static memdiag::Packed_tag tag() {
    return memdiag::routes::tag_of_place(memdiag::Place::heap_transaction);
  }
  static void *take(size_t size) {
    return memdiag_allocate(tag(), size, false);
  }
  static void give(void *block, size_t size) {
    memdiag_free(tag(), block, size);
  }
};

/** Blocks of the general allocator that serve for the pool. */
class Stand_ins {
 public:
  explicit Stand_ins(unsigned count) : m_blocks(count) {
    memdiag::pools::fail_allocations_for_test({.count = count, .pool = pool});
    for (void *&block : m_blocks) block = memdiag::pools::allocate(pool, size);
    memdiag::pools::fail_allocations_for_test({.count = 0});
    if (memdiag::pools::fallback_blocks(pool) != count) abort();
  }
  ~Stand_ins() {
    for (void *const block : m_blocks) memdiag::pools::free(pool, block, size);
  }
  Stand_ins(const Stand_ins &) = delete;
  Stand_ins &operator=(const Stand_ins &) = delete;

 private:
  static constexpr auto pool = memdiag::Pool::transaction;
  static constexpr size_t size = 100;
  std::vector<void *> m_blocks;
};
/** Enough for each counter of pools/fallback_filter.h. */
constexpr unsigned many_stand_ins = 8192;

template <typename Way>
void replace_blocks(size_t size) {
  std::array<void *, kept> blocks{};
  for (int i = 0; i < blocks_each; ++i) {
    void *&block = blocks[i % kept];
    if (block != nullptr) Way::give(block, size);
    block = Way::take(size);
    // As its user would; and so that the compiler leaves malloc() in place.
    *static_cast<volatile char *>(block) = 1;
  }
  for (void *block : blocks) Way::give(block, size);
}

template <typename Way>
double nanoseconds(size_t size, unsigned threads) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i)
    workers.emplace_back([size] { replace_blocks<Way>(size); });
  for (std::thread &worker : workers) worker.join();
  const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
  return taken.count() / blocks_each;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  memdiag::pools::share_one_arena(false);
  const unsigned cpus = std::max(std::thread::hardware_concurrency(), 1U);
  printf("%8s %8s %10s %10s %8s %14s %14s\n", "bytes", "threads", "malloc ns",
         "pool ns", "ratio", "beside one ns", "all ask ns");
  for (const unsigned threads : {1U, cpus})
    for (const size_t size : {64, 512, 1100, 4096, 16384}) {
      std::vector<double> by_malloc;
      std::vector<double> by_pool;
      std::vector<double> beside_one;
      std::vector<double> all_ask;
      for (int round = 0; round < rounds; ++round) {
        by_malloc.push_back(nanoseconds<Malloc>(size, threads));
        by_pool.push_back(nanoseconds<Of_pool>(size, threads));
        {
          const Stand_ins one(1);
          beside_one.push_back(nanoseconds<Of_pool>(size, threads));
        }
        const Stand_ins many(many_stand_ins);
        all_ask.push_back(nanoseconds<Of_pool>(size, threads));
      }
      const double general = median(by_malloc);
      const double pool = median(by_pool);
      printf("%8zu %8u %10.1f %10.1f %8.2f %14.1f %14.1f\n", size, threads,
             general, pool, pool / general, median(beside_one),
             median(all_ask));
    }
}
