#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/base/text.h"

namespace memdiag::advisor {
namespace {

/** Growth differs from a warm-up by following a straight line, and by lasting:
a minute has sixty samples. */
constexpr double min_r2 = 0.8;
constexpr double min_seconds = 60;
/** A large part of the server's memory. */
constexpr double large_part = 0.1;

}  // namespace

std::string size(double bytes) {
  constexpr double gib = 1 << 30;
  return bytes >= 10 * gib ? text("%.1f GiB", bytes / gib)
                           : text("%.0f MiB", bytes / mib);
}
std::string size(uint64_t bytes) { return size(static_cast<double>(bytes)); }

std::string duration(double seconds) {
  if (seconds >= 2 * day) return text("%.0f days", seconds / day);
  if (seconds >= 7200) return text("%.0f h", seconds / 3600);
  if (seconds >= 120) return text("%.0f min", seconds / 60);
  return text("%.0f s", seconds);
}

std::string rate(const Trend &trend, double part) {
  return size(part * trend.bytes_per_second * 3600) +
         " an hour over the last " + duration(trend.seconds);
}

bool grows(const std::optional<Trend> &trend, double part) {
  return trend && trend->seconds >= min_seconds && trend->r2 >= min_r2 &&
         part * trend->bytes_per_second * trend->seconds >= worth_bytes;
}

std::string Amount::words() const {
  const std::string resident = size(bytes);
  const std::string allocated = size(std::max(bytes, allocated_bytes));
  return resident +
         (allocated == resident ? "" : " (" + allocated + " allocated)");
}

void Amount::put_into(Finding *finding) const {
  finding->bytes = bytes;
  if (allocated_bytes > bytes) finding->allocated_bytes = allocated_bytes;
}

Finding &Rules::add(std::string rule, Severity severity, std::string subsystem,
                    const char *verdict, std::string evidence,
                    std::string remedy) {
  m_found.push_back({severity, std::move(subsystem), verdict,
                     std::move(evidence), std::move(remedy), std::move(rule)});
  return m_found.back();
}

Finding *Rules::judge_share(const std::string &rule, const char *subsystem,
                            const std::string &words, Amount amount,
                            unsigned usual_percent, std::string remedy) {
  const Reading &all = m_now.other_resident_bytes;
  if (!all || is_zero(all)) return nullptr;
  amount.bytes = std::min(amount.bytes, *all);
  if (amount.bytes < worth_bytes) return nullptr;
  const double percent =
      100 * static_cast<double>(amount.bytes) / static_cast<double>(*all);
  if (percent <= usual_percent) return nullptr;
  Finding &found =
      add(rule, percent >= warning_percent ? Severity::warning : Severity::note,
          subsystem, "cache",
          words + ' ' + amount.words() +
              text(", %.0f%% of the memory besides the buffer pool", percent),
          std::move(remedy));
  amount.put_into(&found);
  return &found;
}

uint64_t Rules::at_most_rss(uint64_t bytes) const {
  return std::min(bytes, m_now.host.resident_bytes.value_or(bytes));
}

bool Rules::is_large(uint64_t bytes) const {
  const Reading &all = m_now.host.resident_bytes;
  return all && bytes >= worth_bytes &&
         static_cast<double>(bytes) >= large_part * static_cast<double>(*all);
}

void Rules::offer_to_end(std::string statement, Finding *found) const {
  if (m_now.locks_are_counted) found->statement = std::move(statement);
  found->remedy +=
      m_now.locks_are_counted ? drops_temporary_tables : locks_are_not_counted;
}

bool Rules::is_reader(const Session &session) const {
  return m_now.reader_processlist_id == session.processlist_id;
}

uint64_t Rules::not_counted_bytes() const {
  const host::Figures &host = m_now.host;
  const bool is_of_group =
      host.limit_bytes &&
      (!host.machine_bytes || *host.limit_bytes < *host.machine_bytes);
  return is_of_group ? host.hugetlb_bytes.value_or(0) : 0;
}

uint64_t Rules::whole_units(uint64_t bytes) const {
  const uint64_t unit = m_now.buffer_pool_unit_bytes.value_or(0);
  return unit == 0 ? 0 : bytes / unit * unit;
}

std::string Rules::purge_of(const std::string &pool) const {
  return m_now.lacks_functions
             ? "memdiag_purge() needs a start without --skip-grant-tables"
             : "SELECT memdiag_purge('" + pool + "')";
}

bool Rules::is_held() const {
  return m_now.ceiling && m_now.ceiling->acts &&
         m_now.ceiling->level != ceiling::Level::unknown;
}

const char *Rules::words_of_ceiling() const {
  return is_held() ? "; the ceiling keeps it below (memdiag_memory_target)"
                   : "";
}

std::string Rules::words_of_flush() const {
  // To end the FLUSH does not help: it has made the tables old.
  if (m_now.table_keepers == 0)
    return "statements on tables in use wait until those that run have ended";
  return text(
      "sessions that keep tables open (HANDLER, LOCK TABLES, an event, "
      "replication, or a statement of more than 10 s): %" PRIu64
      "; FLUSH LOCAL TABLES before they have ended makes statements "
      "on their tables wait, too",
      m_now.table_keepers);
}

}  // namespace memdiag::advisor
