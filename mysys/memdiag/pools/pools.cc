#include "mysys/memdiag/pools/pools.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "mysys/memdiag/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/pools/shards.h"

namespace memdiag::pools {

namespace {

/** How many blocks go to the general allocator before a pool without an arena
tries to make one again. */
constexpr uint64_t fallbacks_before_retry = 1024;

/** Live bytes and blocks of an account in one shard of a pool. A block may be
freed in another shard than it was allocated in, so only the sum over the shards
means something. Most of the table is never touched. */
struct Live_part {
  std::atomic<int64_t> bytes;
  std::atomic<int64_t> blocks;
};
constinit Live_part live_parts[pool_count][max_shards + 1][max_accounts];

constinit std::atomic<Block_listener> block_listener{nullptr};

void *allocate_fallback(Pool_state &state, size_t size, bool zero) {
  // Counted before the block exists: a thread that frees it must see the count.
  state.fallback_blocks.fetch_add(1);
  void *block = placed::general_allocate(size, zero);
  if (block == nullptr) {
    state.fallback_blocks.fetch_sub(1);
    return nullptr;
  }
  state.fallbacks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

/** Whether a block of a pool really came from the general allocator. */
bool is_fallback(Pool pool, const void *block) {
  const Result<unsigned> arena = mallctl::arena_of(block);
  return !arena || owner_of_arena(arena.value()) != pool;
}

/** Bytes that were live at some moment of the call, or a little less; never
more, or a peak would be on record that never was. The counters of the shards
cannot be read at one moment: what is freed while they are read is missing from
the difference. So if that was much (the thread was interrupted on the way), it
is read again. */
uint64_t live_bytes(const Pool_state &state) {
  const auto freed_bytes = [&state] {
    uint64_t sum = 0;
    for (const Shard &shard : state.shards)
      sum += shard.freed_bytes.load(std::memory_order_acquire);
    return sum;
  };
  uint64_t live = 0;
  uint64_t freed_before = freed_bytes();
  for (int attempt = 0; attempt < 4; ++attempt) {
    uint64_t allocated = 0;
    for (const Shard &shard : state.shards)
      allocated += shard.allocated_bytes.load(std::memory_order_acquire);
    const uint64_t freed = freed_bytes();
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

/** Give the blocks that wait in a shard's cache back to its arena, and the
cache too: the next thread that wants it makes it, and may fail to. (A cache
that was only flushed, jemalloc makes again by itself, and where it has no
memory for it ends the process: tcaches_get() of 5.3.1.) A cache that could not
be made is tried again too. The caller has the shard's turn. */
void drop_cache(Shard *shard) {
  if (shard->cache >= 0)
    (void)mallctl::write<Ctl::tcache_destroy>(
        static_cast<unsigned>(shard->cache));
  shard->cache = placed::no_cache;
}

/** Calls visit(shard) for each shard of each pool. */
template <typename Visitor>
void for_each_shard(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool)
    for (unsigned cpu = 0; cpu < pool_specs[pool].shards; ++cpu)
      visit(&states[pool].shards[cpu]);
}

/** Calls visit(the accounts' parts) for each pool that keeps them, and shard.
 */
template <typename Visitor>
void for_each_live_part(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool) {
    if (uses_malloc(static_cast<Pool>(pool))) continue;
    const unsigned shards = pool_specs[pool].shards;
    for (unsigned i = 0; i <= shards; ++i)
      visit(live_parts[pool][i == shards ? bypass : i]);
  }
}

/** Parts are read one after the other while blocks come and go. */
Live at_least_none(int64_t bytes, int64_t blocks) {
  return {static_cast<uint64_t>(std::max<int64_t>(bytes, 0)),
          static_cast<uint64_t>(std::max<int64_t>(blocks, 0))};
}

/** Add to a counter that nobody else writes. */
template <typename T>
void add(std::atomic<T> *counter, T amount) {
  counter->store(counter->load(std::memory_order_relaxed) + amount,
                 std::memory_order_release);
}

/** Note a block that came (sign 1) or goes (-1). */
template <int sign>
[[gnu::always_inline]] inline void count(Pool pool, const Turn &turn,
                                         Account account,
                                         uint64_t bytes) {
  Shard &shard = state_of(pool).shards[turn.index()];
  auto &sum = sign > 0 ? shard.allocated_bytes : shard.freed_bytes;
  Live_part &part =
      live_parts[static_cast<size_t>(pool)][turn.index()][account];
  const int64_t change = sign * static_cast<int64_t>(bytes);
  if (turn.is_mine()) [[likely]] {
    add(&sum, bytes);
    if (account == 0) return;
    add(&part.bytes, change);
    add(&part.blocks, int64_t{sign});
  } else {
    sum.fetch_add(bytes, std::memory_order_release);
    if (account == 0) return;
    part.bytes.fetch_add(change, std::memory_order_release);
    part.blocks.fetch_add(sign, std::memory_order_release);
  }
  if (const auto note = block_listener.load(std::memory_order_relaxed);
      note != nullptr) [[unlikely]]
    note(pool, account, change);
}

}  // namespace

void *allocate(Pool pool, size_t size, bool zero, Account account) noexcept {
  if (uses_malloc(pool)) return placed::general_allocate(size, zero);
  const Pool_spec &spec = spec_of(pool);
  Pool_state &state = state_of(pool);
  const unsigned cpu = shard_for(spec, size);
  int arena = state.shards[cpu].arena.load(std::memory_order_acquire);
  if (arena < 0) [[unlikely]] {
    if (arena == no_arena || state.fallbacks.load(std::memory_order_relaxed) %
                                     fallbacks_before_retry ==
                                 0)
      arena = make_arena(pool, cpu);
  }
  if (arena < 0 || failures_are_left())
      [[unlikely]] {
    const Failure failure = next_failure(pool, account);
    if (failure == Failure::hard) {
      errno = ENOMEM;
      return nullptr;
    }
    if (arena < 0 || failure == Failure::soft)
      return allocate_fallback(state, size, zero);
  }
  const auto from = static_cast<unsigned>(arena);
  void *block;
  if (size <= spec.cached_max) {
    const Turn turn(state.shards, cpu);
    block = placed::allocate(from, turn.cache(), size, zero);
    if (block != nullptr) [[likely]] {
      count<1>(pool, turn, account, placed::usable(size));
      return block;
    }
  } else {
    // Takes long enough that others would find the shard taken.
    block = placed::allocate(from, placed::no_cache, size, zero);
    if (block != nullptr) [[likely]] {
      count<1>(pool, Turn(state.shards, cpu), account, placed::usable(size));
      return block;
    }
  }
  return allocate_fallback(state, size, zero);
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
      placed::general_free(block);
      state.fallback_blocks.fetch_sub(1);
      return;
    }
  }
  if (size == 0) size = placed::size_of(block);
  const bool cached = size <= spec.cached_max;
  {
    const Turn turn(state.shards, current_shard(spec));
    count<-1>(pool, turn, account, placed::usable(size));
    if (cached) placed::free(block, turn.cache(), size);
  }
  if (!cached) placed::free(block, placed::no_cache, size);
}

void free_general(Pool pool, void *block) noexcept {
  placed::general_free(block);
  // Only where there are any: it may have been allocated before its route was
  // changed.
  std::atomic<uint64_t> &left = state_of(pool).fallback_blocks;
  uint64_t now = left.load(std::memory_order_relaxed);
  while (now != 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
}

Live live(Account account) {
  int64_t bytes = 0;
  int64_t blocks = 0;
  for_each_live_part([&](const Live_part *parts) {
    bytes += parts[account].bytes.load(std::memory_order_relaxed);
    blocks += parts[account].blocks.load(std::memory_order_relaxed);
  });
  return at_least_none(bytes, blocks);
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
  const uint64_t live = live_bytes(state);
  note_peak(state, live);
  return {live, state.peak_bytes.load(), state.peak_time_us.load(),
          state.fallbacks.load()};
}

uint64_t fallback_blocks(Pool pool) {
  return state_of(pool).fallback_blocks.load(std::memory_order_relaxed);
}

uint64_t allocated_bytes(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : state_of(pool).shards)
    sum += shard.allocated_bytes.load(std::memory_order_relaxed);
  return sum;
}

uint64_t activity(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : state_of(pool).shards)
    sum += shard.allocated_bytes.load(std::memory_order_relaxed) +
           shard.freed_bytes.load(std::memory_order_relaxed);
  return sum;
}

void set_block_listener(Block_listener listener) noexcept {
  block_listener.store(listener, std::memory_order_relaxed);
}

void drop_caches(Pool pool) noexcept {
  Shard *const shards = state_of(pool).shards;
  for (unsigned cpu = 0; cpu < spec_of(pool).shards; ++cpu) {
    const Turn turn(shards, cpu);
    if (turn.index() == cpu) drop_cache(&shards[cpu]);
  }
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
  for_each_shard([in_child](Shard *shard) {
    if (!shard->held && !in_child) return;
    if (!shard->held) shard->cache = unavailable;
    shard->taken.store(false, std::memory_order_release);
  });
}

}  // namespace memdiag::pools
