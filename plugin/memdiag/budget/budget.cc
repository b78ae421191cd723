#include "plugin/memdiag/budget/budget.h"

#include "plugin/memdiag/budget/budget_list.h"

namespace memdiag::budget {
namespace {

constexpr const char *max_connections = "max_connections";
constexpr const char *log_bin = "log_bin";
constexpr const char *page_size = "innodb_page_size";

Reading find(const std::map<std::string_view, uint64_t> &in,
             std::string_view name) {
  const auto found = in.find(name);
  return found == in.end() ? std::nullopt : Reading{found->second};
}

Reading bytes_each(const Declared &of, Reading value, const Facts &facts) {
  switch (of.each) {
    case Each::value:
      return value;
    case Each::pages_with_control_blocks: {
      const Reading page = find(facts.values, page_size);
      if (!value || !page || *page == 0) return std::nullopt;
      return sum(value,
                 product(*value / *page, facts.bytes_per_buffer_pool_page));
    }
    case Each::open_table:
      return facts.bytes_per_open_table;
    case Each::definition:
      return facts.bytes_per_definition;
    case Each::performance_schema:
      return facts.performance_schema_bytes;
  }
  return std::nullopt;
}

/** @param sessions  max_connections, or Max_used_connections */
Reading times(Times times, Reading value, Reading sessions,
              const Facts &facts) {
  switch (times) {
    case Times::once:
      return 1;
    case Times::sessions:
      return sessions;
    case Times::two_a_session:
      return product(2, sessions);
    case Times::sessions_that_log:
      return product(find(facts.values, log_bin), sessions);
    case Times::replication_channels:
      return facts.replication_channels;
    case Times::value:
      return value;
  }
  return std::nullopt;
}

void set_worst_seen(const Declared &of, const Facts &facts, Row *row) {
  if (of.instrument != nullptr) {
    row->worst_seen_bytes = find(facts.high_water_bytes, of.instrument);
    row->seen_by = of.instrument;
  } else if (of.pool != nullptr) {
    row->worst_seen_bytes = find(facts.pool_peak_bytes, of.pool);
    row->seen_by = std::string("pool ") + of.pool;
  } else if (of.seen_by_connections) {
    row->worst_seen_bytes =
        product(row->bytes_each,
                times(of.times, row->value, facts.max_used_connections, facts));
    row->seen_by = "Max_used_connections";
  }
  if (!row->worst_seen_bytes) row->seen_by.reset();
}

/** A value above the address space means that there is no limit. */
bool is_unlimited(const Declared &of, uint64_t value) {
  return value >= uint64_t{1} << 47 || (of.zero_is_unlimited && value == 0);
}

bool is_taken(Kind kind) {
  return kind == Kind::buffer || kind == Kind::growing;
}

/** The row of a variable.
@param complete  set to false if a needed fact is missing */
Row row_of(const Declared &of, const Facts &facts, bool *complete) {
  Row row{.variable = of.variable,
          .scope = of.of_sessions ? "both" : "global",
          .value = find(facts.values, of.variable),
          .unit = of.unit,
          .allocated_by = of.allocated_by,
          .allocated_when = of.when,
          .note = of.note};
  Kind kind = of.kind;
  if (is_taken(kind)) {
    row.bytes_each = bytes_each(of, row.value, facts);
    row.times =
        times(of.times, row.value, find(facts.values, max_connections), facts);
    row.times_of = name_of(of.times);
    if (!row.value || !row.times)
      *complete = false;
    else if (is_unlimited(of, *row.value))
      kind = Kind::unbounded;
    else
      row.worst_case_bytes = product(row.bytes_each, row.times);
  }
  row.kind = name_of(kind);
  if (of.part_of != nullptr) row.part_of = of.part_of;
  set_worst_seen(of, facts, &row);
  return row;
}

}  // namespace

std::vector<const char *> variables() {
  std::vector<const char *> names{max_connections, log_bin, page_size};
  for (const Declared &of : declared) names.push_back(of.variable);
  return names;
}

std::vector<const char *> instruments() {
  std::vector<const char *> names;
  for (const Declared &of : declared)
    if (of.instrument != nullptr) names.push_back(of.instrument);
  return names;
}

std::vector<Row> rows(const Facts &facts) {
  std::vector<Row> all;
  bool complete = true;
  Reading total = 0;
  for (const Declared &of : declared) {
    all.push_back(row_of(of, facts, &complete));
    if (const Reading worst = all.back().worst_case_bytes)
      total = sum(total, worst);
  }
  Row row{.variable = "TOTAL",
          .scope = "global",
          .kind = "total",
          .note =
              "The sum of all rows' WORST_CASE_BYTES. Add them up by KIND to "
              "tell memory that is taken at once from memory that grows with "
              "data. Memory that is unbounded, or could not be measured, is "
              "not included. NULL if a variable could not be read."};
  if (complete) row.worst_case_bytes = total;
  all.push_back(std::move(row));
  return all;
}

}  // namespace memdiag::budget
