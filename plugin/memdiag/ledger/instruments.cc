#include "plugin/memdiag/ledger/instruments.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace memdiag::instruments {
namespace {

/** Places, and the instruments that Performance Schema counts their blocks
under. */
constexpr struct {
  std::string_view place_prefix;
  std::string_view instrument;
} instruments_of_places[] = {
    {"mem_heap/", "memory/innodb/memory"},
    {"temptable", "memory/temptable/physical_ram"},
};

constexpr std::string_view region_instruments[] = {
#define MEMDIAG_REGION(kind, name, instrument, purpose) instrument,
#include "mysys/memdiag/pages/region_list.h"
#undef MEMDIAG_REGION
};

constexpr std::string_view perfschema_prefix = "memory/performance_schema/";

struct Event {
  /** The routes of its places, then the instrument's own route. */
  std::vector<const routes::Row *> routes{};
  const Counted *counted{nullptr};
};

bool is_pooled(const routes::Row *route) {
  return route->pool != Pool::general;
}

/** @return true: all blocks of the event come from routes with a pool. A place
without a pool uses its instrument's route. A place with a pool covers all that
the instrument counts, whatever the pool of the instrument itself. */
bool is_pooled(const Event &event) {
  const auto &routes = event.routes;
  if (routes.empty()) return false;
  if (is_pooled(routes.back())) return true;
  return routes.size() > 1 &&
         std::all_of(routes.begin(), routes.end() - 1,
                     [](const routes::Row *route) { return is_pooled(route); });
}

bool is_of_region(std::string_view name) {
  return std::find(std::begin(region_instruments), std::end(region_instruments),
                   name) != std::end(region_instruments);
}

void add_live(const Event &event, const Shares &shares, Row *row) {
  row->live_bytes = row->live_blocks = row->resident_bytes = 0;
  bool several = false;
  for (const routes::Row *route : event.routes) {
    if (!is_pooled(route)) continue;
    several |= row->pool && *row->pool != route->pool_name;
    row->pool = route->pool_name;
    row->live_bytes = sum(row->live_bytes, route->live_bytes);
    row->live_blocks = sum(row->live_blocks, route->live_blocks);
    const auto &share = shares[static_cast<size_t>(route->pool)];
    const Reading resident =
        share && route->live_bytes
            ? Reading{static_cast<uint64_t>(
                  *share * static_cast<double>(*route->live_bytes))}
            : std::nullopt;
    row->resident_bytes = sum(row->resident_bytes, resident);
  }
  if (several) row->pool.reset();
}

Row row_of(std::string_view name, const Event &event, const Shares &shares) {
  Row row{};
  row.event_name = name;
  if (event.counted != nullptr && event.counted->enabled) {
    row.counted_bytes = event.counted->bytes;
    row.counted_blocks = event.counted->blocks;
  }
  if (is_of_region(name)) {
    row.note = "region";
  } else if (name.starts_with(perfschema_prefix)) {
    row.note = "with performance_schema";
  } else if (!is_pooled(event)) {
    row.pool = spec_of(Pool::general).name;
    row.note = "not pooled";
  } else {
    add_live(event, shares, &row);
    if (std::any_of(event.routes.begin(), event.routes.end(),
                    [](const routes::Row *route) {
                      return is_pooled(route) && route->larger_than != 0;
                    })) {
      row.note = "large blocks only";
    } else if (!row.counted_bytes) {
      row.note = "not counted by Performance Schema";
    } else {
      row.note = "exact";
      if (row.live_bytes)
        row.overhead_bytes = static_cast<int64_t>(*row.live_bytes) -
                             static_cast<int64_t>(*row.counted_bytes);
    }
  }
  return row;
}

}  // namespace

std::string_view event_of(std::string_view route) {
  for (const auto &of : instruments_of_places)
    if (route.starts_with(of.place_prefix)) return of.instrument;
  return route;
}

Reading counted_bytes(std::span<const Counted> all, std::string_view name) {
  for (const Counted &counted : all)
    if (counted.name == name && counted.enabled) return counted.bytes;
  return std::nullopt;
}

Shares shares(std::span<const Pool_row, pool_count> pools,
              std::span<const ledger::Row> ledger) {
  Shares all{};
  for (const ledger::Row &row : ledger) {
    if (std::string_view{row.component} != "pool" ||
        std::string_view{row.state} != "live" || !row.resident_bytes)
      continue;
    const auto pool = find_pool(row.name);
    if (!pool) continue;
    const size_t i = static_cast<size_t>(*pool);
    const Reading &live = pools[i].live_bytes;
    if (!live) continue;
    // A block that came after the snapshot is resident: its owner wrote to it.
    all[i] = *live == 0
                 ? 1.0
                 : std::min(1.0, static_cast<double>(*row.resident_bytes) /
                                     static_cast<double>(*live));
  }
  return all;
}

std::vector<Row> rows(std::span<const routes::Row> routes,
                      std::span<const Counted> counted, const Shares &shares) {
  std::map<std::string_view, Event> events;
  for (const routes::Row &route : routes)
    events[event_of(route.name)].routes.push_back(&route);
  for (const Counted &of : counted) events[of.name].counted = &of;
  std::vector<Row> all;
  all.reserve(events.size());
  for (const auto &[name, event] : events)
    all.push_back(row_of(name, event, shares));
  return all;
}

}  // namespace memdiag::instruments
