#include "plugin/memdiag/server/bridge/budget_facts.h"

#include <mysql/components/my_service.h>
#include <mysql/components/services/mysql_system_variable.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <mutex>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/pools/pools.h"
#include "sql/conn_handler/connection_handler_manager.h"
#include "sql/mysqld.h"
#include "sql/rpl_mi.h"
#include "sql/rpl_msr.h"
#include "sql/sql_base.h"
#include "sql/table_cache.h"

/** mysqld.cc defines it, and no header declares it: the start of the server, or
the last FLUSH STATUS. */
extern time_t flush_status_time;

namespace memdiag::budget {
namespace {

using Variables = my_service<SERVICE_TYPE(mysql_system_variable_reader)>;

/** The global value of a variable; ON is 1. */
Reading value_of(const Variables &variables, const char *name) {
  char text[64];
  void *to = text;
  size_t length = sizeof text - 1;
  if (fault::at(fault::Point::variables) || !variables.is_valid() ||
      variables->get(nullptr, "GLOBAL", "mysql_server", name, &to, &length))
    return std::nullopt;
  const std::string_view value{text, length};
  if (value == "ON") return 1;
  if (value == "OFF") return 0;
  uint64_t number;
  const auto [end, error] = std::from_chars(text, text + length, number);
  if (error != std::errc{} || end != text + length) return std::nullopt;
  return number;
}

/** Bytes that live under some routes; empty where they are not counted. */
template <typename... Names>
Reading live_bytes(std::span<const routes::Row> routes, Names... names) {
  Reading bytes = 0;
  for (const char *name : {names...}) {
    const auto route = std::find_if(routes.begin(), routes.end(),
                                    [name](const routes::Row &candidate) {
                                      return candidate.name == name;
                                    });
    if (route == routes.end() || !route->live_bytes) return std::nullopt;
    *bytes += *route->live_bytes;
  }
  return bytes;
}

Reading mean(Reading bytes, Reading count) {
  if (!bytes || !count || *count == 0) return std::nullopt;
  return *bytes / *count;
}

innodb::Component component_of(std::span<const innodb::Component> components,
                               std::string_view name) {
  for (const innodb::Component &component : components)
    if (component.name == name) return component;
  return {};
}

/** Bytes that InnoDB takes for each item of a component. */
Reading mean_of_component(std::span<const innodb::Component> components,
                          std::string_view name) {
  const innodb::Component component = component_of(components, name);
  return mean(component.bytes, component.items);
}

/** Channels that are configured. */
Reading replication_channels() {
  if (channel_map.tryrdlock() != 0) return std::nullopt;
  uint64_t channels = 0;
  for (auto it = channel_map.begin(); it != channel_map.end(); ++it)
    if (it->second != nullptr && it->second->host[0] != '\0') ++channels;
  channel_map.unlock();
  return channels;
}

}  // namespace

Facts take_facts(std::span<const routes::Row> routes,
                 std::span<const innodb::Component> components,
                 std::vector<const char *> *unreadable) {
  Facts facts;
  const Variables reader("mysql_system_variable_reader", srv_registry);
  for (const char *name : variables()) {
    if (const Reading value = value_of(reader, name))
      facts.values[name] = *value;
    else
      unreadable->push_back(name);
  }
  for (size_t i = 0; i < pool_count; ++i) {
    const auto counters = pools::counters(static_cast<Pool>(i));
    if (counters.peak_time_us != 0)
      facts.pool_peak_bytes[pool_specs[i].name] = counters.peak_bytes;
  }
  facts.max_used_connections = max_used_connections();
  facts.replication_channels = replication_channels();
  if (!facts.replication_channels)
    unreadable->push_back("(replication channels)");

  facts.bytes_per_buffer_pool_page =
      mean_of_component(components, "buffer_pool_control_blocks");
  // Temporary tables have memory of both names, and are in neither cache.
  const uint64_t temporary = tables(components).temporary;
  facts.bytes_per_open_table =
      mean(live_bytes(routes, "memory/sql/TABLE", "mem_heap/row0mysql"),
           table_cache_manager.cached_tables() + temporary);
  const Reading share =
      mean(live_bytes(routes, "memory/sql/TABLE_SHARE::mem_root"),
           cached_table_definitions() + temporary);
  const Reading dictionary =
      mean_of_component(components, "dictionary_objects");
  if (share && dictionary) facts.bytes_per_definition = *share + *dictionary;
  facts.performance_schema_bytes = live_bytes(routes, "performance_schema");
  return facts;
}

advisor::Tables tables(std::span<const innodb::Component> components) {
  const innodb::Component all = component_of(components, "dictionary_objects");
  const innodb::Component temporary =
      component_of(components, "temporary_tables");
  static std::mutex mutex;
  static advisor::Tables last;
  const std::lock_guard<std::mutex> guard(mutex);
  // Sessions that end with many temporary tables hold the dictionary for long.
  if (temporary.busy) return last;
  advisor::Tables result;
  result.temporary = temporary.items.value_or(0);
  result.temporary_heap_bytes = temporary.bytes.value_or(0);
  const auto rest = [](const Reading &of, uint64_t part) {
    return of.value_or(0) - std::min(of.value_or(0), part);
  };
  result.definitions = rest(all.items, result.temporary);
  result.heap_bytes = rest(all.bytes, result.temporary_heap_bytes);
  result.open = table_cache_manager.cached_tables();
  return last = result;
}

uint64_t max_used_connections() {
  return Connection_handler_manager::max_used_connections;
}

uint64_t max_used_connections_seconds() {
  const time_t now = time(nullptr);
  return now > flush_status_time
             ? static_cast<uint64_t>(now - flush_status_time)
             : 0;
}

}  // namespace memdiag::budget
