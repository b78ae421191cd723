#include "mysys/memdiag/pools/uncached.h"

#include <algorithm>

#include "mysys/memdiag/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/cpus.h"

namespace memdiag::pools {
namespace {

/** A pool has an arena for large blocks for so many CPUs. */
constexpr unsigned cpus_per_large_arena = 4;

/** The pauses of a thread that found all flags held. The first is for a holder
that runs, the longest for one that waits for its turn at the CPU. */
class Pauses {
 public:
  /** Pauses; false: it has done so for a second in all. */
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

struct Hold {
  unsigned slot;
  bool is_mine;
};

/** The first free of some slots; the first of all if pauses were in vain.
@param slot_at  the slot with a number below `count` */
template <typename Slot_at>
Hold hold_first_free(Pool pool, unsigned count, Slot_at slot_at) {
  Pauses pauses;
  do {
    for (unsigned i = 0; i < count; ++i)
      if (const unsigned slot = slot_at(i); try_hold(&work_of(pool, slot)))
          [[likely]]
        return {slot, true};
  } while (pauses.one_more());
  free_left_blocks(&work_of(pool, slot_at(0)));
  return {slot_at(0), false};
}

Hold hold_for_shard(Pool pool, unsigned own) {
  const Stand_ins others = stand_in_shards();
  const unsigned last = std::max(own, others.end - 1);
  return hold_first_free(
      pool, 1 + (last - own) / others.distance, [=](unsigned i) {
        return slot_of_shard(pool, own + i * others.distance);
      });
}

Hold hold_for_large_block(Pool pool) {
  const unsigned first = slot_for_large(pool);
  const unsigned arenas = spec_of(pool).arenas;
  return hold_first_free(
      pool, shares_one_arena() ? 1 : std::min(arenas, 1 + stand_ins),
      [=](unsigned i) { return (first + i) % arenas; });
}

}  // namespace

At_work::At_work(Pool pool, unsigned slot) noexcept
    : m_pool(pool),
      m_slot(slot),
      m_is_mine(
          hold_first_free(pool, 1, [slot](unsigned) { return slot; }).is_mine) {
}

At_work At_work::in_pool(Pool pool, unsigned own) noexcept {
  const Hold hold = hold_for_shard(pool, own);
  return {pool, hold.slot, hold.is_mine};
}

At_work At_work::for_large_block(Pool pool) noexcept {
  const Hold hold = hold_for_large_block(pool);
  return {pool, hold.slot, hold.is_mine};
}

At_work::~At_work() {
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
  if (size >= large_size) {
    const At_work at_work(pool, slot);
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

void forget_work_of_others() noexcept {
  for (auto &pool : work)
    for (Arena_work &arena : pool) arena.held.store(false);
}

}  // namespace memdiag::pools
