#include "mysys/memdiag/pools/pools.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <span>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/pools/shards.h"
#include "mysys/memdiag/pools/uncached.h"

namespace memdiag::pools {

namespace {

/** The number of blocks that the general allocator serves before a pool without
an arena tries to make one again. */
constexpr uint64_t fallbacks_before_retry = 1024;

/** The number of small blocks that are served without a shard's cache before
the cache is made: a CPU that hardly uses the pool has none. */
constexpr uint16_t blocks_before_cache = 64;

/** Live bytes and blocks of an account in one shard of a pool. A block may be
freed in another shard than it was allocated in, so only the sum over the shards
means something. Behind the rows of the shards are some for their bypasses;
several bypasses share a row. Most of the table is never touched. */
struct Live_part {
  std::atomic<int64_t> bytes;
  std::atomic<int64_t> blocks;
};
constexpr unsigned bypass_rows = 8;
constinit Live_part live_parts[pool_count][max_shards + bypass_rows]
                              [max_accounts];

constinit std::atomic<Block_listener> block_listener{nullptr};

void *allocate_fallback(Pool_state &state, size_t size, bool zero) {
  // Counted before the block exists: a thread that frees it must see the count.
  state.fallback_blocks.fetch_add(1);
  void *block = placed::general_allocate(size, zero);
  if (block == nullptr) {
    state.fallback_blocks.fetch_sub(1);
    return nullptr;
  }
  state.fallback_filter.add(block);
  state.fallbacks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

/** true: the general allocator served this block of the pool. */
bool is_fallback(Pool pool, const void *block) {
  if (!state_of(pool).fallback_filter.may_have(block)) return false;
  const Result<unsigned> arena = mallctl::arena_of(block);
  return !arena || owner_of_arena(arena.value()) != pool;
}

/** Shards that any thread may have used. */
std::span<Shard> shards_of(Pool pool) {
  return {state_of(pool).shards, used_shards()};
}

uint64_t sum_of_allocated(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : shards_of(pool))
    sum += shard.allocated_bytes.load(std::memory_order_acquire) +
           shard.bypass_allocated_bytes.load(std::memory_order_acquire);
  return sum;
}

uint64_t sum_of_freed(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : shards_of(pool))
    sum += shard.freed_bytes.load(std::memory_order_acquire) +
           shard.bypass_freed_bytes.load(std::memory_order_acquire);
  return sum;
}

/** Bytes that were live at some moment of the call, or a little less; never
more, or a peak would be on record that never was. The counters of the shards
cannot be read at one moment: bytes that are freed while they are read are
missing from the difference. If those were many, because the thread was
interrupted on the way, the counters are read again. */
uint64_t live_bytes(Pool pool) {
  uint64_t live = 0;
  uint64_t freed_before = sum_of_freed(pool);
  for (int attempt = 0; attempt < 4; ++attempt) {
    const uint64_t allocated = sum_of_allocated(pool);
    const uint64_t freed = sum_of_freed(pool);
    if (allocated > freed && allocated - freed > live) live = allocated - freed;
    if (freed - freed_before <= live / 64) break;
    freed_before = freed;
  }
  return live;
}

void note_peak(Pool_state &state, uint64_t live) {
  uint64_t peak = state.peak_bytes.load(std::memory_order_relaxed);
  while (live > peak) {
    if (state.peak_bytes.compare_exchange_weak(peak, live)) {
      state.peak_time_us.store(clock_us(CLOCK_REALTIME));
      return;
    }
  }
}

/** A new cache for a shard, once that is worth its memory. The caller has the
shard's lock. */
[[gnu::noinline]] placed::Cache make_cache(Shard *shard) {
  if (shard->cache.load(std::memory_order_relaxed) == unavailable ||
      ++shard->uncached < blocks_before_cache)
    return placed::no_cache;
  shard->uncached = 0;
  const auto created = mallctl::read<Ctl::tcache_create>();
  shard->cache.store(
      created ? static_cast<placed::Cache>(created.value()) : unavailable,
      std::memory_order_relaxed);
  return created ? static_cast<placed::Cache>(created.value())
                 : placed::no_cache;
}

/** The cache to use for a small block, in the shard's lock. */
inline placed::Cache cache_for(Pool_state *state, const Shard_lock &lock) {
  Shard &shard = state->shards[lock.shard()];
  const placed::Cache cache = shard.cache.load(std::memory_order_relaxed);
  return cache >= 0 ? cache : make_cache(&shard);
}

/** Give the blocks that wait in a shard's cache back to its arena, and the
cache too. The next thread that needs the cache makes it, and may fail to.
(jemalloc makes a cache again that was only flushed, and ends the process if it
has no memory for it: tcaches_get() of 5.3.1.) A cache that could not be made is
tried again too. The caller has the shard's lock. */
void drop_cache(Shard *shard) {
  if (const placed::Cache cache = shard->cache.load(); cache >= 0)
    (void)mallctl::write<Ctl::tcache_destroy>(static_cast<unsigned>(cache));
  shard->cache.store(placed::no_cache);
  shard->uncached = 0;
}

/** Drop the cache of one shard: the next one that has any, round and round. A
cache in use keeps what a burst left in it, 4.6 MB at most, and nothing else
would ever take that out. */
void drop_next_cache(Pool pool) {
  std::atomic<unsigned> &next = state_of(pool).next_trimmed;
  const std::span<Shard> shards = shards_of(pool);
  for (size_t tried = 0; tried < shards.size(); ++tried) {
    const auto number = static_cast<unsigned>(
        next.fetch_add(1, std::memory_order_relaxed) % shards.size());
    Shard &shard = shards[number];
    if (shard.cache.load(std::memory_order_relaxed) < 0) continue;
    const Shard_try_lock lock(&shard);
    if (!lock.is_mine()) continue;
    drop_cache(&shard);
    return;
  }
}

/** The arena of a slot, made if need be; negative if there is none to be had.
 */
[[gnu::noinline]] int find_arena(Pool pool, unsigned slot) {
  const int arena = arena_in_slot(pool, slot);
  if (arena == no_arena ||
      (arena == unavailable &&
       state_of(pool).fallbacks.load(std::memory_order_relaxed) %
               fallbacks_before_retry ==
           0))
    return make_arena(pool, slot);
  return arena;
}

/** The arena of a shard, made if need be; negative if there is none to be had.
 */
inline int arena_of(Pool pool, Pool_state *state, unsigned shard) {
  std::atomic<int> &arena = state->shards[shard].arena;
  const int found = arena.load(std::memory_order_acquire);
  if (found >= 0) [[likely]]
    return found;
  const int made = find_arena(pool, slot_of_shard(pool, shard));
  arena.store(made, std::memory_order_release);
  return made;
}

/** Calls visit(shard) for each shard of each pool. */
template <typename Visitor>
void for_each_shard(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool)
    for (Shard &shard : shards_of(static_cast<Pool>(pool))) visit(&shard);
}

/** Calls visit(the accounts' parts) for each pool that keeps them, and row.
Most shards of most pools were never used; their rows are left out. */
template <typename Visitor>
void for_each_live_part(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool) {
    if (uses_malloc(static_cast<Pool>(pool))) continue;
    bool bypassed[bypass_rows]{};
    unsigned row = 0;
    for (const Shard &shard : shards_of(static_cast<Pool>(pool))) {
      if (shard.allocated_bytes.load(std::memory_order_relaxed) != 0 ||
          shard.freed_bytes.load(std::memory_order_relaxed) != 0)
        visit(live_parts[pool][row]);
      if (shard.bypasses.load(std::memory_order_relaxed) != 0)
        bypassed[row % bypass_rows] = true;
      ++row;
    }
    for (unsigned i = 0; i < bypass_rows; ++i)
      if (bypassed[i]) visit(live_parts[pool][max_shards + i]);
  }
}

/** Parts are read one after the other while blocks come and go. */
Live at_least_none(int64_t bytes, int64_t blocks) {
  return {static_cast<uint64_t>(std::max<int64_t>(bytes, 0)),
          static_cast<uint64_t>(std::max<int64_t>(blocks, 0))};
}

/** Add to a counter that no other thread writes. */
template <typename T>
void add(std::atomic<T> *counter, T amount) {
  counter->store(counter->load(std::memory_order_relaxed) + amount,
                 std::memory_order_release);
}

/** count() for a thread that does not have the shard's lock. */
template <int sign>
[[gnu::noinline]] void count_in_bypass(Pool pool, unsigned number,
                                       Account account, uint64_t bytes) {
  Shard &shard = state_of(pool).shards[number];
  shard.bypasses.fetch_add(1, std::memory_order_relaxed);
  (sign > 0 ? shard.bypass_allocated_bytes : shard.bypass_freed_bytes)
      .fetch_add(bytes, std::memory_order_release);
  if (account == 0) return;
  Live_part &part = live_parts[static_cast<size_t>(pool)]
                              [max_shards + number % bypass_rows][account];
  part.bytes.fetch_add(sign * static_cast<int64_t>(bytes),
                       std::memory_order_release);
  part.blocks.fetch_add(sign, std::memory_order_release);
}

/** A block that no cache holds, or a small one for a thread that found all
turns taken; nullptr: there is none to be had. */
void *allocate_uncached(Pool pool, unsigned own, size_t size, bool zero) {
  const auto from = [size, zero](int arena) {
    return arena < 0 ? nullptr
                     : placed::allocate(static_cast<unsigned>(arena),
                                        placed::no_cache, size, zero);
  };
  const Arena_guard guard = size >= large_size
                                ? Arena_guard::for_large_block(pool)
                                : Arena_guard::in_pool(pool, own);
  void *const block = from(find_arena(pool, guard.slot()));
  if (block != nullptr && size > largest_cached)
    note_pages(pool, guard.slot(), size);
  return block;
}

/** Count a block that came (sign 1) or goes (-1). */
template <int sign>
[[gnu::always_inline]] inline void count(Pool pool, const Shard_lock &lock,
                                         Account account, uint64_t bytes) {
  if (lock.is_mine()) [[likely]] {
    Shard &shard = state_of(pool).shards[lock.shard()];
    add(sign > 0 ? &shard.allocated_bytes : &shard.freed_bytes, bytes);
    if (account == 0) return;
    Live_part &part =
        live_parts[static_cast<size_t>(pool)][lock.shard()][account];
    add(&part.bytes, sign * static_cast<int64_t>(bytes));
    add(&part.blocks, int64_t{sign});
  } else {
    count_in_bypass<sign>(pool, lock.shard(), account, bytes);
    if (account == 0) return;
  }
  if (const auto note = block_listener.load(std::memory_order_relaxed);
      note != nullptr) [[unlikely]]
    note(pool, account, sign * static_cast<int64_t>(bytes));
}

/** If the attention is set meanwhile, the thread does not wait yet: that is the
first event behind it (sensor.h). */
void *allocate_of_malloc(size_t size, bool zero) {
  // Bitwise: one branch for both.
  const bool may_wait =
      is_set(attention(), Attention::ceiling) | (size >= watched_size);
  if (!may_wait) [[likely]]
    return placed::general_allocate(size, zero);
  in_malloc_of_pool = true;
  void *const block = placed::general_allocate(size, zero);
  in_malloc_of_pool = false;
  return block;
}

/** Asks the watcher. */
bool may_have(Pool pool, size_t size, Account account) {
  const Watcher *const watch = watcher();
  if (watch == nullptr || watch->ask(pool, size, account)) return true;
  errno = ENOMEM;
  return false;
}

void tell_freed(const void *block) {
  if (const Watcher *const watch = watcher(); watch != nullptr)
    watch->freed(block);
}

}  // namespace

void *allocate(Pool pool, size_t size, bool zero, Account account) noexcept {
  if (uses_malloc(pool)) return allocate_of_malloc(size, zero);
  const Pool_spec &spec = spec_of(pool);
  Pool_state &state = state_of(pool);
  if (const uint32_t attention = pools::attention(); attention != 0)
      [[unlikely]] {
    if (is_set(attention, Attention::ceiling) && size < watched_size &&
        !may_have(pool, size, account))
      return nullptr;
    if (is_set(attention, Attention::profiler))
      request_of_thread = {pool, account};
    const Failure failure = is_set(attention, Attention::failures)
                                ? next_failure(pool, account)
                                : Failure::none;
    if (failure == Failure::hard) {
      errno = ENOMEM;
      return nullptr;
    }
    if (failure == Failure::soft) return allocate_fallback(state, size, zero);
  }
  const unsigned own = current_shard();
  if (size <= spec.cached_max) {
    if (const Shard_lock lock(&state, own); lock.is_mine()) [[likely]] {
      const int arena = arena_of(pool, &state, lock.shard());
      void *const block =
          arena < 0 ? nullptr
                    : placed::allocate(static_cast<unsigned>(arena),
                                       cache_for(&state, lock), size, zero);
      if (block == nullptr) [[unlikely]]
        return allocate_fallback(state, size, zero);
      count<1>(pool, lock, account, placed::usable(size));
      return block;
    }
  }
  if (size >= watched_size && !may_have(pool, size, account)) [[unlikely]]
    return nullptr;
  void *block = allocate_uncached(pool, own, size, zero);
  if (block != nullptr)
    count<1>(pool, Shard_lock(&state, own), account, placed::usable(size));
  else
    block = allocate_fallback(state, size, zero);
  if (size >= watched_size && block != nullptr) [[unlikely]] {
    if (const Watcher *const watch = watcher(); watch != nullptr)
      watch->allocated(block, size);
  }
  return block;
}

void free(Pool pool, void *block, size_t size, Account account) noexcept {
  if (block == nullptr) return;
  if (uses_malloc(pool)) {
    placed::general_free(block);
    return;
  }
  const Pool_spec &spec = spec_of(pool);
  Pool_state &state = state_of(pool);
  if (state.fallback_blocks.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (is_fallback(pool, block)) {
      if (size == 0 || size >= watched_size) tell_freed(block);
      state.fallback_filter.remove(block);
      placed::general_free(block);
      state.fallback_blocks.fetch_sub(1);
      return;
    }
  }
  if (size == 0) size = placed::size_of(block);
  {
    const Shard_lock lock(&state, current_shard());
    count<-1>(pool, lock, account, placed::usable(size));
    if (size <= spec.cached_max && lock.is_mine()) [[likely]] {
      placed::free(block, cache_for(&state, lock), size);
      return;
    }
  }
  if (size >= watched_size) [[unlikely]]
    tell_freed(block);
  free_uncached(pool, block, size);
}

void free_general(Pool pool, void *block) noexcept {
  Fallback_filter &filter = state_of(pool).fallback_filter;
  // It may have been allocated before its route was changed, and never served
  // for the pool.
  const bool may_be_fallback = filter.may_have(block);
  if (may_be_fallback) {
    tell_freed(block);
    filter.remove(block);
  }
  placed::general_free(block);
  if (!may_be_fallback) return;
  std::atomic<uint64_t> &left = state_of(pool).fallback_blocks;
  uint64_t now = left.load(std::memory_order_relaxed);
  while (now != 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
}

std::vector<Live> live_of_first(size_t accounts) {
  struct Sum {
    int64_t bytes = 0;
    int64_t blocks = 0;
  };
  std::vector<Sum> sums(std::min(accounts, max_accounts));
  // In the order in which they lie: that is most of the time it takes.
  for_each_live_part([&sums](const Live_part *parts) {
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i].bytes += parts[i].bytes.load(std::memory_order_relaxed);
      sums[i].blocks += parts[i].blocks.load(std::memory_order_relaxed);
    }
  });
  std::vector<Live> all(accounts);
  for (size_t i = 0; i < sums.size(); ++i)
    all[i] = at_least_none(sums[i].bytes, sums[i].blocks);
  return all;
}

Counters counters(Pool pool) {
  Pool_state &state = state_of(pool);
  const uint64_t live = live_bytes(pool);
  note_peak(state, live);
  uint64_t bypasses = 0;
  for (const Shard &shard : shards_of(pool))
    bypasses += shard.bypasses.load(std::memory_order_relaxed);
  return {live, state.peak_bytes.load(), state.peak_time_us.load(),
          state.fallbacks.load(), bypasses};
}

uint64_t fallback_blocks(Pool pool) {
  return state_of(pool).fallback_blocks.load(std::memory_order_relaxed);
}

uint64_t allocated_bytes(Pool pool) { return sum_of_allocated(pool); }

uint64_t recent_surplus(Pool pool, unsigned slot) {
  return surplus_of_pages(pool, slot);
}

uint64_t activity(Pool pool) {
  return sum_of_allocated(pool) + sum_of_freed(pool);
}

void set_block_listener(Block_listener listener) noexcept {
  block_listener.store(listener, std::memory_order_relaxed);
}

void drop_caches(Pool pool) noexcept {
  for (Shard &shard : shards_of(pool)) {
    if (shard.cache.load(std::memory_order_relaxed) == placed::no_cache)
      continue;
    const Shard_try_lock lock(&shard);
    if (lock.is_mine()) drop_cache(&shard);
  }
}

void trim_caches(Pool pool, uint64_t least_bytes) noexcept {
  for (Shard &shard : shards_of(pool)) {
    if (shard.cache.load(std::memory_order_relaxed) == placed::no_cache)
      continue;
    const Shard_try_lock lock(&shard);
    if (!lock.is_mine()) continue;
    const uint64_t moved =
        shard.allocated_bytes.load() + shard.freed_bytes.load();
    // A shortage may have passed, so a busy shard tries again, too.
    if (moved - shard.moved_at_trim < least_bytes ||
        shard.cache.load(std::memory_order_relaxed) == unavailable)
      drop_cache(&shard);
    shard.moved_at_trim = moved;
  }
  drop_next_cache(pool);
}

// jemalloc forgets explicit caches in the child: its lists there hold those of
// the calling thread alone. To empty one later would tie these lists to caches
// of threads that are gone. So the parent drops them all first. A shard whose
// holder was interrupted and keeps it for long is not waited for: the child
// gives its cache up.
void hold_caches() noexcept {
  for_each_shard([](Shard *shard) {
    bool taken = shard->taken.exchange(true, std::memory_order_acquire);
    for (int tries = 0; taken && tries < 1000; ++tries) {
      sched_yield();
      taken = shard->taken.exchange(true, std::memory_order_acquire);
    }
    shard->held = !taken;
    if (!taken) drop_cache(shard);
  });
}

// The forking thread is the child's only one. In the parent, others may have
// gone on with a shard that was not held, up to the moment of fork().
void let_go_of_caches(bool in_child) noexcept {
  if (in_child) forget_work_of_others();
  for_each_shard([in_child](Shard *shard) {
    if (!shard->held && !in_child) return;
    if (!shard->held) shard->cache.store(unavailable);
    shard->taken.store(false, std::memory_order_release);
  });
}

}  // namespace memdiag::pools
