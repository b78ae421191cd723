/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LEDGER and MEMDIAG_LEDGER_EXACT.
*/

#ifndef MEMDIAG_LEDGER_TABLE_H
#define MEMDIAG_LEDGER_TABLE_H

#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

/** Rows of the exact form, which is a table of its own. */
struct Exact_ledger_row : ledger::Row {};

template <typename Row>
constexpr Table<Row, 6> make_ledger_table(const char *name,
                                          const char *summary) {
  return {
      name, summary, 0x0100,
      std::array{
          text_column<Row, &Row::component>(
              "COMPONENT", 32,
              "buffer_pool, pool (of the allocator), anonymous (other memory "
              "without a file), region (memory from the OS without the "
              "allocator), program, libraries, files, heap (of malloc() calls "
              "that bypass the allocator), unexplained."),
          text_column<Row, &Row::name>(
              "NAME", 64,
              "The pool as in MEMDIAG_POOLS, or the region as in "
              "MEMDIAG_REGIONS; otherwise empty."),
          text_column<Row, &Row::state>(
              "STATE", 64,
              "Of a pool: live, fragmentation (free parts of pages in use), "
              "dirty and muzzy (unused pages that were not released yet), "
              "metadata. Of the buffer pool: kinds of pages."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Physical memory. Each byte is in one row, and the sum is the "
              "process's VmRSS. Only the unexplained part can be negative: "
              "memory that was released during the count."),
          column<Row, &Row::percent>("PERCENT", Unit::percent,
                                     "Share of VmRSS, in percent."),
          column<Row, &Row::mapped_bytes>(
              "MAPPED_BYTES", Unit::bytes,
              "Address space of a region. In the row `never touched` of the "
              "buffer pool: the bytes by which its physical memory can still "
              "grow.")}};
}

inline constexpr Table ledger_table = make_ledger_table<ledger::Row>(
    "MEMDIAG_LEDGER",
    "Each resident byte of the process once, by its use. It is cheap enough to "
    "read every second: it is made from the last reading of every page, "
    "usually at most a minute old, and from counters since then. The last row "
    "is the part of VmRSS that these do not explain. If it is more than 1%, "
    "the server reads the pages again. No thread is stopped.");

inline constexpr Table ledger_exact_table = make_ledger_table<Exact_ledger_row>(
    "MEMDIAG_LEDGER_EXACT",
    "MEMDIAG_LEDGER, made from a reading of every page of the allocator at "
    "this moment. The reading takes some 10 ms for each 200 MB in small "
    "blocks.");

static_assert(fingerprint(ledger_table) == 3976390394u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LEDGER_TABLE_H
