/*
  The audit of memory variables: the memory that each variable makes the server
  take, how many times, and the sum. The rows of MEMDIAG_BUDGET.

  The worst case is that of the present configuration: max_connections sessions
  at once, each of which uses every one of its buffers once, at its full size,
  with the global value of each variable. This will not happen, but the server
  does not prevent it. Two things can exceed it: a session may set larger values
  for itself, and a statement that joins or sorts more than once takes a buffer
  each time.

  A pure function of facts (server/bridge/budget_facts.h). Errors: a row without
  a needed fact is empty there, never 0. Units: bytes, or those of `unit`.
*/

#ifndef MEMDIAG_BUDGET_H
#define MEMDIAG_BUDGET_H

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/memdiag/base/reading.h"

namespace memdiag::budget {

/** One row of MEMDIAG_BUDGET. */
struct Row {
  const char *variable;
  const char *scope{""};
  std::optional<uint64_t> value{};
  const char *unit{"bytes"};
  const char *kind{""};
  const char *allocated_by{""};
  const char *allocated_when{""};
  std::optional<uint64_t> bytes_each{};
  std::optional<uint64_t> times{};
  std::optional<const char *> times_of{};
  std::optional<uint64_t> worst_case_bytes{};
  std::optional<uint64_t> worst_seen_bytes{};
  std::optional<std::string> seen_by{};
  std::optional<const char *> part_of{};
  const char *note{""};
};

struct Facts {
  /** Global values of variables by name; ON is 1. */
  std::map<std::string_view, uint64_t> values;
  /** By memory instrument, as far as Performance Schema counts them. */
  std::map<std::string_view, uint64_t> high_water_bytes;
  /** By pool, if the pool was used. */
  std::map<std::string_view, uint64_t> pool_peak_bytes;
  std::optional<uint64_t> max_used_connections;
  std::optional<uint64_t> replication_channels;
  /** Measured means; empty: there is nothing to measure. */
  std::optional<uint64_t> bytes_per_buffer_pool_page;
  std::optional<uint64_t> bytes_per_open_table;
  std::optional<uint64_t> bytes_per_definition;
  std::optional<uint64_t> performance_schema_bytes;
};

/** Variables whose values are needed; some of them have no row. */
std::vector<const char *> variables();

/** Memory instruments whose high-water marks are needed. */
std::vector<const char *> instruments();

/** A row for each memory variable, and their sum: TOTAL. */
std::vector<Row> rows(const Facts &facts);

}  // namespace memdiag::budget

#endif  // MEMDIAG_BUDGET_H
