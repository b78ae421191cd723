#include "mysys/memdiag/routes/routes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/pools/lists.h"
#include "mysys/memdiag/upstream/root_blocks.h"

namespace memdiag {
namespace {

/** See pools::may_be_refused. Callers that do not look, or lose what they had,
have a hook (patches/hooks/0058) or come by sql/memdiag/refused_blocks.cc. One
does not look and loses the value: a column of geometry takes the address 0
(Field_geom::store_internal()). Its callers look for the error before they use
the row. */
constexpr std::string_view whose_users_look[] = {
    "memory/sql/Filesort_buffer::sort_keys", "memory/sql/NET::buff",
    "memory/sql/READ_INFO", "memory/sql/String::value",
    "memory/sql/user_var_entry::value"};

using routes::max_routes;

struct Declared_route {
  std::string_view prefix;
  Pool pool;
  bool only_large;
};
constexpr Declared_route declared_routes[] = {
    {"", Pool::general, false},
#define MEMDIAG_PLACE(id, name, pool)
#define MEMDIAG_ROUTE(prefix, pool) {prefix, Pool::pool, false},
#define MEMDIAG_LARGE(prefix, pool) {prefix, Pool::pool, true},
#include "mysys/memdiag/routes/route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
};

struct Declared_place {
  const char *name;
  Pool pool;
  size_t larger_than;
};
constexpr Declared_place declared_places[] = {
#define MEMDIAG_PLACE(id, name, pool) {name, Pool::pool, 0},
#define MEMDIAG_LARGE_PLACE(id, name, pool, size) {name, Pool::pool, size},
#define MEMDIAG_ROUTE(prefix, pool)
#include "mysys/memdiag/routes/route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
};
static_assert(std::size(declared_places) == place_count);

/** The list has the places in the order of their enumeration. */
constexpr Place places_in_list[] = {
#define MEMDIAG_PLACE(id, name, pool) Place::id,
#define MEMDIAG_ROUTE(prefix, pool)
#include "mysys/memdiag/routes/route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
};
static_assert([] {
  for (size_t i = 0; i < place_count; ++i)
    if (static_cast<size_t>(places_in_list[i]) != i) return false;
  return true;
}());

/** Tags of places, as declared until they are overridden. */
constinit std::atomic<Packed_tag> place_tags[] = {
#define MEMDIAG_PLACE(id, name, pool) \
  pack_tag(static_cast<uint16_t>(Place::id), Pool::pool),
#define MEMDIAG_LARGE_PLACE(id, name, pool, size) \
  pack_tag(static_cast<uint16_t>(Place::id), Pool::pool) | only_large,
#define MEMDIAG_ROUTE(prefix, pool)
#include "mysys/memdiag/routes/route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
};

struct Instrument {
  std::string name;
  const Declared_route *declared;
  uint32_t key;
};

/** Keys of our own, for instruments that Performance Schema gave none because
it is off or full: counted down from the end of the table, while Performance
Schema counts up. It does not know them and ignores them. */
constexpr size_t max_own_keys = max_keys / 2;

/** A bit for each pool. Written under the registry's mutex. */
constinit std::atomic<uint32_t> disabled_pools{0};
static_assert(pool_count <= 32);

constexpr uint32_t bit_of(Pool pool) {
  return uint32_t{1} << static_cast<unsigned>(pool);
}

/** Instruments and overrides; a route is place_count + its index. */
struct Registry {
  std::mutex mutex;
  /** Names stay where they are when others come. */
  std::deque<Instrument> instruments;
  std::vector<std::pair<std::string, Pool>> overrides;
  /** The texts that `overrides` and `disabled_pools` were made from. */
  routes::Options applied{};
  std::string option_error;
};

/** Never destroyed: plugins register until the very end. */
Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

const Declared_route &declaration_of(std::string_view instrument) {
  const Declared_route *best = &declared_routes[0];
  for (const Declared_route &candidate : declared_routes)
    if (instrument.starts_with(candidate.prefix) &&
        candidate.prefix.size() >= best->prefix.size())
      best = &candidate;
  return *best;
}

/** The tag a route has in the table. Caller holds the registry's mutex. */
Packed_tag tag_for(const Registry &all, size_t route, std::string_view name,
                   Pool declared, bool only_large_blocks) {
  Pool pool = declared;
  Packed_tag flag = only_large_blocks ? only_large : 0;
  for (const auto &[prefix, other] : all.overrides) {
    if (!name.starts_with(prefix)) continue;
    pool = other;  // the last one counts
    flag = 0;
  }
  if (pool == Pool::general || routes::is_disabled(pool)) return 0;
  return pack_tag(static_cast<uint16_t>(route), pool) | flag;
}

Packed_tag tag_for(const Registry &all, size_t index) {
  const auto &[name, declared, key] = all.instruments[index];
  return tag_for(all, place_count + index, name, declared->pool,
                 declared->only_large);
}

Packed_tag tag_for(const Registry &all, Place place) {
  const size_t i = static_cast<size_t>(place);
  const auto &[name, pool, larger_than] = declared_places[i];
  return tag_for(all, i, name, pool, larger_than != 0);
}

void set_entry(uint32_t entry, Packed_tag tag) {
  __atomic_store_n(&memdiag_tags[entry], tag, __ATOMIC_RELAXED);
}

void set_tags(const Registry &all, size_t index) {
  const uint32_t key = all.instruments[index].key % max_keys;
  // Entry 0 is for blocks without a key.
  if (key != 0 && place_count + index < max_routes)
    set_entry(key, tag_for(all, index));
}

/** Before the command line has been read, blocks without a key are malloc()'s:
there are some that live for ever. */
void set_tags_without_key(const Registry &all) {
  set_entry(0, tag_for(all, Place::without_key));
  set_entry(max_keys, tag_for(all, Place::innodb_without_key));
}

/** true: a route may lead to the pool. The others are malloc() of threads. */
constexpr bool may_have_routes(Pool pool) {
  return pool == Pool::general || !uses_malloc(pool);
}

constexpr bool may_be_disabled(Pool pool) { return pool != Pool::general; }

std::string add_override(Registry *all, std::string_view entry) {
  const size_t equals = entry.rfind('=');
  if (equals == std::string_view::npos || equals == 0)
    return "memdiag_routes: '" + std::string(entry) +
           "' is not of the form route=pool";
  const std::optional<Pool> pool = find_pool(entry.substr(equals + 1));
  if (!pool)
    return "memdiag_routes: '" + std::string(entry.substr(equals + 1)) +
           "' is not a pool; name one of " + names_of_pools(may_have_routes);
  if (!may_have_routes(*pool))
    return std::string("memdiag_routes: '") + spec_of(*pool).name +
           "' is malloc() of some threads, and no route can lead to it; name "
           "one of " +
           names_of_pools(may_have_routes);
  all->overrides.emplace_back(entry.substr(0, equals), *pool);
  return "";
}

std::string disable(std::string_view name) {
  if (name == "all") {
    disabled_pools = ~uint32_t{0};
    return "";
  }
  const std::optional<Pool> pool = find_pool(name);
  if (!pool || !may_be_disabled(*pool))
    return "memdiag_disabled_pools: '" + std::string(name) +
           "' is not a pool that can be disabled; say all, or name some of " +
           names_of_pools(may_be_disabled);
  disabled_pools |= bit_of(*pool);
  return "";
}

/** See routes::apply_options(). Caller holds the registry's mutex. */
void take_over_options(Registry *all) {
  const routes::Options &now = routes::options;
  if (now.routes == all->applied.routes &&
      now.disabled_pools == all->applied.disabled_pools)
    return;
  all->applied = now;
  all->overrides.clear();
  disabled_pools = 0;
  const auto text = [](const char *option) {
    return option == nullptr ? std::string_view{} : std::string_view{option};
  };
  all->option_error = for_each_entry(
      text(now.routes),
      [all](std::string_view entry) { return add_override(all, entry); });
  if (all->option_error.empty())
    all->option_error =
        for_each_entry(text(now.disabled_pools),
                       [](std::string_view name) { return disable(name); });
  if (!all->option_error.empty()) {
    all->overrides.clear();
    disabled_pools = 0;
  }
  for (size_t i = 0; i < place_count; ++i)
    place_tags[i].store(tag_for(*all, static_cast<Place>(i)),
                        std::memory_order_relaxed);
  for (size_t i = 0; i < all->instruments.size(); ++i) set_tags(*all, i);
}

size_t route_count(const Registry &known) {
  return std::min(place_count + known.instruments.size(), max_routes);
}

const char *name_of_route(const Registry &known, size_t route) {
  return route < place_count
             ? declared_places[route].name
             : known.instruments[route - place_count].name.c_str();
}

/** Without its name, which needs memory. With the mutex held, a statement's
thread must not wait for that. */
routes::Row row_of(const Registry &known, size_t route,
                   const pools::Live &live) {
  const Packed_tag tag = route < place_count
                             ? tag_for(known, static_cast<Place>(route))
                             : tag_for(known, route - place_count);
  const Pool pool = pool_of(tag);
  const size_t limit =
      route < place_count ? declared_places[route].larger_than : large_block;
  const uint64_t larger_than = tag & only_large ? limit : 0;
  routes::Row row{{}, pool, spec_of(pool).name, larger_than, {}, {}};
  if (pool != Pool::general || live.blocks > 0) {
    row.live_bytes = live.bytes;
    row.live_blocks = live.blocks;
  }
  return row;
}

}  // namespace

namespace routes {

Packed_tag tag_of_place(Place place) {
  return place_tags[static_cast<size_t>(place)].load(std::memory_order_relaxed);
}

Pool declared_pool(std::string_view instrument) {
  return declaration_of(instrument).pool;
}

std::string_view name_of_key(uint32_t key) noexcept {
  Registry &known = registry();
  const std::lock_guard<std::mutex> guard(known.mutex);
  for (const Instrument &instrument : known.instruments)
    if (instrument.key == key && key != 0) return instrument.name;
  return {};
}

void free_of_place(Place place, void *block) noexcept {
  if (block == nullptr) return;
  const auto arena = mallctl::arena_of(block);
  const Pool pool =
      arena ? pools::owner_of_arena(arena.value()) : Pool::general;
  if (uses_malloc(pool))
    pools::free_general(pool_of(tag_of_place(place)), block);
  else
    free(pack_tag(static_cast<uint16_t>(place), pool), block, 0);
}

uint32_t note_instrument(const char *category, const char *name,
                         uint32_t key) noexcept {
  try {
    Registry &all = registry();
    const std::lock_guard<std::mutex> guard(all.mutex);
    take_over_options(&all);
    const std::string full = std::string("memory/") + category + "/" + name;
    size_t i = 0;
    // A plugin that comes again registers again.
    while (i < all.instruments.size() && all.instruments[i].name != full) ++i;
    if (i == all.instruments.size())
      all.instruments.push_back({full, &declaration_of(full), key});
    uint32_t &known = all.instruments[i].key;
    if (key != 0)
      known = key;
    else if (known == 0 && i < max_own_keys)
      known = max_keys - 1 - static_cast<uint32_t>(i);
    set_tags(all, i);
    if (full == root_blocks::limited_later)
      root_blocks::key_limited_later = known;
    if (place_count + i < max_routes) {
      const auto account = static_cast<uint16_t>(place_count + i);
      if (full == "memory/sql/Log_event") pools::account_of_events = account;
      pools::may_be_smaller[account] = full == "memory/mysys/IO_CACHE" ||
                                       full == "memory/sql/binlog_cache_mngr";
      pools::may_be_refused[account] =
          std::find(std::begin(whose_users_look), std::end(whose_users_look),
                    full) != std::end(whose_users_look);
    }
    // temptable::Memory throws then, and the statement ends.
    pools::may_be_refused[static_cast<size_t>(Place::temptable)] = true;
    // The command line has been read when engines begin.
    if (strcmp(category, "innodb") == 0) set_tags_without_key(all);
    return known;
  } catch (const std::bad_alloc &) {
    return key;  // Pool::general then
  }
}

std::vector<Row> all() {
  // Adding up takes long, and Performance Schema's memory waits for the mutex.
  const std::vector<pools::Live> live = pools::live_of_first(max_routes);
  std::vector<Row> rows;
  std::vector<const char *> names;
  rows.reserve(max_routes);
  names.reserve(max_routes);
  {
    Registry &known = registry();
    const std::lock_guard<std::mutex> guard(known.mutex);
    for (size_t i = 0; i < route_count(known); ++i) {
      rows.push_back(row_of(known, i, live[i]));
      names.push_back(name_of_route(known, i));
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) rows[i].name = names[i];
  return rows;
}

Options options{nullptr, nullptr};

bool is_disabled(Pool pool) {
  return (disabled_pools.load(std::memory_order_relaxed) & bit_of(pool)) != 0;
}

std::string apply_options() {
  Registry &known = registry();
  const std::lock_guard<std::mutex> guard(known.mutex);
  take_over_options(&known);
  set_tags_without_key(known);
  return known.option_error;
}

std::string unknown_in_options() {
  Registry &known = registry();
  const std::lock_guard<std::mutex> guard(known.mutex);
  const size_t count = place_count + known.instruments.size();
  std::string unknown;
  for (const auto &[prefix, pool] : known.overrides) {
    size_t i = 0;
    while (i < count &&
           !std::string_view(name_of_route(known, i)).starts_with(prefix))
      ++i;
    if (i == count) unknown += (unknown.empty() ? "" : ", ") + prefix;
  }
  return unknown;
}

void hold() noexcept { registry().mutex.lock(); }
void let_go() noexcept { registry().mutex.unlock(); }

}  // namespace routes
}  // namespace memdiag
