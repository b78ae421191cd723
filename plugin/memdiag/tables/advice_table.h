/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ADVICE.
*/

#ifndef MEMDIAG_ADVICE_TABLE_H
#define MEMDIAG_ADVICE_TABLE_H

#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table advice_table = [] {
  using Row = advisor::Finding;
  return Table{
      "MEMDIAG_ADVICE",
      "One row for each finding about the server's memory, the most severe "
      "first. No rows: nothing was found. A figure that could not be read "
      "proves nothing.",
      0x0101,
      std::array{
          text_column<Row, &Row::severity_name>("SEVERITY", 16,
                                                "critical, warning or note."),
          text_column<Row, &Row::subsystem>(
              "SUBSYSTEM", 64,
              "A pool, or server, allocator, machine, cgroup. session: the "
              "pool of that name, or the memory of one session in all pools."),
          text_column<Row, &Row::verdict>(
              "VERDICT", 32,
              "leak: memory that outlived its lifetime. growth: memory in use "
              "increases steadily; it may still be freed at the end of its "
              "lifetime. fragmentation: free parts of pages that also hold "
              "live blocks. cache: memory that is kept, such as a cache that "
              "grows, unused pages, or what sessions hold. misconfiguration: a "
              "setting of the server or of its environment. host: the machine "
              "or the control group runs short."),
          text_column<Row, &Row::evidence>("EVIDENCE", 1024,
                                           "The figures that prove it."),
          text_column<Row, &Row::remedy>(
              "REMEDY", 1024,
              "What remedies it or shows more, in words with statements among "
              "them."),
          text_column<Row, &Row::rule>(
              "RULE", 64,
              "The name of the rule that made the row. It stays the same in "
              "later versions, for programs to compare."),
          text_column<Row, &Row::holder>(
              "HOLDER", 64,
              "The holder of the memory, such as user variables. NULL: the "
              "finding is about none of the known ones."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "The resident bytes that a holder, a session or idle sessions "
              "have, that outlived their lifetime, or that are unused pages; "
              "never more than the process has. Rules that begin with "
              "ceiling_: what the buffer pool has, or has too much; what the "
              "file system of tmpdir has; what the server needs at rest. NULL: "
              "not known, or the finding is of another kind."),
          column<Row, &Row::allocated_bytes>(
              "ALLOCATED_BYTES", Unit::bytes,
              "What is allocated, where that is more than BYTES: the rest was "
              "never written. NULL: the same, or not known."),
          text_column<Row, &Row::statement>(
              "STATEMENT", 2048,
              "A statement that remedies it and runs as it stands. If it has "
              "one column with the name RUN, its rows are the statements to "
              "run. NULL: no statement does, see REMEDY.")}};
}();

static_assert(fingerprint(advice_table) == 3652341652u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ADVICE_TABLE_H
