/*
  Collector: the figures of memory pressure. It is cheap enough for five calls
  in a second.

  Two figures:
  - Use of the limit: of the control group with least room (cgroup_limits.h), or
    of the machine where no group has a lower limit.
  - Stalls: the percentage of the last second in which a task waited for memory
    (pressure stall information), in the control group, or in the machine where
    the group has no such file.

  A control group's use (memory.current, memory.usage_in_bytes) includes page
  cache. Page cache fills any group that reads files, and the kernel takes it
  back first. Its inactive part and reclaimable slab therefore do not count as
  used. Reading them (memory.stat) makes the kernel add up the counters of all
  CPUs, so they are read only while the use with them is above the watched
  percentage. For the machine, used is all but MemAvailable.

  The limit is read once a second, as it may be changed at any time
  (limit_reader.h). The files of the stalls are looked up once a minute.

  Errors: a figure is empty if its file is missing, cannot be read or has
  another form; it then causes nothing. Without memory.stat, all use counts.
  Threads: a Gauge belongs to one thread.
  Units: bytes, percent, microseconds.
*/

#ifndef MEMDIAG_PRESSURE_H
#define MEMDIAG_PRESSURE_H

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "plugin/memdiag/host/limit_reader.h"

namespace memdiag::pressure {

struct Figures {
  std::optional<uint64_t> used_bytes{};
  std::optional<uint64_t> limit_bytes{};
  std::optional<double> stall_percent{};
};

/** @return true: at least limit_percent of the limit is used; 0: never */
bool is_above(const Figures &figures, unsigned limit_percent);

class Gauge {
 public:
  /** @param root  stands before every path, for tests */
  explicit Gauge(std::string root = {})
      : m_root(std::move(root)), m_limit_reader(m_root) {}

  /** @param now_us         the time of a clock that does not go back
  @param limit_percent  below it, used_bytes may include idle page cache
  @throws std::bad_alloc */
  Figures read(uint64_t now_us, unsigned limit_percent);

  /** Count only later stalls: a step was taken against the earlier ones. */
  void forget_stalls() { m_stalls.clear(); }

  /** The files that the figures come from, without the root; "": none. */
  const std::string &usage_file() const { return m_usage_file; }
  const std::string &stall_file() const { return m_stall_file; }

 private:
  struct Stall {
    uint64_t time_us;
    uint64_t total_us;
  };

  void find_stall_file();
  void read_limit(uint64_t now_us);
  std::string read_text(const std::string &file) const;
  std::optional<uint64_t> used_bytes(unsigned limit_percent) const;
  std::optional<double> stall_percent(uint64_t now_us);

  const std::string m_root;
  host::Limit_reader m_limit_reader;
  std::optional<uint64_t> m_limit_read_us;
  std::optional<uint64_t> m_found_us;
  std::string m_usage_file;
  std::string m_stall_file;
  std::optional<uint64_t> m_limit_bytes;
  /** Stalls of the last second, and the one before them. */
  std::deque<Stall> m_stalls;
};

}  // namespace memdiag::pressure

#endif  // MEMDIAG_PRESSURE_H
