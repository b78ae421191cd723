#include "plugin/memdiag/ledger/ledger_reader.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/ledger/amounts.h"
#include "plugin/memdiag/ledger/figures_reader.h"
#include "plugin/memdiag/ledger/process_memory.h"

namespace memdiag::ledger {
namespace {

constinit Reader the_reader;

/** jemalloc's statistics of each pool; empty if one is not known. */
std::optional<All_pools> counted(const Snapshot &snapshot) {
  All_pools all{};
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool_row &row = snapshot.pools[i];
    if (!row.live_bytes || !row.active_bytes || !row.dirty_bytes ||
        !row.muzzy_bytes || !row.metadata_bytes)
      return std::nullopt;
    all[i] = {*row.live_bytes, *row.active_bytes, *row.dirty_bytes,
              *row.muzzy_bytes, *row.metadata_bytes};
  }
  return all;
}

/** What later readings take for jemalloc's statistics of the moment of a walk:
of those before and after it, the fewer active and unused bytes of each pool.
Otherwise pages that a thread freed or purged in between would pass for
unwritten ones. */
All_pools lesser(const All_pools &before, const All_pools &after) {
  All_pools result = before;
  for (size_t i = 0; i < pool_count; ++i) {
    if (after[i].active_bytes < before[i].active_bytes) result[i] = after[i];
    result[i].dirty_bytes =
        std::min(before[i].dirty_bytes, after[i].dirty_bytes);
    result[i].muzzy_bytes =
        std::min(before[i].muzzy_bytes, after[i].muzzy_bytes);
  }
  return result;
}

/** @return true: at most 1% is unexplained */
bool adds_up(const Figures &figures) {
  const auto unexplained =
      rows(figures, Precision::cheap).back().resident_bytes;
  constexpr uint64_t part = 100;
  return unexplained && static_cast<uint64_t>(std::abs(*unexplained)) <=
                            *figures.rss_bytes / part;
}

/** When a burst ends, its pages are given back while they are counted. */
constexpr int max_attempts = 4;

bool differ_little(uint64_t before, uint64_t after) {
  constexpr uint64_t part = 400;
  return minus_or_zero(before, after) + minus_or_zero(after, before) <=
         after / part;
}

/** @return true: the kernel counts what the walk lets expect, but for 1% */
bool fits(const Figures &figures) {
  const uint64_t expected = expected_anonymous(*figures.pools, *figures.walked);
  const uint64_t found = *figures.anonymous_bytes;
  constexpr uint64_t part = 100;
  return minus_or_zero(expected, found) + minus_or_zero(found, expected) <=
         found / part;
}

constexpr auto always = [](const auto &) { return true; };
constexpr auto never = [](const auto &) { return false; };

}  // namespace

Reader &reader() { return the_reader; }

std::optional<Walked> Reader::walk(const std::vector<Address_range> &ranges,
                                   uint64_t anonymous_bytes,
                                   const All_pools &pools) {
  const uint64_t began_us = now_us();
  const uint64_t began_cpu_us = m_clock(CLOCK_THREAD_CPUTIME_ID);
  const auto found = extents::walk(ranges);
  if (!found) {
    m_walked.forget();
    return std::nullopt;
  }
  const Walked walked{*found, pools,
                      minus_or_zero(anonymous_bytes, found->total())};
  // On a busy machine a walk waits for a processor, and costs no more for it.
  const uint64_t took_us = m_clock(CLOCK_THREAD_CPUTIME_ID) - began_cpu_us;
  Walked kept = walked;
  if (const auto after = counted(take_snapshot()); after && !is_interrupted())
    kept.pools = lesser(pools, *after);
  m_walked.keep(kept, began_us, began_us + took_us);
  return walked;
}

Figures Reader::read(const Snapshot &snapshot,
                     const std::optional<Buffer_pool_pages> &buffer_pool,
                     Precision precision, std::vector<std::string> *warnings) {
  Figures_reader reader(buffer_pool, warnings);
  Figures &figures = reader.figures();
  figures.pools = counted(snapshot);
  bool reads_slow_figures = true;
  const auto reuse_slow_figures = [&](auto fits) {
    const auto slow = m_slow.take(now_us(), fits);
    reader.reuse(slow);
    reads_slow_figures = !slow;
  };
  if (precision == Precision::cheap) {
    reuse_slow_figures([&reader](const Slow_figures &earlier) {
      return reader.slow_regions().fit(earlier);
    });
    figures.walked = m_walked.take(now_us(), always);
    if (figures.pools && figures.walked &&
        reader.expect(*figures.pools, *figures.walked)) {
      figures.rss_bytes = process_memory::resident_bytes();
      if (adds_up(figures)) return figures;
      reuse_slow_figures(never);
      figures.walked = m_walked.take(now_us(), never);
    }
  }
  const uint64_t began_us = now_us();
  const bool has_mappings = reader.read_mappings();
  if (!has_mappings || reads_slow_figures) {
    if (const auto slow = reader.slow_figures(); has_mappings && slow)
      m_slow.keep(*slow, began_us, now_us());
    else
      m_slow.forget();
  }
  if (!figures.pools || !figures.anonymous_bytes) {
    figures.walked.reset();
    m_walked.forget();
  } else {
    if (figures.walked && !fits(figures))
      figures.walked = m_walked.take(now_us(), never);
    if (!figures.walked)
      figures.walked =
          walk(reader.anonymous(), *figures.anonymous_bytes, *figures.pools);
    if (!figures.walked) reader.warn("presence of pages (mincore)");
  }
  figures.rss_bytes = process_memory::resident_bytes();
  if (!figures.rss_bytes) reader.warn("/proc/self/statm");
  return figures;
}

Ledger Reader::take(const Snapshot &snapshot,
                    const std::optional<Buffer_pool_pages> &buffer_pool,
                    Precision precision) {
  Ledger ledger;
  Figures figures;
  for (int left = max_attempts; left > 0; --left) {
    ledger.warnings.clear();
    Reading before;
    if (precision == Precision::exact)
      before = process_memory::resident_bytes();
    figures = read(snapshot, buffer_pool, precision, &ledger.warnings);
    if (!before || !figures.rss_bytes ||
        differ_little(*before, *figures.rss_bytes))
      break;
  }
  ledger.rows = rows(figures, precision);
  return ledger;
}

regions::Resident Reader::recent_regions(
    const std::optional<Buffer_pool_pages> &buffer_pool) {
  regions::Resident known{};
  const Slow_regions now(buffer_pool);
  const auto slow = m_slow.peek(now_us(), [&now](const Slow_figures &earlier) {
    return now.fit(earlier);
  });
  if (slow) {
    known[stack_kind] = now.stack_bytes(*slow);
    known[buffer_pool_kind] = now.buffer_pool_bytes(*slow);
  } else if (buffer_pool &&
             buffer_pool->in_reserved == Buffer_pool_pages::In_reserved::all) {
    known[buffer_pool_kind] = 0;
  }
  return known;
}

std::optional<extents::Walk> Reader::recent_walk(
    const std::optional<Buffer_pool_pages> &buffer_pool) {
  auto found = m_walked.take(now_us(), always);
  if (!found) {
    std::vector<std::string> warnings;
    found =
        read(take_snapshot(), buffer_pool, Precision::exact, &warnings).walked;
  }
  if (!found) return std::nullopt;
  return found->walk;
}

}  // namespace memdiag::ledger
