#include "mysys/memdiag/pools/pools.h"

#include <pthread.h>
#include <sched.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>

#include "mysys/memdiag/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge_log.h"

namespace memdiag {
namespace {

using pools::detail::max_shards;

constexpr int no_arena = -1;
/** This shard's arena or cache could not be made. Asking again on each
allocation would be slow; a shortage may pass, so some ask again for an arena.
*/
constexpr int unavailable = -2;
constexpr uint64_t fallbacks_before_retry = 1024;

/** One CPU's part of a pool, on a cache line of its own because every
allocation on that CPU writes it. */
struct alignas(64) Shard {
  std::atomic<int> arena{no_arena};
  /** Held while a thread uses the cache and counts. Nobody waits for it on the
  way of an allocation: whoever finds it taken, because its holder was
  interrupted, goes round the cache and counts in the bypass. */
  std::atomic<bool> taken{false};
  /** Taken over a fork(). Guarded by purge_mutex. */
  bool held{false};
  /** Only for the one who has taken it. no_cache: not made yet, or again. */
  placed::Cache cache{placed::no_cache};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> freed_bytes{0};
};

/** Behind the shards: where those count who did not get their turn. */
constexpr unsigned bypass = max_shards;

/** A thread's turn at a shard, for as long as this lives, if it was free. */
class Turn {
 public:
  Turn(Shard *shards, unsigned cpu)
      : m_shards(shards),
        m_index(shards[cpu].taken.exchange(true, std::memory_order_acquire)
                    ? bypass
                    : cpu) {}
  ~Turn() {
    if (m_index != bypass)
      m_shards[m_index].taken.store(false, std::memory_order_release);
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

  /** Where to count. */
  unsigned index() const { return m_index; }

  /** The shard's cache if there is one. */
  placed::Cache existing_cache() const {
    if (m_index == bypass) return placed::no_cache;
    return std::max(m_shards[m_index].cache, placed::no_cache);
  }
  /** The cache, made if there is none. */
  placed::Cache cache() const {
    if (m_index == bypass) return placed::no_cache;
    placed::Cache &cache = m_shards[m_index].cache;
    if (cache == placed::no_cache) [[unlikely]] {
      const auto created = mallctl::read<Ctl::tcache_create>();
      cache =
          created ? static_cast<placed::Cache>(created.value()) : unavailable;
    }
    return existing_cache();
  }

  /** Whether the counters of index() are this thread's alone for now. */
  bool is_mine() const { return m_index != bypass; }

 private:
  Shard *const m_shards;
  const unsigned m_index;
};

/** What lives of an account, by pool and shard: a block may be freed in another
shard than it was allocated in, so that only the sum means something. Most of it
is never touched. */
struct Live_part {
  std::atomic<int64_t> bytes;
  std::atomic<int64_t> blocks;
};
constinit Live_part live_parts[pool_count][max_shards + 1][pools::max_accounts];

/** All zero-initialised and without constructors or destructors that do
anything: usable before main() and after exit handlers. */
struct Pool_state {
  Shard shards[max_shards + 1];
  /** Live blocks that came from the general allocator instead. While there are
  any, free() has to look where each block came from. */
  alignas(64) std::atomic<uint64_t> fallback_blocks{0};
  std::atomic<uint64_t> fallbacks{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::atomic<uint64_t> peak_time_us{0};
  std::atomic<uint64_t> purges{0};
  std::atomic<uint64_t> purged_bytes{0};
  std::atomic<uint64_t> purge_us{0};
  std::atomic<uint64_t> refaulted_bytes{0};
  std::atomic<uint32_t> backoff{1};
};
constinit Pool_state states[pool_count];

/** Pool of each arena; 0 is Pool::general. jemalloc's own limit of arenas is
4095 (MALLOCX_ARENA_LIMIT). */
constexpr unsigned max_arenas = 4096;
constinit std::atomic<uint8_t> arena_owners[max_arenas];

/** What fail_allocations_for_test() has asked for. While nothing is left, the
rest is not looked at. */
struct Injection {
  std::atomic<uint32_t> left{0};
  std::atomic<uint32_t> to_skip{0};
  /** Pool::count: any. */
  std::atomic<Pool> pool{Pool::count};
  std::atomic<pools::Account> account{0};
  /** 0: any. */
  std::atomic<pid_t> thread{0};
  std::atomic<bool> hard{false};
};
constinit Injection injection;

/** Held while an arena is made, and over a fork(): jemalloc counts its arenas
before it takes the lock that keeps others from being made (jemalloc_prefork()
of 5.3.1), and then unlocks in the parent those that came in between and were
never locked. */
constinit std::mutex making_mutex;

/** Serialises purges, so that a receipt's before and after are its own. */
constinit std::mutex purge_mutex;

Pool_state &state_of(Pool pool) { return states[static_cast<size_t>(pool)]; }

/** The calling thread's CPU, folded into the shards that the pool may have.
Where the kernel does not tell, everything shares shard 0. */
unsigned current_shard(const Pool_spec &spec) {
  const int cpu = sched_getcpu();
  if (cpu < 0) return 0;
  const auto shard = static_cast<unsigned>(cpu);
  // Dividing takes longer than all else here, and there are seldom more CPUs.
  return shard < spec.shards ? shard : shard % spec.shards;
}

/** Where to take a block from. A large one does not come from the CPU's own
shard: a thread that goes on on another CPU would leave its freed pages behind
and take as many again, and where blocks of this size come and go, the pages
themselves cost more than threads that wait for each other. (jemalloc has one
arena for those of more than 8 MB, for the same reason.) */
unsigned shard_for(const Pool_spec &spec, size_t size) {
  constexpr size_t large = 512 << 10;
  return size >= large ? 0 : current_shard(spec);
}

/** Set a decay time of an arena to its pool's, or to the option's. (A new arena
has what was set last for malloc()'s.) */
template <Policy policy, Ctl ctl, Ctl option>
void set_decay(Pool pool, unsigned arena) {
  int64_t ms;
  do {
    ms = policies::get(policy, pool);
    const ssize_t wanted = ms >= -1 ? ms : mallctl::read<option>().value_or(-2);
    if (wanted >= -1) (void)mallctl::write<ctl>(wanted, arena);
  } while (ms != policies::get(policy, pool));
}

/** Create a shard's arena, if nobody has meanwhile. It is never destroyed:
another thread may be purging it, and jemalloc does not hold the two apart. */
int create_arena(Pool pool, unsigned shard) {
  std::atomic<int> &slot = state_of(pool).shards[shard].arena;
  const std::lock_guard<std::mutex> guard(making_mutex);
  if (const int arena = slot.load(); arena >= 0) return arena;
  const Result<unsigned> created = mallctl::read<Ctl::arenas_create>();
  if (!created || created.value() >= max_arenas) {
    slot.store(unavailable);
    return unavailable;
  }
  const unsigned arena = created.value();
  char name[mallctl::arena_name_size];
  snprintf(name, sizeof name, "%s.%u", spec_of(pool).name, shard);
  // A nameless arena or one with default decay still serves; the tables show
  // which settings are in force.
  (void)mallctl::set_arena_name(arena, name);
  arena_owners[arena].store(static_cast<uint8_t>(pool));
  // Somebody may set a policy meanwhile, for the arenas that he finds. So the
  // arena can be found first, and what is set last is what was there last.
  set_decay<Policy::dirty_decay_ms, Ctl::arena_dirty_decay_ms,
            Ctl::opt_dirty_decay_ms>(pool, arena);
  set_decay<Policy::muzzy_decay_ms, Ctl::arena_muzzy_decay_ms,
            Ctl::opt_muzzy_decay_ms>(pool, arena);
  slot.store(static_cast<int>(arena), std::memory_order_release);
  return static_cast<int>(arena);
}

enum class Failure { none, soft, hard };

/** Count one down. @return false: none was left */
bool take_one(std::atomic<uint32_t> *left) {
  uint32_t now = left->load(std::memory_order_relaxed);
  while (now > 0 && !left->compare_exchange_weak(now, now - 1)) {
  }
  return now > 0;
}

Failure injected_failure(Pool pool, pools::Account account) {
  if (injection.left.load(std::memory_order_acquire) == 0) return Failure::none;
  const Pool of_pool = injection.pool.load(std::memory_order_relaxed);
  const pools::Account of_account =
      injection.account.load(std::memory_order_relaxed);
  const pid_t of_thread = injection.thread.load(std::memory_order_relaxed);
  if ((of_pool != Pool::count && of_pool != pool) ||
      (of_account != 0 && of_account != account) ||
      (of_thread != 0 && of_thread != gettid()))
    return Failure::none;
  if (take_one(&injection.to_skip) || !take_one(&injection.left))
    return Failure::none;
  return injection.hard.load(std::memory_order_relaxed) ? Failure::hard
                                                        : Failure::soft;
}

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
  return !arena || pools::owner_of_arena(arena.value()) != pool;
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

/** Whether an arena is there and the pool's. */
auto arenas_of(Pool pool) {
  return [pool](unsigned arena) {
    return pools::owner_of_arena(arena) == pool &&
           mallctl::read<Ctl::arena_initialized>(arena).value_or(false);
  };
}

/** Sum of a statistic over the arenas that `wanted` accepts, of those there
are.
@param[in,out] error  the first failure, which leaves its arena out */
template <Ctl ctl, typename Predicate>
uint64_t sum_over_arenas(unsigned narenas, Predicate wanted, int *error) {
  uint64_t sum = 0;
  for (unsigned arena = 0; arena < narenas; ++arena) {
    if (!wanted(arena)) continue;
    const auto value = mallctl::read<ctl>(arena);
    if (!value && *error == 0) *error = value.error();
    sum += value.value_or(0);
  }
  return sum;
}

/** Purge the arenas that `wanted` accepts. Caller holds purge_mutex. */
template <typename Predicate>
pools::Receipt purge_arenas(Predicate wanted) {
  pools::Receipt receipt{0, 0, 0, 0, 0};
  const auto note_error = [&receipt](int error) {
    if (receipt.error == 0) receipt.error = error;
  };
  const Result<unsigned> narenas = mallctl::read<Ctl::arenas_narenas>();
  if (!narenas) {
    note_error(narenas.error());
    return receipt;
  }
  const uint64_t start_us = clock_us(CLOCK_MONOTONIC);
  const auto refresh = [&note_error] {
    if (const int error = mallctl::refresh(); error != 0) note_error(error);
  };
  refresh();
  const auto resident_bytes = [&] {
    return sum_over_arenas<Ctl::stats_arena_resident>(narenas.value(), wanted,
                                                      &receipt.error);
  };
  const auto dirty_pages = [&] {
    return sum_over_arenas<Ctl::stats_arena_pdirty>(narenas.value(), wanted,
                                                    &receipt.error);
  };
  receipt.resident_before_bytes = resident_bytes();
  uint64_t dirty = dirty_pages();
  // An arena that one of jemalloc's threads purges at the moment is passed over
  // without a word (pac_decay_to_limit), and that one takes only what is due.
  // It may be at it for longer the more there is, so the waits double: 63 ms.
  constexpr int attempts = 7;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (attempt > 0) usleep(500U << attempt);
    receipt.arenas = 0;
    for (unsigned arena = 0; arena < narenas.value(); ++arena) {
      if (!wanted(arena)) continue;
      if (const int error = mallctl::call<Ctl::arena_purge>(arena); error != 0)
        note_error(error);
      else
        ++receipt.arenas;
    }
    refresh();
    const uint64_t left = dirty_pages();
    if (left <= dirty / 8) break;
    dirty = left;
  }
  receipt.resident_after_bytes = resident_bytes();
  receipt.duration_us = clock_us(CLOCK_MONOTONIC) - start_us;
  return receipt;
}

/** Give the blocks that wait in a shard's cache back to its arena, and the
cache too: the next who wants it makes it, and may fail to. (A cache that was
only flushed, jemalloc makes again by itself, and where it has no memory for it
ends the process: tcaches_get() of 5.3.1.) Where none could be made, that is
tried again too. The caller has the shard's turn. */
void drop_cache(Shard *shard) {
  if (shard->cache >= 0)
    (void)mallctl::write<Ctl::tcache_destroy>(
        static_cast<unsigned>(shard->cache));
  shard->cache = placed::no_cache;
}

/** Of all shards of a pool. A cache that is in use right now is left alone: its
pool is not quiet. */
void empty_caches(Pool pool) {
  Shard *const shards = state_of(pool).shards;
  for (unsigned cpu = 0; cpu < spec_of(pool).shards; ++cpu) {
    const Turn turn(shards, cpu);
    if (turn.index() == cpu) drop_cache(&shards[cpu]);
  }
}

/** Calls visit(shard) for each shard of each pool. */
template <typename Visitor>
void for_each_shard(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool)
    for (unsigned cpu = 0; cpu < pool_specs[pool].shards; ++cpu)
      visit(&states[pool].shards[cpu]);
}

/** jemalloc forgets explicit caches in the child: its lists there hold those of
the calling thread alone. To empty one later would tie these lists to caches of
threads that are gone. So there are none, and nobody makes or uses one while
fork() is under way. Of a shard that somebody holds for long, because he
was interrupted, the child gives the cache up. */
void hold_caches() {
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

/** @param child  whose only thread this is: others may have gone on with what
was not held, up to the moment of fork() */
void let_go(bool child) {
  for_each_shard([child](Shard *shard) {
    if (!shard->held && !child) return;
    if (!shard->held) shard->cache = unavailable;
    shard->taken.store(false, std::memory_order_release);
  });
  making_mutex.unlock();
  purge_log::let_go();
  purge_mutex.unlock();
}

/** fork() waits until a purge has ended: the child would find the mutex locked
for ever, and jemalloc's arena in the midst of a purge that nobody ends. */
[[gnu::constructor]] void prepare_for_fork() {
  // jemalloc registers its own handlers when it is first used. Those that are
  // registered later run earlier, and ours take its mutexes.
  (void)mallctl::refresh();
  (void)pthread_atfork(
      [] {
        purge_mutex.lock();
        purge_log::hold();
        making_mutex.lock();
        hold_caches();
      },
      [] { let_go(false); }, [] { let_go(true); });
}

/** Calls visit(the accounts' parts) for each pool that keeps them, and shard.
 */
template <typename Visitor>
void for_each_live_part(Visitor visit) {
  for (size_t pool = 0; pool < pool_count; ++pool) {
    if (is_mallocs(static_cast<Pool>(pool))) continue;
    const unsigned shards = pool_specs[pool].shards;
    for (unsigned i = 0; i <= shards; ++i)
      visit(live_parts[pool][i == shards ? bypass : i]);
  }
}

/** Parts are read one after the other while blocks come and go. */
pools::Live at_least_none(int64_t bytes, int64_t blocks) {
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
                                         pools::Account account,
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
  notes::note(pool, account, change);
}

}  // namespace

std::optional<Pool> find_pool(std::string_view name) {
  for (size_t i = 0; i < pool_count; ++i) {
    const std::string_view candidate = pool_specs[i].name;
    if (candidate.size() == name.size() &&
        strncasecmp(candidate.data(), name.data(), name.size()) == 0)
      return static_cast<Pool>(i);
  }
  return std::nullopt;
}

namespace pools {

void *allocate(Pool pool, size_t size, bool zero, Account account) noexcept {
  if (is_mallocs(pool)) return placed::general_allocate(size, zero);
  const Pool_spec &spec = spec_of(pool);
  Pool_state &state = state_of(pool);
  const unsigned cpu = shard_for(spec, size);
  int arena = state.shards[cpu].arena.load(std::memory_order_acquire);
  if (arena < 0) [[unlikely]] {
    if (arena == no_arena || state.fallbacks.load(std::memory_order_relaxed) %
                                     fallbacks_before_retry ==
                                 0)
      arena = create_arena(pool, cpu);
  }
  if (arena < 0 || injection.left.load(std::memory_order_relaxed) != 0)
      [[unlikely]] {
    const Failure failure = injected_failure(pool, account);
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
  if (is_mallocs(pool)) {
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

void bind_thread_to_connection() noexcept {
  constexpr Pool pool = Pool::connection;
  // Where malloc() is not jemalloc's, nothing would come from the arena.
  if (!mallctl::serves_malloc()) return;
  // In turn, as many as can run at once: threads come and go, and where a new
  // one happens to run says nothing.
  static const auto cpus =
      static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  static constinit std::atomic<unsigned> bound{0};
  const unsigned shard = bound.fetch_add(1, std::memory_order_relaxed) %
                         std::min(cpus, spec_of(pool).shards);
  int arena = state_of(pool).shards[shard].arena.load();
  if (arena < 0) arena = create_arena(pool, shard);
  if (arena >= 0)
    (void)mallctl::write<Ctl::thread_arena>(static_cast<unsigned>(arena));
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

Pool owner_of_arena(unsigned arena) {
  return arena < max_arenas ? static_cast<Pool>(arena_owners[arena].load())
                            : Pool::general;
}

Counters counters(Pool pool) {
  Pool_state &state = state_of(pool);
  const uint64_t live = live_bytes(state);
  note_peak(state, live);
  return {live,
          state.peak_bytes.load(),
          state.peak_time_us.load(),
          state.fallbacks.load(),
          state.purges.load(),
          state.purged_bytes.load(),
          state.purge_us.load(),
          state.refaulted_bytes.load()};
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

Result<uint64_t> dirty_bytes(Pool pool) {
  if (const int error = mallctl::refresh(); error != 0)
    return Result<uint64_t>::failed(error);
  const auto page = mallctl::read<Ctl::arenas_page>();
  if (!page) return Result<uint64_t>::failed(page.error());
  const auto narenas = mallctl::read<Ctl::arenas_narenas>();
  if (!narenas) return Result<uint64_t>::failed(narenas.error());
  int error = 0;
  const uint64_t pages = sum_over_arenas<Ctl::stats_arena_pdirty>(
      narenas.value(), arenas_of(pool), &error);
  return error == 0 ? Result<uint64_t>::ok(pages * page.value())
                    : Result<uint64_t>::failed(error);
}

uint32_t backoff(Pool pool) {
  return state_of(pool).backoff.load(std::memory_order_relaxed);
}

void note_refault(Pool pool, uint64_t bytes, uint32_t max_backoff) {
  Pool_state &state = state_of(pool);
  state.refaulted_bytes.fetch_add(bytes);
  const uint32_t now = state.backoff.load();
  state.backoff.store(max_backoff == 0 ? std::max(now / 2, 1u)
                                       : std::min(now * 2, max_backoff));
}

uint64_t activity(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : state_of(pool).shards)
    sum += shard.allocated_bytes.load(std::memory_order_relaxed) +
           shard.freed_bytes.load(std::memory_order_relaxed);
  return sum;
}

Receipt purge(Pool pool, Purge_reason reason) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  empty_caches(pool);
  const Receipt receipt = purge_arenas(arenas_of(pool));
  Pool_state &state = state_of(pool);
  state.purged_bytes.fetch_add(receipt.released_bytes());
  state.purge_us.fetch_add(receipt.duration_us);
  purge_log::add(
      {clock_us(CLOCK_REALTIME), pool, reason, receipt, allocated_bytes(pool)});
  state.purges.fetch_add(1);  // last: who sees it sees what the purge did
  return receipt;
}

Receipt purge_all(Purge_reason reason) {
  Receipt total{0, 0, 0, 0, 0};
  for (size_t i = 0; i < pool_count; ++i) {
    const Receipt one = purge(static_cast<Pool>(i), reason);
    total.resident_before_bytes += one.resident_before_bytes;
    total.resident_after_bytes += one.resident_after_bytes;
    total.duration_us += one.duration_us;
    total.arenas += one.arenas;
    if (total.error == 0) total.error = one.error;
  }
  return total;
}

uint32_t fail_allocations_for_test(const Failures &failures) {
  const uint32_t left_over = injection.left.exchange(0);
  injection.to_skip.store(failures.skip);
  injection.pool.store(failures.pool.value_or(Pool::count));
  injection.account.store(failures.account);
  injection.thread.store(failures.this_thread ? gettid() : 0);
  injection.hard.store(failures.hard);
  injection.left.store(failures.count, std::memory_order_release);
  return left_over;
}

int detail::arena_of_shard(Pool pool, unsigned shard) {
  if (shard >= max_shards) return no_arena;
  return state_of(pool).shards[shard].arena.load(std::memory_order_acquire);
}

}  // namespace pools
}  // namespace memdiag
