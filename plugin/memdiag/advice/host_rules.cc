#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <cinttypes>

#include "plugin/memdiag/base/text.h"

namespace memdiag::advisor {
namespace {

/** A page at night wants a quarter of an hour of growth: the window of trends,
less two samples of a server that rests. */
constexpr double min_critical_seconds = 880;
/** A forecast looks this many times as far ahead as the growth has lasted. */
constexpr double look_ahead = 10;
/** The last tenth is the room that a burst needs. */
constexpr double near_limit = 0.9;
/** Percent of the last 10 s in which a task waited for memory (PSI): the
kernel's documentation calls a few percent noticeable. */
constexpr double pressure_percent = 10;

class Host_rules : Rules {
 public:
  using Rules::Rules;

  void judge_swap() {
    const Reading &swapped = m_now.host.swapped_bytes;
    if (swapped && *swapped >= worth_bytes)
      add("swap", Severity::warning, "machine", "host",
          size(*swapped) + " of the server are swapped out",
          "sysctl -w vm.swappiness=1; lower innodb_buffer_pool_size so that "
          "the machine has room");
  }

  void judge_limits() {
    judge_growth();
    const host::Figures &host = m_now.host;
    const auto [limit, usage] = used_of_group();
    const bool near =
        limit && usage &&
        static_cast<double>(*usage) >= near_limit * static_cast<double>(*limit);
    const bool held = near && is_held_at(*limit);
    // While no statement waits, a server that uses what it may is no finding.
    if (near && !(held && m_now.ceiling->level == ceiling::Level::green))
      add("cgroup_near_its_limit",
          held ? Severity::warning : Severity::critical, "cgroup", "host",
          size(*usage) + " of the control group's limit of " + size(*limit) +
              " are used" +
              (host.tightest ? " (" + host.tightest->usage_file + ")" : "") +
              (held ? "; statements wait for memory (memdiag_memory_target)"
                    : ""),
          purge_of("all") +
              "; then SET GLOBAL innodb_buffer_pool_size = <less>, or raise "
              "the limit: systemctl set-property <service> MemoryMax=" +
              text("%" PRIu64 "M", *limit / mib * 5 / 4));
    else if (host.machine_bytes && host.available_bytes &&
             static_cast<double>(*host.available_bytes) <
                 (1 - near_limit) * static_cast<double>(*host.machine_bytes))
      add("machine_near_its_limit", Severity::warning, "machine", "host",
          size(*host.available_bytes) + " of " + size(*host.machine_bytes) +
              " are available",
          purge_of("all") +
              "; see which other processes run here: ps -eo rss,comm "
              "--sort=-rss");
    if (host.oom_kills && *host.oom_kills > 0) judge_kills(*host.oom_kills);
  }

  void judge_host() {
    const host::Figures &host = m_now.host;
    if (host.transparent_huge_pages == "always" && m_now.allocator_huge_pages &&
        *m_now.allocator_huge_pages != "never")
      add("huge_pages", Severity::warning, "allocator", "misconfiguration",
          text("transparent huge pages are 'always' and the allocator has "
               "thp:%s: a page of 2 MiB stays for a block of 4 KiB",
               m_now.allocator_huge_pages->c_str()),
          "take thp out of MALLOC_CONF, in the service's file or the "
          "environment, and restart; until then: echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled");
    if (host.pressure_some_avg10 &&
        *host.pressure_some_avg10 >= pressure_percent)
      add("pressure", Severity::warning,
          host.is_pressure_of_cgroup ? "cgroup" : "machine", "host",
          text("in %.0f%% of the last 10 s a task waited for memory",
               *host.pressure_some_avg10),
          purge_of("all"));
    if (host.oom_score_adj && *host.oom_score_adj > 0)
      add("oom_score", Severity::note, "machine", "misconfiguration",
          text("oom_score_adj is %" PRId64
               ": the kernel kills this server before others",
               *host.oom_score_adj),
          "OOMScoreAdjust=-600 in the service's file (systemctl edit "
          "<service>)");
  }

 private:
  /** The last one may be what started this server anew. The group may be far
  older than the server. */
  void judge_kills(uint64_t kills) {
    const bool is_of_now = m_now.up_seconds.value_or(0) < hour_seconds;
    add("oom_kills", is_of_now ? Severity::warning : Severity::note, "cgroup",
        "host",
        text("processes of the control group that the OOM killer has killed: "
             "%" PRIu64 "%s",
             kills,
             is_of_now
                 ? ""
                 : " since the group was made; the kernel does not say when"),
        "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY WHERE RUN > 0 ORDER "
        "BY RUN, TIME DESC shows the last minutes of a server that was killed");
  }

  /** When growth reaches a limit, and what it has to share the limit with. */
  struct Forecast {
    std::optional<double> seconds;
    uint64_t limit_bytes{0};
    uint64_t others_bytes{0};
  };

  /** The process and others use a part of the limit, and the buffer pool will
  take another. Growth reaches the limit when it has taken the rest. Unknown
  figures: never. */
  Forecast with_others(Reading limit, Reading left) const {
    const Reading &resident = m_now.host.resident_bytes;
    const Reading pool_now = difference(resident, m_now.other_resident_bytes);
    if (!limit || !left || !pool_now || *left > *limit) return {};
    const uint64_t pool = *m_now.buffer_pool_bytes;
    const uint64_t there =
        std::min(pool, *pool_now + m_now.host.hugetlb_bytes.value_or(0));
    const uint64_t used = *limit - *left;
    const double slope = m_now.trend_without_buffer_pool->bytes_per_second;
    return {static_cast<double>(*left - std::min(*left, pool - there)) / slope,
            *limit, used - std::min(used, *resident)};
  }

  Forecast forecast(uint64_t most, uint64_t pool) const {
    const host::Figures &host = m_now.host;
    Forecast first{seconds_until(*m_now.trend_without_buffer_pool,
                                 most - std::min(most, pool)),
                   most};
    const auto room = used_of_group();
    for (const Forecast &one :
         {with_others(host.machine_bytes, host.available_bytes),
          with_others(room.limit, difference(room.limit, room.usage))})
      if (one.seconds && (!first.seconds || *one.seconds < *first.seconds))
        first = one;
    return first;
  }

  /** Growth outside the buffer pool, towards the limit less a full buffer pool:
  a pool that warms up does not predict where the process ends. */
  void judge_growth() {
    const Reading most = host::limit_bytes(m_now.host);
    const auto &trend = m_now.trend_without_buffer_pool;
    if (!most || !m_now.buffer_pool_bytes || !grows(trend)) return;
    const uint64_t pool =
        *m_now.buffer_pool_bytes -
        std::min(*m_now.buffer_pool_bytes, not_counted_bytes());
    const Forecast end = forecast(*most, pool);
    const auto left = end.seconds;
    if (!left || *left >= std::min(day, look_ahead * trend->seconds)) return;
    const std::string others =
        end.others_bytes == 0
            ? ""
            : ", of which " + size(end.others_bytes) + " are in other use,";
    const std::string limit = "the limit of " + size(end.limit_bytes) + others;
    add("growth_of_the_process",
        trend->seconds >= min_critical_seconds && !is_held()
            ? Severity::critical
            : Severity::warning,
        "server", "host",
        "the process grows by " + rate(*trend) +
            " without the buffer pool; with a full buffer pool of " +
            size(pool) + " it " +
            (*left > 0 ? "reaches " + limit + " in " + duration(*left)
                       : "is above " + limit + " already") +
            words_of_ceiling(),
        "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY ORDER BY TIME "
        "DESC LIMIT 1 names the pool that grows; " +
            purge_of("all") +
            (m_now.lacks_functions ? "" : " gives back what is unused"));
  }

  /** The ceiling lets the server come near this limit, and keeps it there. */
  bool is_held_at(uint64_t limit_bytes) const {
    return is_held() &&
           static_cast<double>(m_now.ceiling->marks.target_bytes) >=
               near_limit * static_cast<double>(limit_bytes);
  }

  struct Used {
    Reading limit;
    Reading usage;
  };

  /** The lowest limit, unless a group above has less room. */
  Used used_of_group() const {
    const host::Figures &host = m_now.host;
    if (host.tightest)
      return {host.tightest->limit_bytes, host.tightest->usage_bytes};
    return {host.limit_bytes, host.usage_bytes};
  }
};

}  // namespace

void judge_swap(const Situation &situation, std::vector<Finding> *found) {
  Host_rules(situation, found).judge_swap();
}

void judge_limits(const Situation &situation, std::vector<Finding> *found) {
  Host_rules(situation, found).judge_limits();
}

void judge_host(const Situation &situation, std::vector<Finding> *found) {
  Host_rules(situation, found).judge_host();
}

}  // namespace memdiag::advisor
