/*
  The tables that judge: the summary, the advice, and the facts beside them.
*/

#ifndef MEMDIAG_ADVICE_TABLES_H
#define MEMDIAG_ADVICE_TABLES_H

#include <array>

#include "plugin/memdiag/advice/finding.h"
#include "plugin/memdiag/advice/summary.h"
#include "plugin/memdiag/budget/budget.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table summary_table = [] {
  using Row = summary::Row;
  return Table{
      "MEMDIAG_SUMMARY",
      "Start here: five questions about the server's memory, answered in at "
      "most 25 rows. The other tables have the figures in bytes.",
      0x0101, 3196101040u,
      std::array{
          text_column<Row, &Row::question>(
              "QUESTION", summary::question_length,
              "holds: who holds the memory? grew: what grew within the last "
              "hour? get back: what can be freed? peak: when was it highest? "
              "wrong: what does MEMDIAG_ADVICE say?"),
          text_column<Row, &Row::what>(
              "WHAT", summary::what_length,
              "The holder: the process, a pool, a cache, a kind of buffer. "
              "mapped files: pages of files, the program's among them, and of "
              "shared memory. other, under grew: all else, such as unused "
              "pages, gaps within pages in use, pages that were taken before "
              "and written now, stacks of threads, a row log of DDL, or what a "
              "plugin maps by itself. "
              "wrong: the holder or the subsystem of a finding, or nothing."),
          text_column<Row, &Row::size>(
              "SIZE", summary::size_length,
              "How much, in KiB, MiB or GiB. Empty where QUESTION is wrong."),
          text_column<Row, &Row::detail>(
              "DETAIL", summary::detail_length,
              "holds: the limit, the share of RSS, or the session with most of "
              "it. grew: in what time. get back: the cost, or what "
              "gives it back. peak: how long ago. A pool's "
              "growth and peak are estimated with the part of it that is "
              "resident now. wrong: severity and verdict."),
          text_column<Row, &Row::statement>(
              "STATEMENT", summary::statement_length,
              "The statement that lowers the holder, frees the memory or shows "
              "more; MEMDIAG_ADVICE has those that are too long for a screen. "
              "Fill in the parts in <>. None is written to the binary log: "
              "each server needs its own.")}};
}();

inline constexpr Table advice_table = [] {
  using Row = advisor::Finding;
  return Table{
      "MEMDIAG_ADVICE",
      "One row for each finding about the server's memory, the most severe "
      "first. No rows: nothing was found. A figure that could not be read "
      "proves nothing.",
      0x0101, 3652341652u,
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

inline constexpr Table budget_table = [] {
  using Row = budget::Row;
  return Table{
      "MEMDIAG_BUDGET",
      "One row for each system variable that determines memory, and their "
      "TOTAL. The worst case is what the configuration allows: max_connections "
      "sessions at once, each of which uses each of its buffers once, to its "
      "full size. It does not include larger values that sessions set for "
      "themselves, or statements that join or sort more than once.",
      0x0100, 1706112295u,
      std::array{
          text_column<Row, &Row::variable>("VARIABLE", 64,
                                           "The system variable, or TOTAL."),
          text_column<Row, &Row::scope>(
              "SCOPE", 16, "global. both: sessions can have their own values."),
          column<Row, &Row::value>("VALUE", Unit::none,
                                   "The global value; ON is 1. NULL, with a "
                                   "warning: it could not be read."),
          text_column<Row, &Row::unit>("UNIT", 16, "Unit of VALUE."),
          text_column<Row, &Row::kind>(
              "KIND", 16,
              "buffer: allocated at once, at full size. growing: up to this "
              "size, as data need it. part: included in the row PART_OF. "
              "limit: bounds others and allocates nothing. unbounded: no "
              "variable bounds it, or its value means no limit. unused: has no "
              "effect in this version. total."),
          text_column<Row, &Row::allocated_by>(
              "ALLOCATED_BY", 128,
              "The part of the server that allocates the memory."),
          text_column<Row, &Row::allocated_when>("ALLOCATED_WHEN", 64,
                                                 "When it does."),
          column<Row, &Row::bytes_each>(
              "BYTES_EACH", Unit::bytes,
              "Bytes of one: the value, or a measured size."),
          column<Row, &Row::times>("TIMES", Unit::count,
                                   "How many there may be at once."),
          text_column<Row, &Row::times_of>("TIMES_OF", 64,
                                           "Where TIMES comes from."),
          column<Row, &Row::worst_case_bytes>("WORST_CASE_BYTES", Unit::bytes,
                                              "BYTES_EACH times TIMES."),
          column<Row, &Row::worst_seen_bytes>(
              "WORST_SEEN_BYTES", Unit::bytes,
              "Most that was allocated at once since the server started, as "
              "far as it is known."),
          text_column<Row, &Row::seen_by>(
              "SEEN_BY", 128,
              "The source: an instrument of Performance Schema, which adds up "
              "the threads' peaks; a pool, which holds other things too; or "
              "Max_used_connections times BYTES_EACH."),
          text_column<Row, &Row::part_of>(
              "PART_OF", 64, "The variable whose row includes it."),
          text_column<Row, &Row::note>("NOTE", 512,
                                       "Remarks on the figures, and on memory "
                                       "that they do not include.")}};
}();

inline constexpr Table host_table = [] {
  using Row = host::Row;
  return Table{
      "MEMDIAG_HOST",
      "One row for each figure of the machine, the kernel's settings and the "
      "control group that determines how much memory the server has. A feature "
      "that this machine lacks has no row: pressure stall information, a "
      "control group, swap accounting, several NUMA nodes.",
      0x0100, 1545526197u,
      std::array{
          text_column<Row, &Row::subject>(
              "SUBJECT", 16,
              "memory, process, cgroup, pressure, kernel, huge_pages, oom, "
              "numa, device."),
          text_column<Row, &Row::name>(
              "NAME", 64,
              "The figure, by the kernel's name. Some are computed. "
              "effective_limit of cgroup is the lowest limit of the group and "
              "those above it, and effective_usage the use of the group that "
              "has it. effective_room is the least that is free below one of "
              "these limits, not counting page cache that the kernel takes "
              "back, and room_limit is that limit. safe_limit is how low "
              "the limit of the group of "
              "effective_limit may be set now without a kill "
              "(docs/container-limits.md). pool.NAME of huge_pages is that "
              "pool's memory in huge pages, at most a minute old where reading "
              "it takes less than half a second (Linux 6.7 and later)."),
          column<Row, &Row::number>(
              "NUMBER", Unit::none,
              "The figure, in UNIT. NULL: it is a word, the limit is off, or "
              "it could not be read."),
          text_column<Row, &Row::value>(
              "VALUE", 512,
              "The figure if it is a word; of several choices the one in "
              "force. max: the limit is off."),
          text_column<Row, &Row::unit>("UNIT", 16,
                                       "Unit of NUMBER. Empty: none."),
          text_column<Row, &Row::source>(
              "SOURCE", 512,
              "The file or system variable that it was read from.")}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_ADVICE_TABLES_H
