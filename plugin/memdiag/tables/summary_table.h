/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SUMMARY.
*/

#ifndef MEMDIAG_SUMMARY_TABLE_H
#define MEMDIAG_SUMMARY_TABLE_H

#include "plugin/memdiag/advice/summary.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table summary_table = [] {
  using Row = summary::Row;
  return Table{
      "MEMDIAG_SUMMARY",
      "Start here: five questions about the server's memory, answered in at "
      "most 25 rows. The other tables have the figures in bytes.",
      0x0101,
      std::array{
          text_column<Row, &Row::question>(
              "QUESTION", summary::question_length,
              "holds: who holds the memory? grew: what grew within the last "
              "hour? get back: what can be freed? peak: when was it highest? "
              "wrong: what does MEMDIAG_ADVICE say?"),
          text_column<Row, &Row::what>(
              "WHAT", summary::what_length,
              "The holder: the process, a pool, a cache, a kind of buffer. "
              "old pages and files: pages that pools had taken before and that "
              "were written now, and those of mapped files. "
              "wrong: the holder or the subsystem of a finding, or nothing."),
          text_column<Row, &Row::size>(
              "SIZE", summary::size_length,
              "How much, in KiB, MiB or GiB. Empty where QUESTION is wrong."),
          text_column<Row, &Row::detail>(
              "DETAIL", summary::detail_length,
              "holds: the limit, the share of RSS, or the session with most of "
              "it. grew: in what time. get back: the cost, or the "
              "statement that must follow. peak: how long ago. A pool's "
              "growth and peak are estimated with the part of it that is "
              "resident now. wrong: severity and verdict."),
          text_column<Row, &Row::statement>(
              "STATEMENT", summary::statement_length,
              "The statement that lowers the holder, frees the memory or shows "
              "more; MEMDIAG_ADVICE has those that are too long for a screen. "
              "Fill in the parts in <>. KILL ends the session that has at "
              "least half of it. None is written to the binary log: each "
              "server needs its own.")}};
}();

static_assert(fingerprint(summary_table) == 3196101040u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SUMMARY_TABLE_H
