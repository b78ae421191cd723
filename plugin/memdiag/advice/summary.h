/*
  The summary: five questions about the server's memory and their answers, in
  at most max_rows rows. The rows of MEMDIAG_SUMMARY.

    holds     the process, its largest holders, and each holder that has much
              more than its usual share, with the statement that lowers it
    grew      the process and the pools that grew most within the last hour
    get back  unused pages and caches, with the statement that frees them
    peak      the highest figures since the server started, and when
    wrong     the most severe findings of the advisor

  A pure function of facts: no server, no state, no threads. An unknown fact
  proves nothing and makes no row. Units: bytes, microseconds since the epoch.
*/

#ifndef MEMDIAG_SUMMARY_H
#define MEMDIAG_SUMMARY_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/history/black_box.h"

namespace memdiag::summary {

constexpr size_t max_rows = 25;

/** Longest texts of a row. The mysql client's frame takes 16 more characters:
132 in all, one wide screen. */
constexpr uint32_t question_length = 8;
constexpr uint32_t what_length = 22;
constexpr uint32_t size_length = 10;
constexpr uint32_t detail_length = 28;
constexpr uint32_t statement_length = 48;

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

/** Live bytes of a memory instrument or route. */
struct Instrument {
  std::string_view name;
  uint64_t bytes;
  /** "": several pools, or not known. */
  std::string_view pool{};
};

struct Peak {
  Reading bytes;
  std::optional<Timestamp> time;
};

/** A client's session, with the most that it can still hold. */
struct Session {
  uint64_t processlist_id;
  std::vector<Instrument> held;
};

struct Facts {
  uint64_t now_us;
  /** VmRSS. The parts below may be fewer: what could not be read is missing. */
  Reading rss_bytes;
  std::vector<Resident> resident;
  std::vector<Instrument> instruments;
  std::array<Peak, pool_count> pool_peaks;
  /** The last hour of this run, oldest first. */
  std::span<const black_box::Sample> samples;
  std::span<const advisor::Finding> findings;
  /** The lowest limit of the control group, or the machine's memory. */
  Reading limit_bytes;
  /** The session that can hold most, as in advisor::Situation. */
  std::optional<Session> largest_session;
  /** Global values of system variables by name. */
  std::map<std::string_view, uint64_t> variables;
};

/** System variables whose values the statements use. */
std::vector<const char *> variables();

/** @throws std::bad_alloc */
std::vector<Row> rows(const Facts &facts);

}  // namespace memdiag::summary

#endif  // MEMDIAG_SUMMARY_H
