#include "mysys/memdiag/purging/purge.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pools.h"
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

/** Arenas that the last attempt of a purge could not purge. Guarded by
purge_mutex. */
constinit bool skipped[pools::max_arenas];

Pool_purges &purges_of(Pool pool) {
  return purges_by_pool[static_cast<size_t>(pool)];
}

/** Calls visit(arena index) for each arena of the pool. Pool::general's may not
exist yet.
@return 0, or the errno with which their number could not be read */
template <typename Visitor>
int for_each_arena(Pool pool, Visitor visit) {
  if (pool != Pool::general) {
    pools::for_each_arena(pool, visit);
    return 0;
  }
  const auto narenas = mallctl::read<Ctl::arenas_narenas>();
  for (unsigned arena = 0; arena < narenas.value_or(0); ++arena)
    if (pools::owner_of_arena(arena) == Pool::general) visit(arena);
  return narenas ? 0 : narenas.error();
}

/** Calls visit(its pages) for each arena of the pool that exists.
@return 0, or the errno of the first arena whose pages could not be read */
template <typename Visitor>
int for_each_arenas_pages(Pool pool, Visitor visit) {
  int error = 0;
  const int unknown = for_each_arena(pool, [&](unsigned arena) {
    const auto pages = mallctl::arena_pages(arena);
    if (pages)
      visit(pages.value());
    else if (pages.error() != EFAULT && error == 0)  // EFAULT: none is there
      error = pages.error();
  });
  return unknown != 0 ? unknown : error;
}

/** Purge all arenas of a pool. Caller holds purge_mutex. */
Receipt purge_arenas(Pool pool) {
  Receipt receipt{0, 0, 0, 0, 0};
  const auto note_error = [&receipt](int error) {
    if (receipt.error == 0) receipt.error = error;
  };
  const uint64_t start_us = clock_us(CLOCK_MONOTONIC);
  note_error(for_each_arenas_pages(
      pool, [&receipt](const mallctl::Arena_pages &pages) {
        receipt.resident_before_bytes += pages.resident_bytes;
        ++receipt.arenas;
      }));
  // An arena that a thread of jemalloc's own is purging is tried again, because
  // that thread takes only the pages that are due. The more pages there are,
  // the longer it takes: the waits double, up to 63 ms in all.
  constexpr int attempts = 7;
  bool again = true;
  for (int attempt = 0; attempt < attempts && again; ++attempt) {
    if (attempt > 0) usleep(500U << attempt);
    const bool first = attempt == 0;
    again = false;
    (void)for_each_arena(pool, [&](unsigned arena) {
      bool &is_left = skipped[arena];
      if (!first && !is_left) return;
      const auto purged = mallctl::purge_arena(arena);
      if (!purged && purged.error() != EFAULT) note_error(purged.error());
      is_left = purged && !purged.value();
      again = again || is_left;
    });
  }
  note_error(for_each_arenas_pages(
      pool, [&receipt](const mallctl::Arena_pages &pages) {
        receipt.resident_after_bytes += pages.resident_bytes;
      }));
  receipt.duration_us = clock_us(CLOCK_MONOTONIC) - start_us;
  return receipt;
}

}  // namespace

Receipt purge(Pool pool, Purge_reason reason) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  // A busy pool is at work with its caches.
  if (reason != Purge_reason::excess) pools::drop_caches(pool);
  const Receipt receipt = purge_arenas(pool);
  Pool_purges &sums = purges_of(pool);
  sums.purged_bytes.fetch_add(receipt.released_bytes());
  sums.purge_us.fetch_add(receipt.duration_us);
  purge_log::add({clock_us(CLOCK_REALTIME), pool, reason, receipt,
                  pools::allocated_bytes(pool)});
  // Last: a thread that sees the purge counted sees what it did.
  sums.purges.fetch_add(1);
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
      pool,
      [&pages](const mallctl::Arena_pages &now) { pages += now.dirty_pages; });
  return error == 0 ? Result<uint64_t>::ok(pages * page.value())
                    : Result<uint64_t>::failed(error);
}

uint32_t backoff(Pool pool) {
  return purges_of(pool).backoff.load(std::memory_order_relaxed);
}

void note_refault(Pool pool, uint64_t bytes, uint32_t max_backoff) {
  Pool_purges &sums = purges_of(pool);
  sums.refaulted_bytes.fetch_add(bytes);
  const uint32_t now = sums.backoff.load();
  sums.backoff.store(max_backoff == 0 ? std::max(now / 2, 1u)
                                      : std::min(now * 2, max_backoff));
}

void hold_purges() noexcept { purge_mutex.lock(); }
void let_go_of_purges() noexcept { purge_mutex.unlock(); }

}  // namespace memdiag::purging
