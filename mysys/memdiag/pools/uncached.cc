#include "mysys/memdiag/pools/uncached.h"

#include <algorithm>
#include <atomic>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"

namespace memdiag::pools {
namespace {

/** A pool has an arena for large blocks for so many CPUs. */
constexpr unsigned cpus_per_large_arena = 4;

/** A thread asks so often before it turns to another arena or pauses: a holder
that runs has finished within a microsecond or two. */
constexpr int spins = 64;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/** For holders that wait for their turn at the CPU. */
class Pauses {
 public:
  /** Pauses; false: there were enough of them. */
  bool one_more() {
    if (m_number == most) return false;
    pause_us(shortest_us << std::min(m_number++, doublings));
    return true;
  }

 private:
  static constexpr unsigned shortest_us = 16;
  static constexpr unsigned doublings = 9;
  static constexpr unsigned most = 130;
  unsigned m_number{0};
};

/** A block that was left with the holder, in its own memory. */
struct Left_block {
  Left_block *next;
  size_t size;
};

/** On a cache line of its own, because each such block writes it. */
struct alignas(64) Arena_work {
  std::atomic<bool> held{false};
  std::atomic<Left_block *> left{nullptr};
  /** Live blocks above largest_cached bytes: their own pages, with those that
  jemalloc takes beside them, and the most of these since surplus_of_pages()
  was last called. */
  std::atomic<uint64_t> own_bytes{0};
  std::atomic<uint64_t> paged_bytes{0};
  std::atomic<uint64_t> most_paged_bytes{0};
};
constinit Arena_work work[pool_count][max_slots];

Arena_work &work_of(Pool pool, unsigned slot) {
  return work[static_cast<size_t>(pool)][slot];
}

/** Looks first, because a failed exchange takes the line from the holder. The
look is ordered after a block was left: see let_go(). */
bool try_hold(Arena_work *arena) {
  return !arena->held.load() && !arena->held.exchange(true);
}

/** The caller holds the flag, or all flags that it asked for are held. */
void free_left_blocks(Arena_work *arena) {
  if (arena->left.load(std::memory_order_relaxed) == nullptr) [[likely]]
    return;
  for (Left_block *block = arena->left.exchange(nullptr); block != nullptr;) {
    Left_block *const next = block->next;
    placed::free(block, placed::no_cache, block->size);
    block = next;
  }
}

/** A block may be left between the last look and the release. Either this
thread sees it then, or the thread that left it sees the flag free. */
void let_go(Arena_work *arena) {
  do {
    free_left_blocks(arena);
    arena->held.store(false);
  } while (arena->left.load() != nullptr && try_hold(arena));
}

/** The slot of the arena for the calling thread's large blocks. It goes by
threads, in turn, so that a thread finds the pages that it has freed. On a
machine with several nodes of memory, new pages are where the process's policy
puts them, and pages that are used again stay where they are. */
unsigned slot_for_large(Pool pool) {
  static constinit std::atomic<unsigned> threads{0};
  static constinit thread_local unsigned number = 0;
  if (number == 0) number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  const unsigned arenas = spec_of(pool).arenas;
  if (shares_one_arena()) return arenas > 1 ? 1 : 0;
  const unsigned slots =
      std::min(arenas, std::max(allowed_cpus() / cpus_per_large_arena, 1U));
  return (number - 1) % slots;
}

}  // namespace

Arena_guard::Arena_guard(Pool pool, unsigned slot, unsigned candidates) noexcept
    : m_pool(pool), m_slot(slot), m_is_mine(try_hold(&work_of(pool, slot))) {
  for (int spin = 0; spin < spins && !m_is_mine; ++spin) {
    relax();
    m_is_mine = try_hold(&work_of(pool, slot));
  }
  if (m_is_mine) [[likely]]
    return;
  // While all share one arena, the server starts, and few threads run.
  if (!shares_one_arena()) {
    const unsigned arenas = spec_of(pool).arenas;
    Pauses pauses;
    do {
      for (unsigned i = 0; i < candidates; ++i) {
        m_slot = (slot + i * slots_apart(arenas)) % arenas;
        m_is_mine = try_hold(&work_of(pool, m_slot));
        if (m_is_mine) return;
      }
    } while (pauses.one_more());
    m_slot = slot;
  }
  free_left_blocks(&work_of(pool, slot));
}

Arena_guard Arena_guard::in_pool(Pool pool, unsigned own) noexcept {
  return {pool, slot_of_shard(pool, own), 1 + stand_ins};
}

Arena_guard Arena_guard::for_large_block(Pool pool) noexcept {
  return {pool, slot_for_large(pool), 1 + stand_ins};
}

Arena_guard::~Arena_guard() {
  if (m_is_mine) let_go(&work_of(m_pool, m_slot));
}

void free_uncached(Pool pool, void *block, size_t size) noexcept {
  if (size < sizeof(Left_block)) {
    placed::free(block, placed::no_cache, size);
    return;
  }
  const Result<unsigned> arena = mallctl::arena_of(block);
  if (!arena) [[unlikely]] {
    placed::free(block, placed::no_cache, size);
    return;
  }
  const unsigned slot = slot_of_arena(arena.value());
  if (size > largest_cached) {
    Arena_work &arena = work_of(pool, slot);
    const size_t usable = placed::usable(size);
    arena.own_bytes.fetch_sub(usable);
    arena.paged_bytes.fetch_sub(placed::extent_bytes(usable));
  }
  if (size >= large_size) {
    const Arena_guard guard(pool, slot);
    placed::free(block, placed::no_cache, size);
    return;
  }
  Arena_work &there = work_of(pool, slot);
  if (try_hold(&there)) [[likely]] {
    placed::free(block, placed::no_cache, size);
    let_go(&there);
    return;
  }
  auto *const left = static_cast<Left_block *>(block);
  left->size = size;
  left->next = there.left.load(std::memory_order_relaxed);
  while (!there.left.compare_exchange_weak(left->next, left)) {
  }
  if (try_hold(&there)) let_go(&there);
}

void note_pages(Pool pool, unsigned slot, size_t size) noexcept {
  Arena_work &arena = work_of(pool, slot);
  const size_t usable = placed::usable(size);
  arena.own_bytes.fetch_add(usable);
  const uint64_t bytes = placed::extent_bytes(usable);
  const uint64_t now = arena.paged_bytes.fetch_add(bytes) + bytes;
  uint64_t most = arena.most_paged_bytes.load(std::memory_order_relaxed);
  while (now > most &&
         !arena.most_paged_bytes.compare_exchange_weak(most, now)) {
  }
}

uint64_t surplus_of_pages(Pool pool, unsigned slot) noexcept {
  Arena_work &arena = work_of(pool, slot);
  const uint64_t own = arena.own_bytes.load();
  const uint64_t most = arena.most_paged_bytes.exchange(arena.paged_bytes);
  return most > own ? most - own : 0;
}

void forget_work_of_others() noexcept {
  for (auto &pool : work)
    for (Arena_work &arena : pool) arena.held.store(false);
}

}  // namespace memdiag::pools
