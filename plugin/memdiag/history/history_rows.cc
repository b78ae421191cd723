#include "plugin/memdiag/history/history_rows.h"

#include <algorithm>

#include "plugin/memdiag/history/trend.h"

namespace memdiag {
namespace {

using black_box::Sample;
using black_box::unknown;
using Samples = std::span<const Sample>;

constexpr uint64_t minute_us = 60 * 1000000;

Reading reading(uint64_t value) {
  return value == unknown ? std::nullopt : Reading{value};
}

/** Finds the pool with most bytes, if any has more than 0.
@param bytes  called with a pool's index; may return `unknown` */
template <typename Bytes>
void find_most(Bytes bytes, std::optional<const char *> *name, Reading *most) {
  for (size_t i = 0; i < pool_count; ++i) {
    const uint64_t value = bytes(i);
    if (value == unknown || value <= most->value_or(0)) continue;
    *name = pool_specs[i].name;
    *most = value;
  }
}

History_row row_of(const Sample &sample, const Sample &minute_before) {
  History_row row{};
  row.time_us = sample.time_us;
  row.rss_bytes = reading(sample.rss_bytes);
  row.swap_bytes = reading(sample.swap_bytes);
  row.rss_peak_bytes = reading(sample.rss_peak_bytes);
  if (row.rss_peak_bytes) row.rss_peak_time = Timestamp{sample.rss_peak_us};
  row.rss_peak_session = reading(sample.rss_peak_processlist_id);
  if (row.rss_peak_session) {
    row.rss_peak_session_bytes = reading(sample.rss_peak_session_bytes);
    row.rss_peak_digest = sessions::text_of(sample.rss_peak_digest);
  }
  row.limit_bytes = reading(sample.limit_bytes);
  row.allocated_bytes = reading(sample.allocated_bytes);
  row.active_bytes = reading(sample.active_bytes);
  row.resident_bytes = reading(sample.resident_bytes);
  row.dirty_bytes = reading(sample.dirty_bytes);
  row.metadata_bytes = reading(sample.metadata_bytes);
  row.buffer_pool_bytes = reading(sample.buffer_pool_bytes);
  row.purges = sample.purges;
  row.purged_bytes = sample.purged_bytes;
  find_most([&](size_t pool) { return sample.pools[pool].live_bytes; },
            &row.largest_pool, &row.largest_pool_bytes);
  if (sample.time_us == minute_before.time_us) return row;
  if (const Reading before = reading(minute_before.rss_bytes);
      before && row.rss_bytes)
    row.rss_bytes_per_second =
        (static_cast<double>(*row.rss_bytes) - static_cast<double>(*before)) *
        1e6 / static_cast<double>(sample.time_us - minute_before.time_us);
  find_most(
      [&](size_t pool) {
        const uint64_t now = sample.pools[pool].live_bytes;
        const uint64_t before = minute_before.pools[pool].live_bytes;
        return now == unknown || before == unknown
                   ? unknown
                   : now - std::min(now, before);
      },
      &row.grown_pool, &row.grown_pool_bytes);
  return row;
}

/** @param room  of the sample */
void add_trend(const std::optional<Trend> &trend, uint64_t room,
               History_row *row) {
  if (!trend) return;
  row->trend_bytes_per_second = trend->bytes_per_second;
  row->trend_r2 = trend->r2;
  // More than a year is as good as never.
  constexpr double most = 365 * 86400;
  double seconds = most;
  if (row->limit_bytes)
    seconds = seconds_until(*trend, *row->limit_bytes).value_or(most);
  if (room != unknown && trend->bytes_per_second > 0)
    seconds =
        std::min(seconds, static_cast<double>(room) / trend->bytes_per_second);
  if (seconds < most) row->seconds_until_limit = static_cast<uint64_t>(seconds);
}

/** Calls visit(run number, samples) for each run, the oldest first, until it
returns false. */
template <typename Visitor>
void for_each_run(Samples former, Samples this_run, Visitor visit) {
  const auto is_another = [](const Sample &a, const Sample &b) {
    return a.run_us != b.run_us || a.process != b.process;
  };
  uint64_t run = 1;
  for (size_t i = 1; i < former.size(); ++i)
    if (is_another(former[i - 1], former[i])) ++run;
  while (!former.empty()) {
    const auto end =
        std::adjacent_find(former.begin(), former.end(), is_another);
    const size_t count = end == former.end()
                             ? former.size()
                             : static_cast<size_t>(end - former.begin()) + 1;
    if (!visit(run--, former.first(count))) return;
    former = former.subspan(count);
  }
  if (!this_run.empty()) visit(uint64_t{0}, this_run);
}

/** The text of a MYSQL_VERSION_ID. */
std::string version_text(uint32_t id) {
  return std::to_string(id / 10000) + '.' + std::to_string(id / 100 % 100) +
         '.' + std::to_string(id % 100);
}

/** @return false: no more are wanted */
bool take_pool_rows(uint64_t number, Samples run,
                    const Take_row<History_pool_row> &take) {
  for (const Sample &sample : run)
    for (size_t i = 0; i < pool_count; ++i)
      if (!take({number, sample.time_us, pool_specs[i].name,
                 reading(sample.pools[i].live_bytes),
                 reading(sample.pools[i].dirty_bytes)}))
        return false;
  return true;
}

}  // namespace

void history_rows(Samples run, const Take_row<History_row> &take) {
  auto before = run.begin();
  auto oldest = run.begin();
  Trend_window window;
  for (const Sample &sample : run) {
    // A sample from before the clock was set back is later than this one.
    const auto is_older = [&sample](const Sample &other, uint64_t by_us) {
      return other.time_us + by_us < sample.time_us ||
             other.time_us > sample.time_us;
    };
    while (is_older(*before, minute_us)) ++before;
    History_row row = row_of(sample, *before);

    const auto is_known = [](const Sample &other) {
      return other.rss_bytes != unknown;
    };
    if (is_known(sample)) window.add(sample.time_us, sample.rss_bytes);
    for (; is_older(*oldest, trend_us) || !is_known(*oldest); ++oldest) {
      if (&*oldest == &sample) break;
      if (is_known(*oldest)) window.remove(oldest->time_us, oldest->rss_bytes);
    }
    if (is_known(sample))
      add_trend(window.line(oldest->time_us), sample.room_bytes, &row);
    if (!take(row)) return;
  }
}

void history_rows(Samples former, Samples this_run,
                  const Take_row<Run_history_row> &take) {
  for_each_run(former, this_run, [&take](uint64_t number, Samples run) {
    bool goes_on = true;
    std::optional<bool> shut_down;
    if (number != 0) shut_down = run.back().ended != 0;
    history_rows(run, [&](const History_row &row) {
      goes_on = take({row, number, run[0].run_us, run[0].process,
                      version_text(run[0].version), shut_down});
      return goes_on;
    });
    return goes_on;
  });
}

void history_pool_rows(Samples former, Samples run,
                       const Take_row<History_pool_row> &take) {
  for_each_run(former, run, [&take](uint64_t number, Samples samples) {
    return take_pool_rows(number, samples, take);
  });
}

}  // namespace memdiag
