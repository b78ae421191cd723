/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LEDGER and MEMDIAG_LEDGER_EXACT.
*/

#ifndef MEMDIAG_LEDGER_TABLE_H
#define MEMDIAG_LEDGER_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/ledger/ledger_rows.h"

namespace memdiag {

/** Rows of the exact form, which is a table of its own. */
struct Exact_ledger_row : ledger::Row {};

template <typename Row>
constexpr Table<Row, 6> make_ledger_table(const char *name,
                                          const char *summary) {
  return {name, summary, 0x0100,
          std::array{
              text_column<Row, &Row::component>(
                  "COMPONENT", 32,
                  "buffer_pool, pool (of the allocator), anonymous, region "
                  "(memory of the system's without the allocator), program, "
                  "libraries, files, heap, unexplained."),
              text_column<Row, &Row::name>(
                  "NAME", 64,
                  "Of pools as in MEMDIAG_POOLS, of regions as in "
                  "MEMDIAG_REGIONS; otherwise empty."),
              text_column<Row, &Row::state>(
                  "STATE", 64,
                  "Of a pool: live, fragmentation (free parts of pages in "
                  "use), dirty and muzzy (unused pages that were not yet given "
                  "back), metadata."),
              column<Row, &Row::resident_bytes>(
                  "RESIDENT_BYTES", Unit::bytes,
                  "In physical memory, each byte in one row: their sum is the "
                  "process's VmRSS. Only what is unexplained can be negative: "
                  "memory that was given back while it was counted."),
              column<Row, &Row::percent>("PERCENT", Unit::percent,
                                         "Of VmRSS, in hundredths."),
              column<Row, &Row::mapped_bytes>(
                  "MAPPED_BYTES", Unit::bytes,
                  "Address space of a region; of never touched pages of the "
                  "buffer pool, what it may still grow by.")}};
}

inline constexpr Table ledger_table = make_ledger_table<ledger::Row>(
    "MEMDIAG_LEDGER",
    "Every resident byte of the process, once, by what it is for. Cheap enough "
    "to be read each second: it is made from the last look at each page (a "
    "minute ago, or longer where that takes long) and what was counted since. "
    "What of VmRSS that does not explain is the last row; where it is more "
    "than a hundredth, there is another look. Nothing is stopped meanwhile.");

inline constexpr Table ledger_exact_table = make_ledger_table<Exact_ledger_row>(
    "MEMDIAG_LEDGER_EXACT",
    "The same by a look at each of the allocator's pages, which takes the "
    "reader some 10 ms for 200 MB in small blocks.");

static_assert(fingerprint(ledger_table) == 3976390394u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LEDGER_TABLE_H
