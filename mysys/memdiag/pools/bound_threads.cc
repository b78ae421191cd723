#include "mysys/memdiag/pools/bound_threads.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/cpus.h"

namespace memdiag::pools {
namespace {

/** So many threads share an arena before another one is made. An arena's 130
KB are 8 KB for each of them. */
constexpr unsigned threads_per_arena = 16;

/** The blocks of each size that the cache of a connection's thread holds at
most. With jemalloc's default, the first block of a size fetches a whole slab,
and the blocks that a connection keeps lie in slabs of its own. */
constexpr const char *connection_cache = "8-64:32|80-512:8|640-32768:2";

/** Threads that are bound to the arena of each slot. */
using Bound = std::array<std::atomic<unsigned>, max_slots>;
constexpr Pool first = Pool::connection;
constexpr size_t bound_pools = static_cast<size_t>(Pool::group_replication) -
                               static_cast<size_t>(first) + 1;
static_assert(static_cast<size_t>(first) == 1 &&
              uses_malloc(Pool::group_replication));
constinit std::array<Bound, bound_pools> bound_of_pools{};

Bound &bound_of(Pool pool) {
  return bound_of_pools[static_cast<size_t>(pool) - static_cast<size_t>(first)];
}

/** Counts a thread as bound for as long as it lives. */
class Binding {
 public:
  ~Binding() { release(); }

  /** Choose the slot with the fewest threads, the first of several. */
  unsigned choose(Pool pool) {
    m_before = m_bound;
    release();
    Bound &bound = bound_of(pool);
    const unsigned slots = slots_to_use(pool);
    for (;;) {
      size_t least = 0;
      unsigned threads = bound[0].load(std::memory_order_relaxed);
      for (size_t i = 1; i < slots && threads != 0; ++i) {
        const unsigned other = bound[i].load(std::memory_order_relaxed);
        if (other >= threads) continue;
        least = i;
        threads = other;
      }
      if (!bound[least].compare_exchange_weak(threads, threads + 1)) continue;
      m_bound = &bound[least];
      return static_cast<unsigned>(least);
    }
  }

  /** The thread is bound as before. */
  void undo() {
    release();
    m_bound = m_before;
    if (m_bound != nullptr) m_bound->fetch_add(1);
  }

 private:
  /** Threads that can run at once do not wait for each other, and one that is
  interrupted while it holds a lock of its arena stops few. */
  static unsigned slots_to_use(Pool pool) {
    unsigned all = 1;
    for (const auto &threads : bound_of(pool))
      all += threads.load(std::memory_order_relaxed);
    const unsigned most = spec_of(pool).arenas;
    return std::clamp((all + threads_per_arena - 1) / threads_per_arena,
                      std::min(allowed_cpus(), most), most);
  }

  void release() {
    if (m_bound != nullptr) m_bound->fetch_sub(1);
    m_bound = nullptr;
  }

  std::atomic<unsigned> *m_bound = nullptr;
  std::atomic<unsigned> *m_before = nullptr;
};

/** The calling thread's pool; Pool::general: it is not bound. */
constinit thread_local Pool bound_to = Pool::general;

/** The calling thread should have a cache and has none: suspend_cache() freed
it, or it could not be made. A thread that has none for another reason, such as
MALLOC_CONF=tcache:false, gets none. */
constinit thread_local bool lacks_cache = false;

/** Made if need be; negative: it cannot be had. */
int arena_of_slot(Pool pool, unsigned slot) {
  const int arena = arena_in_slot(pool, slot);
  return arena < 0 ? make_arena(pool, slot) : arena;
}

bool has_cache() {
  return mallctl::read<Ctl::thread_tcache_enabled>().value_or(false);
}

/** Makes the calling thread's cache anew. If that fails, the thread has none,
and resume_cache() tries again. */
void limit_cache() {
  if (bound_to == Pool::connection)
    (void)mallctl::write<Ctl::thread_tcache_sizes>(connection_cache);
  lacks_cache = !has_cache();
}

}  // namespace

void bind_thread(Pool pool) noexcept {
  // If malloc() is not jemalloc's, nothing would come from the arena.
  if (!mallctl::serves_malloc()) return;
  thread_local Binding binding;
  const int arena = arena_of_slot(pool, binding.choose(pool));
  if (arena < 0) {
    binding.undo();
    return;
  }
  (void)mallctl::write<Ctl::thread_arena>(static_cast<unsigned>(arena));
  resume_cache();
  if (bound_to == pool) return;
  bound_to = pool;
  if (has_cache()) limit_cache();
}

void *allocate_as_bound(Pool pool, size_t size, bool zero) noexcept {
  if (bound_to != pool && mallctl::serves_malloc()) {
    const int arena = arena_of_slot(
        pool, current_shard() % std::min(allowed_cpus(), spec_of(pool).arenas));
    void *const block = arena < 0
                            ? nullptr
                            : placed::allocate(static_cast<unsigned>(arena),
                                               placed::no_cache, size, zero);
    if (block != nullptr) return block;
  }
  return placed::general_allocate(size, zero);
}

void free_as_bound(Pool pool, void *block) noexcept {
  if (block == nullptr) return;
  const Result<unsigned> arena = mallctl::arena_of(block);
  const bool is_its = arena && owner_of_arena(arena.value()) == pool;
  // The cache of the thread may keep it if both are of the pool, or neither.
  if (is_its == (bound_to == pool))
    placed::general_free(block);
  else
    placed::free(block, placed::no_cache, placed::size_of(block));
}

void suspend_cache() noexcept {
  if (!mallctl::serves_malloc() || !has_cache()) return;
  lacks_cache = mallctl::write<Ctl::thread_tcache_enabled>(false) == 0;
}

void resume_cache() noexcept {
  if (!lacks_cache) return;
  (void)mallctl::write<Ctl::thread_tcache_enabled>(true);
  limit_cache();
}

}  // namespace memdiag::pools
