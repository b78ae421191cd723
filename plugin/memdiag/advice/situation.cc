#include "plugin/memdiag/advice/situation.h"

#include <algorithm>
#include <string_view>

namespace memdiag::advisor {
namespace {

/** The samples of the last quarter of an hour. After the clock was set back,
earlier samples have later times than the last one; they and all before them are
left out. */
std::span<const black_box::Sample> recent(
    std::span<const black_box::Sample> samples) {
  if (samples.empty()) return samples;
  const uint64_t last_us = samples.back().time_us;
  const auto is_of_another_time = [last_us](const black_box::Sample &sample) {
    return sample.time_us > last_us || sample.time_us + trend_us < last_us;
  };
  const auto before =
      std::find_if(samples.rbegin(), samples.rend(), is_of_another_time);
  return samples.last(static_cast<size_t>(before - samples.rbegin()));
}

/** Unknown if either figure is, and if the pool is larger than VmRSS: its
figure may be some samples old, and VmRSS does not count reserved huge pages. */
uint64_t without_buffer_pool(const black_box::Sample &sample) {
  // `unknown` is the largest number, so it is covered by this comparison.
  if (sample.rss_bytes == black_box::unknown ||
      sample.buffer_pool_bytes > sample.rss_bytes)
    return black_box::unknown;
  return sample.rss_bytes - sample.buffer_pool_bytes;
}

/** Rows of MEMORY tables lie in the pool of temporary tables and outlive their
statement until they are deleted. A statement's temporary table in that engine
that was leaked looks the same, and is not found. */
bool is_kept_on_purpose(const scopes::Row &survivor) {
  return survivor.route.starts_with("memory/memory/");
}

/** The server reads its value when it starts. A thread_stack below its default,
which is the largest of the defaults, ends statements. */
bool is_read_at_start(std::string_view variable) {
  return variable == "thread_stack" || variable == "max_digest_length" ||
         variable == "read_buffer_size";
}

/** Sums up buffers; a sum with an unknown buffer is unknown. */
void add_budget(std::span<const budget::Row> rows, Situation *situation) {
  Reading global = 0;
  Reading of_sessions = 0;
  for (const budget::Row &row : rows) {
    const std::string_view variable = row.variable;
    if (variable == "innodb_buffer_pool_size")
      situation->buffer_pool_bytes = row.value;
    if (row.value) situation->variables[variable] = *row.value;
    if (std::string_view{row.kind} != "buffer") continue;
    const bool of_session =
        row.times_of && std::string_view{*row.times_of}.find(
                            "max_connections") != std::string_view::npos;
    Reading &sum = of_session ? of_sessions : global;
    sum = sum && row.worst_case_bytes ? Reading{*sum + *row.worst_case_bytes}
                                      : std::nullopt;
    auto &largest = situation->largest_session_buffer;
    if (of_session && row.value && !is_zero(row.worst_case_bytes) &&
        !is_read_at_start(variable) &&
        (!largest || *row.value > largest->bytes))
      largest = {row.variable, *row.value};
    // Other rows are for multiples of it.
    if (of_session && std::string_view{*row.times_of} == "max_connections")
      situation->max_connections = row.times;
  }
  situation->global_buffers_bytes = global;
  if (of_sessions && situation->max_connections.value_or(0) != 0)
    situation->session_buffers_bytes =
        *of_sessions / *situation->max_connections;
}

/** The same as instruments::shares() has of the ledger. */
instruments::Shares resident_shares(const Situation &situation) {
  instruments::Shares shares{};
  for (size_t i = 0; i < pool_count; ++i)
    shares[i] = situation.pools[i].resident_part();
  return shares;
}

/** Performance Schema counts what is allocated. As much of an instrument is
taken to be resident as of its pool. */
void add_largest_session(const Server_facts &server, Situation *situation) {
  if (!server.largest_session || server.held_by_largest.empty()) return;
  uint64_t resident = 0;
  for (const instruments::Held &held : server.held_by_largest) {
    const Pool pool = routes::declared_pool(held.name);
    const double part =
        situation->pools[static_cast<size_t>(pool)].resident_part().value_or(1);
    const auto bytes =
        static_cast<uint64_t>(part * static_cast<double>(held.bytes));
    resident += bytes;
    const Holder *const holder = holder_of(held.name, pool);
    if (holder != nullptr)
      situation->held_by_largest.push_back({holder, bytes});
    if (pool == Pool::session && (holder == nullptr || !holder->of_expressions))
      situation->largest_in_session_pool += bytes;
  }
  uint64_t &bytes = situation->largest_session->bytes;
  bytes = std::min(bytes, resident);
}

/** Its instruments may be off. Its own cannot be. Sessions of some users may
not be counted, or what begins after a consumer was switched off. */
bool counts_sessions(const Server_facts &server) {
  if (server.sessions && server.counted_sessions &&
      2 * *server.counted_sessions < *server.sessions)
    return false;
  const auto &counted = server.counted;
  return std::any_of(counted.begin(), counted.end(),
                     [](const instruments::Counted &of) {
                       return of.enabled && of.name.starts_with("memory/sql/");
                     });
}

void add_holders(const Snapshot &snapshot, std::span<const routes::Row> routes,
                 const Server_facts &server, Situation *situation) {
  situation->sessions_are_counted = counts_sessions(server);
  situation->documents_are_counted =
      situation->sessions_are_counted &&
      instruments::counted_bytes(server.counted, "memory/sql/JSON").has_value();
  situation->locks_are_counted = server.locks_are_counted;
  std::optional<uint64_t> largest;
  if (server.largest_session) largest = server.largest_session->processlist_id;
  situation->holdings =
      holdings({snapshot.pools, resident_shares(*situation), routes,
                server.counted, server.dump_thread_bytes, server.trigger_bytes,
                server.temp_table_file_bytes, server.tables, largest,
                server.held_by_largest, server.beside_allocator_bytes,
                server.mapped_file_bytes, server.most_heaps});
  add_largest_session(server, situation);
}

}  // namespace

bool are_old(std::span<const black_box::Sample> samples, Reading now_us) {
  constexpr uint64_t minute_us = 60 * uint64_t{1000000};
  if (samples.size() < 2 || !now_us) return false;
  const uint64_t last_us = samples.back().time_us;
  const uint64_t before_us =
      std::min(samples[samples.size() - 2].time_us, last_us);
  return *now_us > last_us + 2 * (last_us - before_us) + minute_us;
}

void add_ledger(std::span<const ledger::Row> ledger, Server_facts *server) {
  for (const ledger::Row &row : ledger) {
    if (row.component == std::string_view{"region"} &&
        row.name == std::string_view{"temp_table_file"} && row.resident_bytes)
      server->temp_table_file_bytes =
          static_cast<uint64_t>(*row.resident_bytes);
    const std::string_view component = row.component;
    const auto resident = static_cast<uint64_t>(
        std::max<int64_t>(row.resident_bytes.value_or(0), 0));
    if (component == "anonymous" || component == "heap")
      server->beside_allocator_bytes += resident;
    if (component == "files") server->mapped_file_bytes += resident;
    if (component == "buffer_pool" && row.resident_bytes)
      server->buffer_pool_resident_bytes =
          server->buffer_pool_resident_bytes.value_or(0) + resident;
    const auto pool = find_pool(row.name);
    if (row.component != std::string_view{"pool"} || !pool ||
        !row.resident_bytes)
      continue;
    const auto i = static_cast<size_t>(*pool);
    const auto bytes = static_cast<uint64_t>(*row.resident_bytes);
    const std::string_view state = row.state;
    if (state == "dirty") server->resident_dirty_bytes[i] = bytes;
    if (state == "live") server->resident_live_bytes[i] = bytes;
    if (state == "fragmentation") server->resident_free_bytes[i] = bytes;
  }
}

Situation make_situation(const Snapshot &snapshot, const host::Figures &host,
                         std::span<const budget::Row> budget,
                         std::span<const black_box::Sample> samples,
                         std::span<const scopes::Row> survivors,
                         std::span<const routes::Row> routes,
                         const Server_facts &server) {
  Situation situation{};
  situation.up_seconds = server.up_seconds;
  situation.max_used_connections = server.max_used_connections;
  if (server.max_used_seconds)
    situation.max_used_seconds =
        lower(server.max_used_seconds, server.up_seconds);
  situation.largest_session = server.largest_session;
  situation.reader_processlist_id = server.reader_processlist_id;
  situation.idle_sessions = server.idle_sessions;
  situation.buffer_pool_asked_bytes = server.buffer_pool_asked_bytes;
  situation.buffer_pool_unit_bytes = server.buffer_pool_unit_bytes;
  situation.tmpdir_in_memory = server.tmpdir_in_memory;
  situation.ceiling = server.ceiling;
  situation.row_locks = server.row_locks;
  situation.kept_string_bytes = server.kept_string_bytes;
  situation.idle_string_bytes = server.idle_string_bytes;
  situation.idle_warnings = server.idle_warnings;
  situation.clients = server.sessions;
  situation.trigger_bytes = server.trigger_bytes;
  situation.table_keepers = server.table_keepers;
  situation.is_read_only = server.is_read_only;
  situation.lacks_functions = server.lacks_functions;
  if (server.tables.definitions != 0)
    situation.table_definitions = server.tables.definitions;
  for (const routes::Row &route : routes)
    if (route.name.starts_with("memory/sql/dd::"))
      situation.data_dictionary_bytes += route.live_bytes.value_or(0);
  situation.host = host;
  situation.background_threads = snapshot.allocator.background_thread_enabled;
  situation.preloaded = snapshot.allocator.preloaded;
  situation.allocator_huge_pages = snapshot.allocator.huge_pages;
  add_budget(budget, &situation);

  samples = recent(samples);
  if (are_old(samples, server.now_us)) samples = {};
  Reading buffer_pool = server.buffer_pool_resident_bytes;
  if (!buffer_pool && !samples.empty() &&
      samples.back().buffer_pool_bytes != black_box::unknown)
    buffer_pool = samples.back().buffer_pool_bytes;
  situation.other_resident_bytes = difference(host.resident_bytes, buffer_pool);
  situation.trend_without_buffer_pool = trend(samples, without_buffer_pool);
  for (size_t i = 0; i < pool_count; ++i) {
    Pool_situation &pool = situation.pools[i];
    const Pool_row &row = snapshot.pools[i];
    pool.live_bytes = row.live_bytes;
    pool.active_bytes = row.active_bytes;
    pool.dirty_bytes = row.dirty_bytes;
    pool.resident_live_bytes = server.resident_live_bytes[i];
    pool.resident_free_bytes = server.resident_free_bytes[i];
    if (const Reading resident = server.resident_dirty_bytes[i];
        resident && pool.dirty_bytes)
      pool.dirty_bytes = std::min(*pool.dirty_bytes, *resident);
    pool.trend = trend(samples, [i](const black_box::Sample &sample) {
      return sample.pools[i].live_bytes;
    });
    uint64_t most = 0;
    for (const scopes::Row &survivor : survivors) {
      if (survivor.pool_name != std::string_view{pool_specs[i].name} ||
          is_kept_on_purpose(survivor))
        continue;
      pool.survivors_bytes += survivor.bytes;
      if (survivor.bytes <= most) continue;
      most = survivor.bytes;
      pool.survivors_route = survivor.route;
    }
  }
  add_holders(snapshot, routes, server, &situation);
  return situation;
}

std::optional<Safe_limit_row> safe_limit_row(const limits::Figures &figures) {
  if (figures.safe_source.empty()) return std::nullopt;
  Safe_limit_row result{
      {"cgroup", "safe_limit", std::nullopt, {}, "bytes", figures.safe_source},
      ""};
  if (figures.safe_bytes)
    result.row.number = static_cast<double>(*figures.safe_bytes);
  else
    result.warning = "the safe limit of the control group is not known: " +
                     figures.safe_source +
                     ", memory.stat beside it, or the free pages of InnoDB's "
                     "buffer pool could not be read";
  return result;
}

}  // namespace memdiag::advisor
