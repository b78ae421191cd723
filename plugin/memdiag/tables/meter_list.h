/*
  The metrics of OpenTelemetry's meter mysql.memdiag: names, units and how each
  is measured from figures that were read before.

  Names and units follow OpenTelemetry's semantic conventions: dots between
  words, units in UCUM (By, s, {purge}). Translated to Prometheus's form, they
  are the names that monitoring/queries.libsonnet gives to the same figures, and
  attributes are its labels: the same alerts serve both.

  Free of the server's headers: server/threads/meters.h registers the metrics,
  and the reference page is made from here.

  Errors: a figure that could not be read is not delivered.
  Threads: pure functions; nothing is allocated.
*/

#ifndef MEMDIAG_METER_LIST_H
#define MEMDIAG_METER_LIST_H

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ceiling/figures.h"
#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag::meters {

/** The figures of a round of measurements. A part that could not be read is
empty. */
struct Readings {
  std::optional<std::array<Pool_row, pool_count>> pools;
  std::vector<ledger::Row> ledger;
  /** The last sample of this run, if is_of_now(). Otherwise what the process
  has at the moment, without a trend. */
  std::optional<History_row> sample;
  limits::Figures limits;
  std::optional<ceiling::Figures> ceiling;
};

/** Older readings are no measurement. */
inline constexpr uint64_t max_age_us = 5'000'000;

/** memdiag_history_interval_ms may be an hour, or 0 for the first sample alone.
@return false: the sample is too old, or the clock was set back since */
constexpr bool is_of_now(uint64_t sample_us, uint64_t now_us) {
  return sample_us <= now_us && now_us - sample_us <= max_age_us;
}

/** Both are string literals. The server delivers the first three that have a
value, and none whose value is "" (server/threads/meters.cc). */
struct Attribute {
  const char *name;
  const char *value;
};
using Attributes = std::initializer_list<Attribute>;

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void add(int64_t value, Attributes attributes) = 0;
  virtual void add(double value, Attributes attributes) = 0;

  /** Delivers it unless it is empty. */
  void add_reading(const Reading &value, Attributes attributes) {
    if (!value) return;
    constexpr uint64_t most = std::numeric_limits<int64_t>::max();
    add(static_cast<int64_t>(*value < most ? *value : most), attributes);
  }
};

enum class Kind : uint8_t {
  /** It only grows. */
  counter,
  /** Series with different attributes add up. */
  up_down_counter,
  gauge
};

struct Metric {
  const char *name;
  const char *unit;
  const char *description;
  const char *attributes;
  Kind kind;
  bool is_double;
  void (*measure)(const Readings &, Sink *);
};

inline constexpr const char *meter_name = "mysql.memdiag";
inline constexpr const char *meter_description =
    "Where the server's memory is, by pool and use";

namespace detail {

template <auto member>
void each_pool(const Readings &readings, Sink *sink) {
  if (!readings.pools) return;
  for (const Pool_row &pool : *readings.pools)
    sink->add_reading(pool.*member, {{"pool", pool.name}});
}

template <auto member>
void last_sample(const Readings &readings, Sink *sink) {
  if (readings.sample) sink->add_reading((*readings.sample).*member, {});
}

template <auto member>
void limit(const Readings &readings, Sink *sink) {
  sink->add_reading(readings.limits.*member, {});
}

/** @param unit  of the figure; a metric of microseconds is in seconds */
inline void add_figure(Unit unit, const Reading &figure, Sink *sink) {
  if (figure && unit == Unit::microseconds)
    sink->add(static_cast<double>(*figure) / 1e6, {});
  else
    sink->add_reading(figure, {});
}

}  // namespace detail

inline constexpr auto metrics = std::to_array<Metric>({
    {"mysql.memdiag.ledger.resident", "By",
     "Physical memory by use. All series add up to the process's "
     "RSS.",
     "component, name, state", Kind::up_down_counter, false,
     [](const Readings &readings, Sink *sink) {
       for (const ledger::Row &row : readings.ledger)
         if (row.resident_bytes)
           sink->add(*row.resident_bytes, {{"component", row.component},
                                           {"name", row.name},
                                           {"state", row.state}});
     }},
    {"mysql.memdiag.pool.live", "By", "Allocated and not yet freed.", "pool",
     Kind::up_down_counter, false, detail::each_pool<&Pool_row::held_bytes>},
    {"mysql.memdiag.pool.active", "By", "Pages that hold at least one block.",
     "pool", Kind::up_down_counter, false,
     detail::each_pool<&Pool_row::active_bytes>},
    {"mysql.memdiag.pool.dirty", "By",
     "Unused pages that were not given back yet.", "pool",
     Kind::up_down_counter, false, detail::each_pool<&Pool_row::dirty_bytes>},
    {"mysql.memdiag.pool.muzzy", "By", "Unused pages that the kernel may take.",
     "pool", Kind::up_down_counter, false,
     detail::each_pool<&Pool_row::muzzy_bytes>},
    {"mysql.memdiag.pool.metadata", "By", "The allocator's bookkeeping.",
     "pool", Kind::up_down_counter, false,
     detail::each_pool<&Pool_row::metadata_bytes>},
    {"mysql.memdiag.pool.peak", "By",
     "Highest live bytes since the server started.", "pool", Kind::gauge, false,
     detail::each_pool<&Pool_row::peak_bytes>},
    {"mysql.memdiag.pool.fallbacks", "{block}",
     "Blocks that malloc() served because the pool could not.", "pool",
     Kind::counter, false, detail::each_pool<&Pool_row::fallbacks>},
    {"mysql.memdiag.pool.purges", "{purge}", "Purges of the whole pool.",
     "pool", Kind::counter, false, detail::each_pool<&Pool_row::purges>},
    {"mysql.memdiag.pool.purged", "By", "Bytes that purges released.", "pool",
     Kind::counter, false, detail::each_pool<&Pool_row::purged_bytes>},
    {"mysql.memdiag.pool.purge.time", "s", "Duration of the purges.", "pool",
     Kind::counter, true,
     [](const Readings &readings, Sink *sink) {
       if (!readings.pools) return;
       for (const Pool_row &pool : *readings.pools)
         sink->add(static_cast<double>(pool.purge_us) / 1e6,
                   {{"pool", pool.name}});
     }},
    {"mysql.memdiag.pool.refaulted", "By",
     "Purged bytes that the pool needed again within a second.", "pool",
     Kind::counter, false, detail::each_pool<&Pool_row::refaulted_bytes>},
    {"mysql.memdiag.pool.backoff", "{pause}",
     "The pool waits this many times its usual pause before a "
     "purge.",
     "pool", Kind::gauge, false, detail::each_pool<&Pool_row::backoff>},
    {"mysql.memdiag.process.resident", "By",
     "Physical memory of the server (RSS).", "", Kind::gauge, false,
     detail::last_sample<&History_row::rss_bytes>},
    {"mysql.memdiag.process.peak", "By",
     "Highest RSS since the server started.", "", Kind::gauge, false,
     detail::last_sample<&History_row::rss_peak_bytes>},
    {"mysql.memdiag.process.limit", "By",
     "The lowest limit of the control group, or the machine's "
     "memory.",
     "", Kind::gauge, false, detail::last_sample<&History_row::limit_bytes>},
    {"mysql.memdiag.process.growth", "By/s",
     "Slope of a line through RSS of the last 15 minutes.", "", Kind::gauge,
     true,
     [](const Readings &readings, Sink *sink) {
       if (readings.sample && readings.sample->trend_bytes_per_second)
         sink->add(*readings.sample->trend_bytes_per_second, {});
     }},
    {"mysql.memdiag.process.until_limit", "s",
     "Time until that line reaches the limit, or has grown by all that other "
     "processes leave of it. Absent: not within a year.",
     "", Kind::gauge, false,
     detail::last_sample<&History_row::seconds_until_limit>},
    {"mysql.memdiag.host.memory", "By", "Memory of the machine.", "",
     Kind::gauge, false, detail::limit<&limits::Figures::machine_bytes>},
    {"mysql.memdiag.host.available", "By",
     "Memory of the machine that is available.", "", Kind::gauge, false,
     detail::limit<&limits::Figures::available_bytes>},
    {"mysql.memdiag.host.limit", "By",
     "Lowest limit of the control group and those above it. "
     "Absent: no limit.",
     "", Kind::gauge, false,
     detail::limit<&limits::Figures::group_limit_bytes>},
    {"mysql.memdiag.host.room", "By",
     "Least that is free below one of these limits. Absent: no "
     "limit.",
     "", Kind::gauge, false, detail::limit<&limits::Figures::group_room_bytes>},
    {"mysql.memdiag.host.room_limit", "By",
     "The limit with the least room. Absent: no limit.", "", Kind::gauge, false,
     detail::limit<&limits::Figures::group_room_limit_bytes>},
    {"mysql.memdiag.host.safe_limit", "By",
     "How low the limit of the control group may be set now "
     "without a kill.",
     "", Kind::gauge, false, detail::limit<&limits::Figures::safe_bytes>},
#define MEMDIAG_CEILING_FIGURE(variable, unit, metric, metric_unit, kind, \
                               value, meaning)                            \
  {"mysql.memdiag.ceiling." metric,                                       \
   metric_unit,                                                           \
   meaning,                                                               \
   "",                                                                    \
   Kind::kind,                                                            \
   Unit::unit == Unit::microseconds,                                      \
   [](const Readings &readings, Sink *sink) {                             \
     if (!readings.ceiling) return;                                       \
     const ceiling::Figures &now = *readings.ceiling;                     \
     [[maybe_unused]] constexpr Reading when_off;                         \
     detail::add_figure(Unit::unit, value, sink);                         \
   }},
#include "plugin/memdiag/ceiling/figure_list.h"
#undef MEMDIAG_CEILING_FIGURE
});

}  // namespace memdiag::meters

#endif  // MEMDIAG_METER_LIST_H
