#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <cinttypes>

#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/ceiling/giving.h"

namespace memdiag::advisor {
namespace {

/** A ceiling that had nothing to do for so long is at rest: its frames would
come back after ten seconds of room. */
constexpr uint64_t rest_seconds = 60;

/** The smallest limit below which so much may be kept while statements begin.
Whole MiB. */
uint64_t limit_that_fits(uint64_t bytes) {
  uint64_t low = bytes / mib;
  uint64_t high = 2 * low + 1024;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const ceiling::Marks marks = ceiling::marks_of_limit(middle * mib, 0);
    if (marks.target_bytes - marks.plenty_bytes >= static_cast<int64_t>(bytes))
      high = middle;
    else
      low = middle + 1;
  }
  return low * mib;
}

class Ceiling_rules : Rules {
 public:
  using Rules::Rules;

  void judge_ceiling() {
    judge_rounded_pool();
    judge_tmpdir();
    const auto &ceiling = m_now.ceiling;
    if (!ceiling || ceiling->level == ceiling::Level::unknown) return;
    judge_floor(*ceiling);
    judge_target(*ceiling);
    if (ceiling->went_on_seconds.value_or(UINT64_MAX) > hour_seconds) return;
    add("ceiling_went_on", Severity::warning, "server", "host",
        text("%" PRIu64
             " waits of running statements for memory ended without room since "
             "the server started, the last one %" PRIu64
             " s ago; the longest wait was %.1f s",
             ceiling->went_on, *ceiling->went_on_seconds,
             static_cast<double>(ceiling->longest_wait_us) / 1e6),
        "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_CEILING WHERE PROCESSLIST_ID "
        "IS NOT NULL shows which statements waited, ended or did not begin; "
        "one that waits may hold what others need, such as row locks: commit "
        "sooner, raise the limit, or lower innodb_buffer_pool_size");
  }

 private:
  void judge_rounded_pool() {
    const Reading &asked = m_now.buffer_pool_asked_bytes;
    const Reading &unit = m_now.buffer_pool_unit_bytes;
    const Reading &size_now = m_now.buffer_pool_bytes;
    if (!asked || !unit || !size_now || is_zero(unit)) return;
    // Another size is not of that option.
    const uint64_t rounded = (*asked + *unit - 1) / *unit * *unit;
    if (*size_now != rounded || rounded - *asked < worth_bytes) return;
    const uint64_t smaller = whole_units(*asked);
    const Reading resident =
        difference(m_now.host.resident_bytes, m_now.other_resident_bytes);
    add("ceiling_pool_rounded_up", Severity::note, "server", "misconfiguration",
        "innodb_buffer_pool_size was set to " + size(*asked) +
            " when the server started and is " + size(*size_now) +
            ": InnoDB takes multiples of " + size(*unit) +
            " (innodb_buffer_pool_chunk_size times "
            "innodb_buffer_pool_instances)",
        (smaller == 0
             ? std::string()
             : text("SET PERSIST innodb_buffer_pool_size = %" PRIu64 "; or ",
                    smaller)) +
            "set a smaller innodb_buffer_pool_chunk_size, and restart")
        .bytes = difference(resident, asked);
  }

  void judge_tmpdir() {
    const auto &folder = m_now.tmpdir_in_memory;
    if (!folder || (!m_now.host.limit_bytes && !m_now.ceiling)) return;
    add("ceiling_tmpdir_in_memory",
        m_now.ceiling ? Severity::warning : Severity::note,
        m_now.host.limit_bytes ? "cgroup" : "machine", "misconfiguration",
        "tmpdir " + folder->path.substr(0, 512) +
            " is in memory (tmpfs), where " + size(folder->used_bytes) +
            " are in use: sorts and temporary tables that go to disk stay "
            "below the limit",
        "set tmpdir to a folder on a disk, and restart")
        .bytes = folder->used_bytes;
  }

  void judge_floor(const Ceiling_situation &ceiling) {
    const Reading &pool = m_now.buffer_pool_bytes;
    const uint64_t parked = ceiling.parked_bytes;
    const uint64_t seconds = ceiling.quiet_seconds.value_or(0);
    const int64_t left = ceiling.marks.target_bytes - ceiling.kept_bytes;
    // With more room, they come back as InnoDB uses free frames.
    if (left > 2 * ceiling.marks.plenty_bytes || !pool ||
        parked < worth_bytes || parked > *pool ||
        ceiling.parkable_bytes > parked / 20 || seconds < rest_seconds)
      return;
    const uint64_t smaller = whole_units(*pool - parked);
    add("ceiling_floor_at_rest", Severity::warning, "server",
        "misconfiguration",
        "for " + duration(static_cast<double>(seconds)) +
            " the buffer pool of " + size(*pool) + " has lacked " +
            size(parked) +
            ", all that the ceiling may take of it: next, statements end",
        (smaller == 0 ? std::string("lower innodb_buffer_pool_size")
                      : text("SET PERSIST innodb_buffer_pool_size = %" PRIu64,
                             smaller)) +
            ", or raise the limit or memdiag_memory_target")
        .bytes = at_most_rss(*pool - parked);
  }

  /** The control group keeps so much besides the server's pages. */
  uint64_t kept_by_others(const Ceiling_situation &ceiling) const {
    const host::Figures &host = m_now.host;
    const auto kept =
        static_cast<uint64_t>(std::max<int64_t>(ceiling.kept_bytes, 0));
    const Reading others = difference(
        kept, difference(host.resident_bytes, host.resident_file_bytes));
    return others.value_or(0) < worth_bytes ? 0 : *others;
  }

  std::string words_of_others(uint64_t others) const {
    if (others == 0) return "";
    const Reading &shared = m_now.host.shared_bytes;
    return "; besides, its control group keeps " + size(others) +
           " of other processes, of the kernel and of files in tmpfs" +
           (shared ? ", which with shared memory have " + size(*shared) : "");
  }

  /** The control group keeps this memory without clients, with the buffer pool
  at its floor. Unknown: the memory of sessions or statements is. */
  Reading needed_without_clients(const Ceiling_situation &ceiling) const {
    Reading not_needed = ceiling.parkable_bytes;
    for (size_t i = 0; i < pool_count; ++i) {
      const auto which = static_cast<Pool>(i);
      const Pool_situation &pool = m_now.pools[i];
      if (!outlives_clients(which))
        not_needed =
            sum(not_needed, pool.resident_live_bytes ? pool.resident_live_bytes
                                                     : pool.live_bytes);
      if (!uses_malloc(which)) not_needed = sum(not_needed, pool.dirty_bytes);
    }
    return ceiling::needed_at_rest(ceiling.kept_bytes, {not_needed});
  }

  void judge_target(const Ceiling_situation &ceiling) {
    const Reading needed = needed_without_clients(ceiling);
    const int64_t fits =
        ceiling.marks.target_bytes - ceiling.marks.plenty_bytes;
    if (ceiling.level == ceiling::Level::green || !needed ||
        static_cast<int64_t>(*needed) <= fits)
      return;
    const uint64_t others = kept_by_others(ceiling);
    add("ceiling_target_too_low", Severity::warning, "server",
        "misconfiguration",
        "the server needs " + size(*needed - std::min(*needed, others)) +
            " at rest, without what sessions and statements have, and " +
            size(static_cast<double>(ceiling.marks.plenty_bytes)) +
            " for them" + words_of_others(others) +
            "; the ceiling's target is " +
            size(static_cast<double>(ceiling.marks.target_bytes)) +
            ": one statement runs at a time",
        "raise the limit or memdiag_memory_target to " +
            size(limit_that_fits(*needed)) +
            " at least, or lower innodb_buffer_pool_size" +
            (others == 0 ? ""
                         : ", or remove files from tmpfs and end other "
                           "processes of the control group"))
        .bytes = at_most_rss(*needed - std::min(*needed, others));
  }
};

}  // namespace

void judge_ceiling(const Situation &situation, std::vector<Finding> *found) {
  Ceiling_rules(situation, found).judge_ceiling();
}

}  // namespace memdiag::advisor
