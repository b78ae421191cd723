/*
  Prints docs/reference.md from the specs of tables, status variables, function
  and pools; a program of its own, without the server:

    g++ -std=c++20 -I mysys -I plugin/memdiag -I storage/innobase \
      plugin/memdiag/tables/reference_main.cc

    memdiag_reference                 prints the page
    memdiag_reference --check <file>  fails when the file is not that page

  Exit codes: 0, or 1 (different or unreadable file), 2 (wrong arguments).
*/

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "plugin/memdiag/history/black_box.h"
#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "plugin/memdiag/tables/status_variables.h"
#include "plugin/memdiag/tables/tables.h"

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
         "Global, numbers only. In one statement all of them are of one "
         "moment, at most a tenth of a second old. One that could not be read "
         "is shown empty.\n\n"
         "| variable | unit | meaning |\n"
         "|---|---|---|\n";
  for (const Status_variable &variable : status_variables)
    out << "| " << variable.name << " | " << unit_name(variable.unit) << " | "
        << variable.comment << " |\n";
  out << '\n';
}

void print_function(std::ostream &out) {
  out << "## " << purge_function_name << "(pool)\n\n"
      << "Gives the unused pages of a pool back to the operating system and "
         "returns what that did, as a JSON object. `pool` is the name of a "
         "pool, in any case of letters, or '"
      << all_pools_name << "'. Needs the privilege " << admin_privilege_name
      << ": `GRANT " << admin_privilege_name
      << " ON *.* TO ...`. A data directory that another server made has "
         "nobody who has it "
         "yet; root may grant it to itself.\n\n"
         "It runs once for each row that it is evaluated for: use it as "
         "`SELECT "
      << purge_function_name
      << "('fts_query')`. Tables read in the same statement show the state "
         "before it or after it, whichever was read first. An unknown name, "
         "NULL, a wrong number of arguments and a missing privilege are "
         "errors. With --skip-grant-tables the server knows no loadable "
         "functions, "
         "and not this one either.\n\n"
         "| member | unit | meaning |\n"
         "|---|---|---|\n"
         "| pool | | The pool's name, or `"
      << all_pools_name << "`. |\n";
  for (const Receipt_field &field : receipt_fields)
    out << "| " << field.name << " | " << unit_name(field.unit) << " | "
        << field.comment << " |\n";
  out << "\nA size that could not be read is null, with a warning.\n\n";
}

void print_system_variables(std::ostream &out) {
  out << "## System variables\n\n"
         "Set at start-up only. A wrong entry ends the start with an error "
         "that "
         "names it.\n\n"
         "| variable | meaning |\n"
         "|---|---|\n"
         "| memdiag_routes | A list of `route=pool`: these routes, or all "
         "whose "
         "name begins so, take their blocks from that pool. Of several entries "
         "for a route the last counts. Example: "
         "`--memdiag-routes=memory/sql/NET=general,mem_heap/row=statement`. |\n"
         "| memdiag_disabled_pools | A list of pools, or `all`: their routes "
         "take their blocks from malloc(), that is, from plain jemalloc; "
         "without `connection`, so do its threads. |\n"
         "| memdiag_history_samples | How many samples MEMDIAG_HISTORY and "
         "MEMDIAG_LAST_RUN keep, each: 3600 unless set, up to 86400. The file "
         "memdiag_history.bin in the data directory takes "
      << black_box::file_bytes_per_sample
      << " bytes for each. "
         "It may be removed at any time, and must not be cut short while the "
         "server runs, which would end it. |\n\n"
         "Set at any time, and with SET PERSIST. A list gives values to the "
         "pools that it names, or to `all` that can have one; the others have "
         "what they are declared with, so that an empty list is the default. A "
         "wrong list is an error and changes nothing. Example: `SET GLOBAL "
         "memdiag_dirty_limit = 'session=64M, ddl=0'`.\n\n"
         "| variable | meaning |\n"
         "|---|---|\n"
         "| memdiag_quiet_ms | How many milliseconds no block must have come "
         "or gone before a pool is purged; 0: left to decay alone. |\n"
         "| memdiag_dirty_decay_ms, memdiag_muzzy_decay_ms | jemalloc's decay "
         "times of a pool's arenas in milliseconds; -1: never. |\n"
         "| memdiag_dirty_limit | Dirty bytes, with K, M or G, above which a "
         "pool is purged in the midst of a burst; 0: no limit. |\n"
         "| memdiag_scope_survivors | Boolean, OFF: whether MEMDIAG_SURVIVORS "
         "is counted. While it is, each block of a pool costs some "
         "nanoseconds more, and each session's thread 26 KB. |\n"
         "| memdiag_sessions | Boolean, OFF: whether MEMDIAG_SESSIONS and "
         "MEMDIAG_DIGESTS are counted. While they are, each block of a pool "
         "costs some nanoseconds more, and the end of each statement a short "
         "mutex. |\n"
         "| memdiag_history_interval_ms | How many milliseconds pass between "
         "two samples: 1000 unless set; 0: none are taken. |\n"
         "| memdiag_pressure_watcher | OFF unless set. ON: while memory is "
         "short, unused pages of pools are given back (MEMDIAG_PURGES, REASON "
         "`pressure`), then full-text caches are written and unused tables "
         "closed, until it is not. WATCH: the error log says what would be "
         "done, once a minute. Its lines are notes: log_error_verbosity=3. |\n"
         "| memdiag_pressure_limit | Memory is short when so many percent are "
         "used of the control group's lowest limit, or of the machine's memory "
         "where there is none below that: 90 unless set; 0: not heeded. |\n"
         "| memdiag_pressure_stall_percent | Memory is short when some task "
         "waited for it for so many percent of the last second: 10 unless set; "
         "0: not heeded. |\n"
         "| memdiag_pressure_buffer_pool_min | How small the watcher may make "
         "the buffer pool, in bytes: 0 unless set, which leaves it alone. An "
         "eighth goes in a step, after all else; the error log has the "
         "statement that gives it back, which nobody does by itself. |\n\n";
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

std::string reference() {
  std::ostringstream out;
  out << "<!-- Made by plugin/memdiag/tables/reference_main.cc from the table specs. "
         "Do not edit: make it anew. -->\n"
         "# Reference\n\n"
         "Reading the tables needs the privilege PROCESS. Each statement sees "
         "one snapshot of the allocator, however many of the tables it reads. "
         "Statements that a session sends right after each other, each for "
         "other tables, share it, for a fifth of a second: who reads one table "
         "after the other gets figures that agree. To read a table again, or "
         "to do anything else in between, is to look anew. A figure that could "
         "not be read is NULL, with a warning that names "
         "the allocator's control or the file.\n\n";
#define PRINT(name) print_table<name##_table>(out);
  MEMDIAG_TABLES(PRINT)
#undef PRINT
  print_status_variables(out);
  print_function(out);
  print_system_variables(out);
  print_pools(out);
  return out.str();
}

int check(const char *path) {
  std::ifstream file(path);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open()) {
    std::cerr << path << ": cannot be read\n";
    return 1;
  }
  if (found == reference()) return 0;
  std::cerr << path << " does not describe this build: make it anew with "
            << "memdiag_reference > " << path << '\n';
  return 1;
}

}  // namespace
}  // namespace memdiag

int main(int argc, char **argv) {
  if (argc == 1) {
    std::cout << memdiag::reference();
    return std::cout.flush().good() ? 0 : 1;
  }
  if (argc == 3 && strcmp(argv[1], "--check") == 0)
    return memdiag::check(argv[2]);
  fprintf(stderr, "usage: %s [--check <file>]\n", argv[0]);
  return 2;
}
