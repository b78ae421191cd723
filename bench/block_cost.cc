/*
  Prints what a block costs, in nanoseconds for taking and freeing it: of
  malloc(), and of a pool as upstream's hooks ask for it. A program without the
  server:

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

#include "mysys/memdiag/routes/hooks.h"
#include "mysys/memdiag/routes/routes.h"

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
  const unsigned cpus = std::max(std::thread::hardware_concurrency(), 1U);
  printf("%8s %8s %10s %10s %8s\n", "bytes", "threads", "malloc ns", "pool ns",
         "ratio");
  for (const unsigned threads : {1U, cpus})
    for (const size_t size : {64, 512, 1100, 4096, 16384}) {
      std::vector<double> by_malloc;
      std::vector<double> by_pool;
      for (int round = 0; round < rounds; ++round) {
        by_malloc.push_back(nanoseconds<Malloc>(size, threads));
        by_pool.push_back(nanoseconds<Of_pool>(size, threads));
      }
      const double general = median(by_malloc);
      const double pool = median(by_pool);
      printf("%8zu %8u %10.1f %10.1f %8.2f\n", size, threads, general, pool,
             pool / general);
    }
}
