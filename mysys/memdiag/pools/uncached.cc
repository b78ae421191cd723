#include "mysys/memdiag/pools/uncached.h"

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/cpus.h"

namespace memdiag::pools {
namespace {

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

}  // namespace

At_work At_work::in_pool(Pool pool, unsigned own) noexcept {
  const unsigned first = slot_of_shard(pool, own);
  if (try_hold(&work_of(pool, first))) [[likely]]
    return {pool, first, true};
  const Stand_ins others = stand_in_shards();
  for (unsigned shard = own + others.distance; shard < others.end;
       shard += others.distance) {
    const unsigned slot = slot_of_shard(pool, shard);
    if (try_hold(&work_of(pool, slot))) return {pool, slot, true};
  }
  free_left_blocks(&work_of(pool, first));
  return {pool, first, false};
}

At_work::At_work(Pool pool, unsigned slot) noexcept
    : At_work(pool, slot, try_hold(&work_of(pool, slot))) {}

At_work::~At_work() {
  if (m_is_mine) let_go(&work_of(m_pool, m_slot));
}

void free_uncached(Pool pool, void *block, size_t size) noexcept {
  if (size < sizeof(Left_block) || size >= large_size) {
    placed::free(block, placed::no_cache, size);
    return;
  }
  const Result<unsigned> arena = mallctl::arena_of(block);
  if (!arena) [[unlikely]] {
    placed::free(block, placed::no_cache, size);
    return;
  }
  Arena_work &there = work_of(pool, slot_of_arena(arena.value()));
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
