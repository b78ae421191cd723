/*
  Prints docs/reference.md from the specs of tables, status variables, system
  variables, function and pools. A program of its own, without the server:

    memdiag_reference                 prints the page
    memdiag_reference --check <file>  fails when the file is not that page
    memdiag_reference --holders       prints the client's list of holders
    memdiag_reference --check-holders <file>
                                      fails when the file is not that list
    memdiag_reference --ceiling       prints the client's numbers of the ceiling
    memdiag_reference --check-ceiling <file>
                                      fails when the file has not those numbers

  Exit codes: 0, or 1 (different or unreadable file), 2 (wrong arguments).
*/

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "mysys/memdiag/ceiling/levels.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/tables/meter_list.h"
#include "plugin/memdiag/tables/profile_formats.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "plugin/memdiag/tables/status_variables.h"
#include "plugin/memdiag/tables/tables.h"
#include "plugin/memdiag/tables/variable_list.h"
#include "storage/innobase/memdiag/balloon.h"

namespace memdiag {
namespace {

template <typename Row>
std::string type_name(const Column<Row> &column) {
  switch (column.type) {
    case Sql_type::unsigned_bigint:
      return "BIGINT UNSIGNED";
    case Sql_type::bigint:
      return "BIGINT";
    case Sql_type::double_precision:
      return "DOUBLE";
    case Sql_type::yes_no:
      return "VARCHAR(3): YES, NO";
    case Sql_type::varchar:
      return "VARCHAR(" + std::to_string(column.length) + ")";
    case Sql_type::timestamp:
      return "TIMESTAMP(6)";
  }
  return "";
}

template <const auto &table>
void print_table(std::ostream &out) {
  out << "## INFORMATION_SCHEMA." << table.name << "\n\n"
      << table.summary << "\n\n"
      << "| column | type | unit | null | meaning |\n"
      << "|---|---|---|---|---|\n";
  for (const auto &column : table.columns)
    out << "| " << column.name << " | " << type_name(column) << " | "
        << unit_name(column.unit) << " | " << (column.nullable ? "yes" : "no")
        << " | " << column.comment << " |\n";
  out << '\n';
}

void print_status_variables(std::ostream &out) {
  out << "## Status variables\n\n"
         "Global, numbers only. The figures of the allocator and the pools are "
         "of one moment for all variables of one statement, normally at most "
         "a tenth of a second ago. While another thread takes a snapshot, "
         "they are of the last one, of whatever age, instead of waiting; "
         "reading MEMDIAG_SIZE_CLASSES takes the longest. Those of the ceiling "
         "and of the profiler are read one by one with it, and are as old; "
         "Memdiag_safe_limit may be some seconds older. The sampler takes a "
         "snapshot every memdiag_history_interval_ms, or every ten seconds "
         "while the server rests. A figure that could not be read is empty."
         "\n\n"
         "| variable | unit | meaning |\n"
         "|---|---|---|\n";
  for (const Status_variable &variable : status_variables)
    out << "| " << variable.name << " | " << unit_name(variable.unit) << " | "
        << variable.comment << " |\n";
  out << '\n';
}

void print_meters(std::ostream &out) {
  constexpr const char *kinds[] = {"counter", "up-down counter", "gauge"};
  out << "## Meter " << meters::meter_name
      << "\n\n"
         "Metrics of OpenTelemetry, which component_telemetry exports "
         "(docs/monitoring.md). No metric has a series for each session or "
         "statement. A figure that could not be read is no measurement.\n\n"
         "| metric | unit | kind | attributes | meaning |\n"
         "|---|---|---|---|---|\n";
  for (const meters::Metric &metric : meters::metrics)
    out << "| " << metric.name << " | " << metric.unit << " | "
        << kinds[static_cast<size_t>(metric.kind)] << " | " << metric.attributes
        << " | " << metric.description << " |\n";
  out << '\n';
}

void print_purge_function(std::ostream &out) {
  out << "## " << purge_function_name
      << "(pool)\n\n"
         "Releases the unused pages of a pool to the OS and returns a receipt, "
         "a JSON object. `pool` is the name of a pool in any letter case, or '"
      << all_pools_name << "'. Example: `SELECT " << purge_function_name
      << "('fts_query')`. The function needs the privilege RELOAD, as FLUSH "
         "does.\n\n"
         "The function purges once for each row that it is evaluated for. "
         "Tables read in the same statement show the state before it or after "
         "it, depending on which is evaluated first. Errors: an unknown name, "
         "NULL, a wrong number of arguments, a missing privilege. With "
         "--skip-grant-tables the server has no loadable functions, and not "
         "this one either.\n\n"
         "| member | unit | meaning |\n"
         "|---|---|---|\n"
         "| pool | | The pool's name, or `"
      << all_pools_name << "`. |\n";
  for (const Receipt_field &field : receipt_fields)
    out << "| " << field.name << " | " << unit_name(field.unit) << " | "
        << field.comment << " |\n";
  out << "\nA size that could not be read is null, with a warning.\n\n";
}

void print_profile_function(std::ostream &out) {
  out << "## " << profile_function_name
      << "(format [, earlier])\n\n"
         "Returns the heap profile as text, or NULL while memdiag_profile is "
         "OFF. It needs the privilege PROCESS. Example: `mysql -BNe \"SELECT "
      << profile_function_name
      << "('folded')\" --raw > profile.folded`.\n\n"
         "With an earlier result of "
      << profile_function_name
      << "('folded') as the second argument, it returns the difference. Stacks "
         "are compared by the names of their functions, so that the earlier "
         "profile may be of another run or server. The error of a difference "
         "assumes that both were taken at the same "
         "memdiag_profile_sample_bytes.\n\n"
         "| format | result | difference |\n"
         "|---|---|---|\n";
  for (const Profile_format &format : profile_formats)
    out << "| " << format.name << " | " << format.comment << " | "
        << format.difference_comment << " |\n";
  out << '\n';
}

std::string type_of(const System_variable &variable) {
  switch (variable.type) {
    case System_variable::Type::list:
      return "list";
    case System_variable::Type::boolean:
      return "boolean";
    case System_variable::Type::number:
    case System_variable::Type::bytes:
      return std::to_string(variable.min) + " to " +
             std::to_string(variable.max) +
             (variable.type == System_variable::Type::bytes ? " bytes" : "");
    case System_variable::Type::profile_mode:
      return "OFF, ON, RECORD";
    case System_variable::Type::memory_target:
      return "OFF, WATCH, AUTO, or bytes";
  }
  return "";
}

std::string default_of(const System_variable &variable) {
  switch (variable.type) {
    case System_variable::Type::list:
      return "empty";
    case System_variable::Type::boolean:
      return variable.default_value != 0 ? "ON" : "OFF";
    case System_variable::Type::number:
    case System_variable::Type::bytes:
      return std::to_string(variable.default_value);
    case System_variable::Type::profile_mode:
      return profile_modes[variable.default_value];
    case System_variable::Type::memory_target:
      return "AUTO";
  }
  return "";
}

void print_system_variables(std::ostream &out,
                            System_variable::Changed changed) {
  out << "| variable | values | default | meaning |\n"
         "|---|---|---|---|\n";
  for (const System_variable &variable : system_variables)
    if (variable.changed == changed)
      out << "| " << variable.name << " | " << type_of(variable) << " | "
          << default_of(variable) << " | " << variable.comment << ". |\n";
  out << '\n';
}

void print_system_variables(std::ostream &out) {
  out << "## System variables\n\n"
         "All are global. These are set when the server starts, by option or "
         "option file. A wrong entry ends the start with an error that names "
         "it. A route that matches nothing is a warning in the error log, "
         "because a plugin may register it later.\n\n";
  print_system_variables(out, System_variable::Changed::at_start);
  out << "memdiag_history.bin in the data directory takes "
      << black_box::file_bytes_per_sample
      << " bytes for each of memdiag_history_samples. You may delete the file "
         "at any time: the samples of this run are then in memory only. A file "
         "that is truncated or overwritten while the server runs is written "
         "anew with the next sample.\n\n"
         "These are set at any time, with SET PERSIST as well. A list sets the "
         "pools that it names, or `all` pools that can have the value; the "
         "other pools have their defaults, which the empty list restores. A "
         "wrong list is an error and changes nothing. A number out of range "
         "becomes the nearest one in it, with a warning. Example: `SET GLOBAL "
         "memdiag_dirty_limit = 'session=64M, ddl=0'`.\n\n";
  print_system_variables(out, System_variable::Changed::any_time);
}

void print_pools(std::ostream &out) {
  out << "## Pools\n\n"
         "| pool | lifetime | purged when quiet for | purpose |\n"
         "|---|---|---|---|\n";
  for (const Pool_spec &spec : pool_specs) {
    out << "| " << spec.name << " | " << spec.lifetime << " | ";
    if (spec.quiet_ms == 0)
      out << "left to decay";
    else
      out << spec.quiet_ms << " ms";
    out << " | " << spec.purpose << " |\n";
  }
}

void print_rows_of_ledger(std::ostream &out) {
  out << "\n## Rows of the ledger\n\n"
         "Each pool has the rows of the first one here.\n\n"
         "| COMPONENT | NAME | STATE |\n"
         "|---|---|---|\n";
  ledger::Figures figures{};
  figures.regions[static_cast<size_t>(Region_kind::buffer_pool)] = 0;
  figures.buffer_pool = ledger::Buffer_pool_pages{};
  const std::string_view first_pool = pool_specs[0].name;
  for (const ledger::Row &row :
       ledger::rows(figures, ledger::Precision::cheap)) {
    if (row.component != std::string_view{"pool"} || row.name == first_pool)
      out << "| " << row.component << " | " << row.name << " | " << row.state
          << " |\n";
  }
}

void print_queries(std::ostream &out) {
  out << "## Queries\n\n"
         "Growth of each pool within the last hour:\n\n"
         "```sql\n"
         "SELECT POOL, MAX(TIME) AS until,\n"
         "       SUM(IF(number = 1, LIVE_BYTES, 0)) AS bytes,\n"
         "       SUM(IF(first = 1, IF(number = 1, 0.0, -1.0), 1.0) * "
         "LIVE_BYTES) AS growth\n"
         "  FROM (SELECT POOL, TIME, LIVE_BYTES,\n"
         "               ROW_NUMBER() OVER (PARTITION BY POOL ORDER BY TIME "
         "DESC)"
         " AS number,\n"
         "               ROW_NUMBER() OVER (PARTITION BY POOL ORDER BY TIME)"
         " AS first\n"
         "          FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY_POOLS\n"
         "         WHERE RUN = 0 AND TIME > NOW() - INTERVAL 1 HOUR) AS "
         "samples\n"
         " WHERE number = 1 OR first = 1\n"
         " GROUP BY POOL ORDER BY growth DESC;\n"
         "```\n\n"
         "The highest figures since the server started:\n\n"
         "```sql\n"
         "SELECT POOL, FORMAT_BYTES(PEAK_BYTES), PEAK_TIME\n"
         "  FROM INFORMATION_SCHEMA.MEMDIAG_POOLS\n"
         " WHERE PEAK_TIME IS NOT NULL ORDER BY PEAK_BYTES DESC;\n"
         "```\n\n";
}

std::string reference() {
  std::ostringstream out;
  out << "<!-- Made by plugin/memdiag/reference/reference_main.cc from the "
         "table specs. Do not edit: make it anew. -->\n"
         "# Reference\n\n"
         "Start with `SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_SUMMARY`.\n\n"
         "The tables need the privilege PROCESS. A statement sees one snapshot "
         "of the allocator, however many tables it reads. Statements that a "
         "session sends one after the other within 200 ms, each for other "
         "tables, share a snapshot, so that their figures agree. Reading the "
         "same table again, or running any other statement in between, takes a "
         "fresh one; only FLUSH STATUS or a reset of the connection, which set "
         "the session's Questions to 0, can hide that there was one, but no "
         "memdiag_purge(). So does reading MEMDIAG_SIZE_CLASSES or "
         "MEMDIAG_PINNED after tables that need no size classes: join them "
         "where the figures must agree. A figure that could not be read is "
         "NULL, with a warning that names its source. KILL QUERY and "
         "MAX_EXECUTION_TIME end a read.\n\n"
         "A copy keeps figures: `CREATE TABLE ... AS SELECT * FROM "
         "INFORMATION_SCHEMA.MEMDIAG_HISTORY`. Each TIMESTAMP is nullable, so "
         "that it works in the default sql_mode. INFORMATION_SCHEMA.COLUMNS "
         "shows TIMESTAMP(6) as timestamp, and DOUBLE as double(22,0), as it "
         "does for tables of other plugins.\n\n"
         "A text that is longer than its column is cut, without a warning. A "
         "byte that is no UTF-8, and a character beyond U+FFFF, is shown as "
         "`?`.\n\n"
         "# Everyday tables\n\n";
#define PRINT(name) print_table<name##_table>(out);
  MEMDIAG_EVERYDAY_TABLES(PRINT)
  print_queries(out);
  out << "# Tables of the allocator's internals\n\n";
  MEMDIAG_INTERNAL_TABLES(PRINT)
#undef PRINT
  out << "# Variables, functions, pools\n\n";
  print_status_variables(out);
  print_meters(out);
  print_purge_function(out);
  print_profile_function(out);
  print_system_variables(out);
  print_pools(out);
  print_rows_of_ledger(out);
  return out.str();
}

/** The ceiling's numbers, read off its functions: each is a part of the limit,
and no less than `least_bytes`. The client tries that on the examples. */
std::string ceiling_json() {
  constexpr uint64_t large = uint64_t{1} << 50;
  const ceiling::Marks least = ceiling::marks_of_limit(0, 0);
  const ceiling::Marks most = ceiling::marks_of_limit(large, 0);
  std::ostringstream out;
  const auto add = [&out](const char *name, int64_t least_bytes,
                          int64_t bytes_of_large) {
    out << "  \"" << name << "\": {\"least_bytes\": " << least_bytes
        << ", \"part\": " << static_cast<int64_t>(large) / bytes_of_large
        << "},\n";
  };
  out << "{\n";
  add("margin", -least.target_bytes,
      static_cast<int64_t>(large) - most.target_bytes);
  add("plenty", least.plenty_bytes, most.plenty_bytes);
  add("reserve", least.reserve_bytes, most.reserve_bytes);
  out << "  \"floor_percent\": " << balloon::floor_percent
      << ",\n  \"examples\": [";
  const char *separator = "\n";
  for (const uint64_t mib : {200, 512, 1000, 1024, 1200, 2000, 100000}) {
    const ceiling::Marks marks = ceiling::marks_of_limit(mib << 20, 0);
    out << separator << "    {\"limit\": " << (mib << 20)
        << ", \"target\": " << marks.target_bytes
        << ", \"plenty\": " << marks.plenty_bytes
        << ", \"reserve\": " << marks.reserve_bytes << '}';
    separator = ",\n";
  }
  out << "\n  ]\n}\n";
  return out.str();
}

/** @param arguments  those that make the file anew */
int check(const char *path, const std::string &expected,
          const char *arguments) {
  std::ifstream file(path);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open()) {
    std::cerr << path << ": cannot be read\n";
    return 1;
  }
  if (found == expected) return 0;
  std::cerr << path << " does not describe this build: make it anew with "
            << "memdiag_reference" << arguments << " > " << path << '\n';
  return 1;
}

int print(const std::string &text) {
  std::cout << text;
  return std::cout.flush().good() ? 0 : 1;
}

}  // namespace
}  // namespace memdiag

int main(int argc, char **argv) {
  const auto is = [&](int count, const char *option) {
    return argc == count && strcmp(argv[1], option) == 0;
  };
  if (argc == 1) return memdiag::print(memdiag::reference());
  if (is(2, "--holders"))
    return memdiag::print(memdiag::advisor::holders_json());
  if (is(3, "--check"))
    return memdiag::check(argv[2], memdiag::reference(), "");
  if (is(3, "--check-holders"))
    return memdiag::check(argv[2], memdiag::advisor::holders_json(),
                          " --holders");
  if (is(2, "--ceiling")) return memdiag::print(memdiag::ceiling_json());
  if (is(3, "--check-ceiling"))
    return memdiag::check(argv[2], memdiag::ceiling_json(), " --ceiling");
  fprintf(stderr,
          "usage: %s [--holders | --ceiling | "
          "--check[-holders|-ceiling] <file>]\n",
          argv[0]);
  return 2;
}
