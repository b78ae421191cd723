/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ADMISSIONS.
*/

#ifndef MEMDIAG_ADMISSIONS_TABLE_H
#define MEMDIAG_ADMISSIONS_TABLE_H

#include "plugin/memdiag/admission/admission_log.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table admissions_table = [] {
  using Row = admission::Row;
  return Table{
      "MEMDIAG_ADMISSIONS",
      "The last 1,000 statements that did not fit below the memory limit when "
      "they were about to run (memdiag_admission). Statements that fit at once "
      "have no row.",
      0x0102,
      std::array{
          moment_column<Row, &Row::time_us>("TIME", "When it was decided."),
          column<Row, &Row::processlist_id>("PROCESSLIST_ID", Unit::none,
                                            "The session."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64, "The statement's digest, as in MEMDIAG_DIGESTS."),
          text_column<Row, &Row::decision>(
              "DECISION", 16,
              "ran: it ran after a wait or a purge. refused: it waited for "
              "memdiag_admission_wait_ms and got an error. killed: KILL ended "
              "the wait. timed_out: max_execution_time did. would_wait: it "
              "ran, because memdiag_admission is WATCH."),
          column<Row, &Row::expected_bytes>(
              "EXPECTED_BYTES", Unit::bytes,
              "Memory that it was expected to take: PEAK_BYTES of the digest. "
              "While fewer than eight of its statements had ended: at least a "
              "share of ROOM_BYTES, 16 MiB at most."),
          column<Row, &Row::limit_bytes>(
              "LIMIT_BYTES", Unit::bytes,
              "The lowest limit of the control group, or the machine's memory. "
              "This and the other figures are of the moment when the statement "
              "began to wait."),
          column<Row, &Row::room_bytes>(
              "ROOM_BYTES", Unit::bytes,
              "Free below the limit. Page cache that the kernel drops at once "
              "is free."),
          column<Row, &Row::unused_bytes>(
              "UNUSED_BYTES", Unit::bytes,
              "Unused pages of the pools, which a purge gives back."),
          column<Row, &Row::reserved_bytes>(
              "RESERVED_BYTES", Unit::bytes,
              "Memory that the running statements were still expected to take. "
              "memdiag_admission_reserve is not included."),
          column<Row, &Row::waited_us>("WAITED_MICROSECONDS",
                                       Unit::microseconds,
                                       "How long the statement waited.")}};
}();

static_assert(fingerprint(admissions_table) == 1813749848u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ADMISSIONS_TABLE_H
