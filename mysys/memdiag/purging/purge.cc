#include "mysys/memdiag/purging/purge.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "mysys/memdiag/clock.h"
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

Pool_purges &purges_of(Pool pool) {
  return purges_by_pool[static_cast<size_t>(pool)];
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
Receipt purge_arenas(Predicate wanted) {
  Receipt receipt{0, 0, 0, 0, 0};
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
  // jemalloc skips an arena that one of its own threads purges at the moment,
  // without an error (pac_decay_to_limit), and that thread takes only the pages
  // that are due. The more pages there are, the longer it takes: the waits
  // double, up to 63 ms in all.
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

}  // namespace

Receipt purge(Pool pool, Purge_reason reason) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  pools::drop_caches(pool);
  const Receipt receipt = purge_arenas(arenas_of(pool));
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
