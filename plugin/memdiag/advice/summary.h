/*
  The summary: five questions about the server's memory and their answers, in
  at most max_rows rows. The rows of MEMDIAG_SUMMARY.

    holds     the process, its largest holders, and each holder that has more
              than its usual share by the advisor's findings
    grew      the process, and what of it grew most within the last hour
    get back  unused pages and caches, with the statement that frees them
    peak      the highest resident bytes since the server started, and when
    wrong     the most severe findings of the advisor

  A pure function of facts: no server, no state, no threads. An unknown fact
  proves nothing and makes no row. Units: bytes, microseconds since the epoch.
*/

#ifndef MEMDIAG_SUMMARY_H
#define MEMDIAG_SUMMARY_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/advice/finding.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/ledger/ledger_rows.h"

namespace memdiag::summary {

constexpr size_t max_rows = 25;

/** Longest texts of a row. The mysql client's frame takes 16 more characters:
132 in all, one wide screen. */
constexpr uint32_t question_length = 8;
constexpr uint32_t what_length = 23;
constexpr uint32_t size_length = 10;
constexpr uint32_t detail_length = 28;
constexpr uint32_t statement_length = 47;

/** One row of MEMDIAG_SUMMARY. Empty texts: there is nothing to say. */
struct Row {
  const char *question;
  std::string what;
  std::string size;
  std::string detail;
  std::string statement;
};

/** A row of MEMDIAG_LEDGER with known bytes. */
struct Resident {
  std::string_view component;
  std::string_view name;
  std::string_view state;
  int64_t bytes;
};

/** Of a pool's live bytes. */
struct Peak {
  Reading bytes;
  std::optional<Timestamp> time;
  /** Now. */
  Reading live_bytes{};
};

struct Facts {
  uint64_t now_us;
  /** VmRSS. The parts below may be fewer: what could not be read is missing. */
  Reading rss_bytes;
  /** VmHWM, which is never below a peak that a sample saw. */
  Reading rss_peak_bytes;
  std::vector<Resident> resident;
  std::span<const advisor::Holding> holdings;
  /** As in Situation. */
  uint64_t data_dictionary_bytes;
  uint64_t table_keepers;
  bool lacks_functions;
  /** The next smaller buffer pool has so much less. Empty: not known. */
  Reading buffer_pool_step_bytes;
  std::array<Peak, pool_count> pool_peaks;
  /** The last hour of this run, oldest first. */
  std::span<const black_box::Sample> samples;
  std::span<const advisor::Finding> findings;
  /** The lowest limit of the control group, or the machine's memory. */
  Reading limit_bytes;
};

/** @param situation, findings, ledger, samples  valid as long as the facts
@throws std::bad_alloc */
Facts make_facts(uint64_t now_us, const Snapshot &snapshot,
                 std::span<const ledger::Row> ledger,
                 std::span<const black_box::Sample> samples,
                 const advisor::Situation &situation,
                 std::span<const advisor::Finding> findings);

/** @throws std::bad_alloc */
std::vector<Row> rows(const Facts &facts);

}  // namespace memdiag::summary

#endif  // MEMDIAG_SUMMARY_H
