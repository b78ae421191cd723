#include "plugin/memdiag/advice/holdings.h"

#include <algorithm>
#include <array>

namespace memdiag::advisor {
namespace {

/** Bytes of one holder in one pool. */
struct Amount {
  uint64_t bytes{0};
  uint64_t allocated_bytes{0};

  void add(uint64_t resident, uint64_t allocated) {
    bytes += resident;
    allocated_bytes += allocated;
  }
  void take(uint64_t resident, uint64_t allocated) {
    bytes -= std::min(bytes, resident);
    allocated_bytes -= std::min(allocated_bytes, allocated);
  }
};

size_t index_of(const Holder &holder) {
  return static_cast<size_t>(&holder - holders.data());
}

const Holder *named(std::string_view instrument) {
  const Holder *found = nullptr;
  size_t longest = 0;
  for (const Holder &holder : holders)
    for (const std::string_view part : holder.instruments)
      if (part.size() > longest && instrument.starts_with(part)) {
        found = &holder;
        longest = part.size();
      }
  return found;
}

const Holder *owner_of(Pool pool) {
  for (const Holder &holder : holders)
    if (std::find(holder.pools.begin(), holder.pools.end(), pool) !=
        holder.pools.end())
      return &holder;
  return nullptr;
}

/** The part of what lives under a name that is temporary tables'. SQL's
definition of a table and each open instance of it are about as large as
InnoDB's definition, which is what is measured. */
double temporary_part(const Tables &tables, std::string_view name) {
  if (tables.temporary_heap_bytes == 0) return 0;
  const auto temporary = static_cast<double>(tables.temporary_heap_bytes);
  auto others = static_cast<double>(tables.heap_bytes);
  const bool is_definition = name.starts_with("memory/sql/TABLE_SHARE") ||
                             name.starts_with("memory/sql/dd::") ||
                             name == "mem_heap/dictionary";
  if (!is_definition)
    others *= static_cast<double>(tables.open) /
              static_cast<double>(std::max<uint64_t>(tables.definitions, 1));
  return temporary / (temporary + others);
}

class Holdings {
 public:
  explicit Holdings(const Holding_figures &figures) : m_figures(figures) {}

  std::vector<Holding> all() {
    add_pools();
    add_routes();
    add_what_malloc_serves();
    divide("strings", "binary log dump threads", m_figures.dump_thread_bytes);
    divide("stored programs", "triggers", m_figures.trigger_bytes);
    divide_tables();
    add_uncounted();
    std::vector<Holding> result;
    for (const Holder &holder : holders) {
      const Sums &sums = m_sums[index_of(holder)];
      uint64_t bytes = 0;
      uint64_t allocated = 0;
      std::optional<Pool> pool;
      uint64_t most = 0;
      for (size_t i = 0; i < pool_count; ++i) {
        bytes += sums[i].bytes;
        allocated += sums[i].allocated_bytes;
        if (sums[i].allocated_bytes <= most) continue;
        most = sums[i].allocated_bytes;
        pool = static_cast<Pool>(i);
      }
      if (allocated != 0)
        result.push_back({&holder, bytes, allocated, pool,
                          owner(holder, bytes, allocated), counted_of(holder)});
    }
    add_mappings("mappings of plugins", m_figures.beside_allocator_bytes,
                 &result);
    add_mappings("mapped files", m_figures.mapped_file_bytes, &result);
    return result;
  }

 private:
  using Sums = std::array<Amount, pool_count>;

  uint64_t resident(size_t pool, uint64_t live_bytes) const {
    const auto &share = m_figures.resident_shares[pool];
    if (!share) return live_bytes;
    return static_cast<uint64_t>(*share * static_cast<double>(live_bytes));
  }

  Reading counted_of(const Holder &holder) const {
    Reading sum;
    for (const instruments::Counted &counted : m_figures.counted)
      if (named(counted.name) == &holder)
        sum = sum.value_or(0) + (counted.enabled ? counted.bytes : 0);
    // divide() makes this another holder's.
    const uint64_t others =
        &holder == find_holder("strings") ? m_figures.dump_thread_bytes
        : &holder == find_holder("stored programs") ? m_figures.trigger_bytes
                                                    : 0;
    if (sum) *sum -= std::min(*sum, others);
    return sum;
  }

  void add_pools() {
    for (size_t i = 0; i < pool_count; ++i)
      if (const Holder *const holder = owner_of(static_cast<Pool>(i))) {
        const uint64_t live = m_figures.pools[i].live_bytes.value_or(0);
        m_sums[index_of(*holder)][i].add(resident(i, live), live);
      }
  }

  void add_routes() {
    for (const routes::Row &route : m_figures.routes) {
      const uint64_t live = route.live_bytes.value_or(0);
      if (live == 0) continue;
      const Holder *const holder = named(route.name);
      const Holder *const owner = owner_of(route.pool);
      if (holder == nullptr || holder == owner) continue;
      const auto pool = static_cast<size_t>(route.pool);
      const uint64_t bytes = resident(pool, live);
      m_sums[index_of(*holder)][pool].add(bytes, live);
      if (owner != nullptr) m_sums[index_of(*owner)][pool].take(bytes, live);
    }
  }

  void add_what_malloc_serves() {
    constexpr auto general = static_cast<size_t>(Pool::general);
    for (const routes::Row &route : m_figures.routes) {
      if (route.pool != Pool::general || route.live_bytes) continue;
      const Holder *const holder = named(route.name);
      if (holder == nullptr || is_of_a_place(route.name)) continue;
      for (const instruments::Counted &counted : m_figures.counted) {
        if (!counted.enabled || counted.name != route.name) continue;
        const uint64_t bytes =
            counted.name == "memory/temptable/physical_disk" &&
                    m_figures.temp_table_file_bytes
                ? std::min(*m_figures.temp_table_file_bytes, counted.bytes)
                : resident(general, counted.bytes);
        m_sums[index_of(*holder)][general].add(bytes, counted.bytes);
        take_from_connections(route.name, *holder, counted.bytes);
      }
    }
  }

  /** malloc()'s blocks of threads that serve clients are in the pool that JSON
  documents are in. Which of the counted ones are there is not known: all that
  can be, so that none counts for two holders. */
  void take_from_connections(std::string_view name, const Holder &holder,
                             uint64_t bytes) {
    constexpr auto connection = static_cast<size_t>(Pool::connection);
    const Holder *const owner = owner_of(Pool::connection);
    // Others that malloc() serves are made at the start, or are files.
    if (owner == nullptr || owner == &holder ||
        !name.starts_with("memory/sql/"))
      return;
    m_sums[index_of(*owner)][connection].take(resident(connection, bytes),
                                              bytes);
  }

  /** Where documents are not counted, as without Performance Schema, what
  malloc() serves in sessions may be anybody's. */
  void add_uncounted() {
    constexpr auto general = static_cast<size_t>(Pool::general);
    constexpr auto connection = static_cast<size_t>(Pool::connection);
    const Holder *const holder = find_holder("uncounted memory");
    const uint64_t live = m_figures.pools[general].live_bytes.value_or(0);
    const uint64_t rest = live - std::min(live, counted_of_malloc());
    m_sums[index_of(*holder)][general].add(resident(general, rest), rest);
    const Holder *const documents = owner_of(Pool::connection);
    if (documents == nullptr) return;
    const uint64_t json =
        instruments::counted_bytes(m_figures.counted, "memory/sql/JSON")
            .value_or(0);
    // Strings and containers of documents are counted in part.
    const uint64_t all =
        m_sums[index_of(*documents)][connection].allocated_bytes;
    if (all / 2 >= json) move(*documents, *holder, connection, all - json);
  }

  /** Options may lead a route elsewhere than its declaration. Performance
  Schema's own instruments are no routes. */
  Pool pool_of(std::string_view instrument) const {
    const std::string_view name =
        instrument.starts_with("memory/performance_schema/")
            ? "performance_schema"
            : instrument;
    const auto route = std::find_if(
        m_figures.routes.begin(), m_figures.routes.end(),
        [name](const routes::Row &one) { return one.name == name; });
    return route != m_figures.routes.end() ? route->pool
                                           : routes::declared_pool(instrument);
  }

  /** At most: some of it lies in the pool of connections. */
  uint64_t counted_of_malloc() const {
    uint64_t bytes = 0;
    for (const instruments::Counted &counted : m_figures.counted)
      if (pool_of(counted.name) == Pool::general &&
          counted.name != "memory/temptable/physical_disk")
        bytes += counted.bytes;
    return bytes;
  }

  static void add_mappings(std::string_view name, uint64_t bytes,
                           std::vector<Holding> *result) {
    if (bytes != 0) result->push_back({find_holder(name), bytes, bytes});
  }

  /** A place with a pool has all that its instrument counts. */
  bool is_of_a_place(std::string_view instrument) const {
    return std::any_of(m_figures.routes.begin(), m_figures.routes.end(),
                       [instrument](const routes::Row &route) {
                         return route.live_bytes && route.name != instrument &&
                                instruments::event_of(route.name) == instrument;
                       });
  }

  /** Some of what one holder has in its pools is another one's. */
  void divide(std::string_view from, std::string_view to, uint64_t most) {
    const Holder *const one = find_holder(from);
    const Holder *const other = find_holder(to);
    if (one == nullptr || other == nullptr) return;
    for (size_t i = 0; i < pool_count; ++i) most -= move(*one, *other, i, most);
  }

  /** @return what was there of it */
  uint64_t move(const Holder &from, const Holder &to, size_t pool,
                uint64_t most) {
    Amount &amount = m_sums[index_of(from)][pool];
    const uint64_t part = std::min(most, amount.allocated_bytes);
    const uint64_t bytes = std::min(amount.bytes, resident(pool, part));
    amount.take(bytes, part);
    m_sums[index_of(to)][pool].add(bytes, part);
    return part;
  }

  void divide_tables() {
    const Holder *const open = find_holder("open tables");
    const Holder *const definitions = find_holder("dictionary cache");
    const Holder *const temporary = find_holder("user temporary tables");
    for (const routes::Row &route : m_figures.routes) {
      const Holder *const from = holder_of(route.name, route.pool);
      const bool is_of_tables =
          from == open ||
          (from == definitions && (route.name.starts_with("memory/sql/dd::") ||
                                   route.name == "mem_heap/dictionary"));
      if (!is_of_tables) continue;
      const double part = temporary_part(m_figures.tables, route.name);
      move(*from, *temporary, static_cast<size_t>(route.pool),
           static_cast<uint64_t>(
               part * static_cast<double>(route.live_bytes.value_or(0))));
    }
  }

  /** Rows with large values of the session with most of InnoDB's heaps. What it
  has of these, less what others than rows have, is its rows at least. */
  std::optional<Session> owner_of_rows(uint64_t bytes,
                                       uint64_t allocated) const {
    const auto &session = m_figures.most_heaps;
    if (!session) return std::nullopt;
    uint64_t others = 0;
    for (const routes::Row &route : m_figures.routes)
      if (instruments::event_of(route.name) == innodb_heaps &&
          named(route.name) != named("mem_heap/row"))
        others += route.live_bytes.value_or(0);
    // Performance Schema counts what is allocated.
    if (session->bytes - std::min(session->bytes, others) < allocated / 2)
      return std::nullopt;
    return Session{.processlist_id = session->processlist_id,
                   .bytes = std::min(session->bytes, bytes),
                   .is_idle = session->is_idle};
  }

  /** The largest session is the cause if it has most of it. */
  std::optional<Session> owner(const Holder &holder, uint64_t bytes,
                               uint64_t allocated) const {
    if (&holder == named("mem_heap/row"))
      return owner_of_rows(bytes, allocated);
    if (!holder.of_sessions() || !m_figures.largest_processlist_id)
      return std::nullopt;
    uint64_t held = 0;
    for (const instruments::Held &each : m_figures.held_by_largest) {
      const Pool pool = routes::declared_pool(each.name);
      if (holder_of(each.name, pool) == &holder)
        held += resident(static_cast<size_t>(pool), each.bytes);
    }
    if (held == 0 || held < bytes / 2) return std::nullopt;
    return Session{*m_figures.largest_processlist_id, std::min(held, bytes)};
  }

  const Holding_figures &m_figures;
  std::array<Sums, holder_count> m_sums{};
};

}  // namespace

const Holder *holder_of(std::string_view instrument, Pool pool) {
  const Holder *const holder = named(instrument);
  return holder != nullptr ? holder : owner_of(pool);
}

std::vector<Holding> holdings(const Holding_figures &figures) {
  return Holdings(figures).all();
}

}  // namespace memdiag::advisor
