#include "mysys/memdiag/purging/purge.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <mutex>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/base/rss.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/pools/uncached.h"
#include "mysys/memdiag/purging/purge_log.h"

namespace memdiag::purging {
namespace {

struct Pool_purges {
  std::atomic<uint64_t> purges{0};
  std::atomic<uint64_t> purged_bytes{0};
  std::atomic<uint64_t> purge_us{0};
  std::atomic<uint64_t> refaulted_bytes{0};
  std::atomic<uint32_t> backoff{1};
};
constinit Pool_purges purges_by_pool[pool_count];

constinit std::mutex purge_mutex;

/** Arenas that the last purge has purged. Guarded by purge_mutex. */
constinit std::bitset<pools::max_arenas> purged_now;

/** An arena's last purge, by its sequence in the log, and the resident bytes
right after it. Guarded by purge_mutex. */
struct Purged_arena {
  uint64_t sequence;
  uint64_t resident_bytes;
};
constinit Purged_arena purged_arenas[pools::max_arenas]{};

/** An arena that a thread of jemalloc's own is purging is tried again, because
that thread takes only the pages that are due. The more pages there are, the
longer it takes: the waits double, up to 63 ms in all. */
constexpr int attempts = 7;
void wait_before(int attempt) {
  if (attempt > 0) usleep(500U << attempt);
}

Pool_purges &purges_of(Pool pool) {
  return purges_by_pool[static_cast<size_t>(pool)];
}

/** Calls visit(arena index) for each arena of the pool, or for those in `only`
if it is not empty. Pool::general's may not exist yet.
@return 0, or the errno with which their number could not be read */
template <typename Visitor>
int for_each_arena(Pool pool, std::span<const unsigned> only, Visitor visit) {
  if (!only.empty()) {
    for (const unsigned arena : only) visit(arena);
    return 0;
  }
  if (pool != Pool::general) {
    pools::for_each_arena(pool, visit);
    return 0;
  }
  const auto narenas = mallctl::read<Ctl::arenas_narenas>();
  for (unsigned arena = 0; arena < narenas.value_or(0); ++arena)
    if (pools::owner_of_arena(arena) == Pool::general) visit(arena);
  return narenas ? 0 : narenas.error();
}

/** Calls visit(arena index, its pages) for each of them that exists.
@return 0, or the errno of the first arena whose pages could not be read */
template <typename Visitor>
int for_each_arenas_pages(Pool pool, std::span<const unsigned> only,
                          Visitor visit) {
  int error = 0;
  const int unknown = for_each_arena(pool, only, [&](unsigned arena) {
    const auto pages = mallctl::arena_pages(arena);
    if (pages)
      visit(arena, pages.value());
    else if (pages.error() != EFAULT && error == 0)  // EFAULT: none is there
      error = pages.error();
  });
  return unknown != 0 ? unknown : error;
}

/** Purge these arenas of a pool; empty: all. Caller holds purge_mutex. */
Receipt purge_arenas(Pool pool, std::span<const unsigned> only) {
  Receipt receipt{};
  const auto note_error = [&receipt](int error) {
    if (receipt.error == 0) receipt.error = error;
  };
  const uint64_t start_us = clock_us(CLOCK_MONOTONIC);
  note_error(for_each_arenas_pages(
      pool, only, [&receipt](unsigned, const mallctl::Arena_pages &pages) {
        receipt.arenas_before_bytes += pages.resident_bytes;
      }));
  purged_now.reset();
  bool again = true;
  for (int attempt = 0; attempt < attempts && again; ++attempt) {
    wait_before(attempt);
    again = false;
    (void)for_each_arena(pool, only, [&](unsigned arena) {
      if (purged_now[arena] || is_interrupted()) return;
      const auto purged = mallctl::purge_arena(arena);
      if (!purged && purged.error() != EFAULT) note_error(purged.error());
      purged_now[arena] = purged.value_or(false);
      again = again || !purged.value_or(true);
    });
  }
  receipt.arenas = static_cast<unsigned>(purged_now.count());
  note_error(for_each_arenas_pages(
      pool, only,
      [&receipt](unsigned arena, const mallctl::Arena_pages &pages) {
        receipt.arenas_after_bytes += pages.resident_bytes;
        if (purged_now[arena])
          purged_arenas[arena].resident_bytes = pages.resident_bytes;
      }));
  receipt.duration_us = clock_us(CLOCK_MONOTONIC) - start_us;
  return receipt;
}

/** As taken_again(). Caller holds purge_mutex. */
Result<uint64_t> count_taken_again(Pool pool, uint64_t sequence) {
  uint64_t bytes = 0;
  const int error = for_each_arenas_pages(
      pool, {}, [&](unsigned arena, const mallctl::Arena_pages &now) {
        const Purged_arena &then = purged_arenas[arena];
        if (then.sequence == sequence &&
            now.resident_bytes > then.resident_bytes)
          bytes += now.resident_bytes - then.resident_bytes;
      });
  return error == 0 ? Result<uint64_t>::ok(bytes)
                    : Result<uint64_t>::failed(error);
}

/** A purge gives back what the one before it could be judged by. Caller holds
purge_mutex. */
void note_refault_of_last(Pool pool) {
  if (uses_malloc(pool)) return;
  const auto last = purge_log::last_of(pool);
  if (!last || last->refaulted_bytes || last->receipt.error != 0) return;
  if (const auto taken = count_taken_again(pool, last->sequence))
    purge_log::note_refault(
        last->sequence,
        std::min(taken.value(), last->receipt.released_bytes()));
}

}  // namespace

Receipt purge(Pool pool, Purge_reason reason, std::span<const unsigned> only) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  if (is_interrupted()) return {};
  note_refault_of_last(pool);
  const uint64_t rss_before_bytes = process_rss();
  // The pool is at work with its caches while only some of its arenas rest.
  if (only.empty()) pools::drop_caches(pool);
  Receipt receipt = purge_arenas(pool, only);
  receipt.rss_before_bytes = rss_before_bytes;
  receipt.rss_after_bytes = process_rss();
  Pool_purges &sums = purges_of(pool);
  sums.purged_bytes.fetch_add(receipt.released_bytes());
  sums.purge_us.fetch_add(receipt.duration_us);
  const uint64_t sequence =
      purge_log::add({clock_us(CLOCK_REALTIME), pool, reason, receipt});
  for (unsigned arena = 0; arena < purged_now.size(); ++arena)
    if (purged_now[arena]) purged_arenas[arena].sequence = sequence;
  // Last: a thread that sees the purge counted sees what it did.
  sums.purges.fetch_add(1);
  return receipt;
}

Receipt purge_all(Purge_reason reason) {
  Receipt total{};
  for (size_t i = 0; i < pool_count; ++i) {
    if (is_interrupted()) break;
    const Receipt one = purge(static_cast<Pool>(i), reason);
    total.arenas_before_bytes += one.arenas_before_bytes;
    total.arenas_after_bytes += one.arenas_after_bytes;
    if (i == 0) total.rss_before_bytes = one.rss_before_bytes;
    total.rss_after_bytes = one.rss_after_bytes;
    total.duration_us += one.duration_us;
    total.arenas += one.arenas;
    if (total.error == 0) total.error = one.error;
  }
  return total;
}

void Freed_blocks::add(const void *block, size_t size) noexcept {
  if (size < pools::large_size) return;
  if (const auto arena = mallctl::arena_of(block)) m_arenas.set(arena.value());
}

void Freed_blocks::give_back() const noexcept {
  for (unsigned arena = 0; arena < m_arenas.size(); ++arena) {
    bool is_left = m_arenas[arena];
    for (int attempt = 0; attempt < attempts && is_left; ++attempt) {
      wait_before(attempt);
      const std::unique_lock<std::mutex> guard(purge_mutex, std::try_to_lock);
      if (!guard) return;
      is_left = !mallctl::purge_arena(arena).value_or(true);
      purged_arenas[arena].sequence = 0;  // that purge is not in the log
    }
  }
}

Counters counters(Pool pool) {
  const Pool_purges &sums = purges_of(pool);
  return {sums.purges.load(), sums.purged_bytes.load(), sums.purge_us.load(),
          sums.refaulted_bytes.load()};
}

Result<uint64_t> dirty_bytes(Pool pool) {
  const auto page = mallctl::read<Ctl::arenas_page>();
  if (!page) return Result<uint64_t>::failed(page.error());
  uint64_t pages = 0;
  const int error = for_each_arenas_pages(
      pool, {}, [&pages](unsigned, const mallctl::Arena_pages &now) {
        pages += now.dirty_pages;
      });
  return error == 0 ? Result<uint64_t>::ok(pages * page.value())
                    : Result<uint64_t>::failed(error);
}

Result<uint64_t> taken_again(Pool pool, uint64_t sequence) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  return count_taken_again(pool, sequence);
}

uint32_t backoff(Pool pool) {
  return purges_of(pool).backoff.load(std::memory_order_relaxed);
}

void note_refault(Pool pool, uint64_t bytes) {
  purges_of(pool).refaulted_bytes.fetch_add(bytes);
}

void change_backoff(Pool pool, uint32_t most) {
  auto &backoff = purges_of(pool).backoff;
  const uint32_t now = backoff.load();
  backoff.store(most == 0 ? std::max(now / 2, 1U) : std::min(now * 2, most));
}

void hold_purges() noexcept { purge_mutex.lock(); }
void let_go_of_purges() noexcept { purge_mutex.unlock(); }

}  // namespace memdiag::purging
