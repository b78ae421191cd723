/*
  Collector: how short of memory the server is, cheaply enough to be asked five
  times a second.

  Two figures. What is used of the limit: of the control group that has the
  lowest limit, or of the machine where there is no lower one. And which part of
  the last second some task waited for memory: pressure stall information of the
  control group, or of the machine where there is none of the group.

  What a control group uses (memory.current, memory.usage_in_bytes) includes the
  page cache, which fills any group that reads files and which the kernel takes
  back first. Its inactive part, and what the kernel keeps of names and inodes
  (reclaimable slab), are not counted as used; because asking for them
  (memory.stat) makes the kernel add up the counters of all CPUs, that is done
  only when the group is above the watched part of its limit with it. Of the
  machine, used is what is not MemAvailable.

  Which files those are, and the limit, is asked of host.h once a minute.

  Errors: a figure whose file is missing, cannot be read or is not understood is
  empty; nobody acts on it. Without memory.stat all of that counts as used.
  Threads: a gauge belongs to one thread.
  Units: bytes, percent, microseconds.
*/

#ifndef MEMDIAG_PRESSURE_H
#define MEMDIAG_PRESSURE_H

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace memdiag::pressure {

struct Figures {
  std::optional<uint64_t> used_bytes{};
  std::optional<uint64_t> limit_bytes{};
  std::optional<double> stall_percent{};
};

/** Whether so many percent of the limit are used; 0: never. */
bool is_above(const Figures &figures, unsigned limit_percent);

class Gauge {
 public:
  /** @param root  stands before every path, for tests */
  explicit Gauge(std::string root = {}) : m_root(std::move(root)) {}

  /** @param now_us         of a clock that does not go back
  @param limit_percent  below it, used_bytes may include what is idle
  @throws std::bad_alloc */
  Figures look(uint64_t now_us, unsigned limit_percent);

  /** Count stalls from now on only: something was done about those before. */
  void forget_stalls() { m_stalls.clear(); }

  /** Which files the figures are from, without the root; empty: there is none.
   */
  const std::string &usage_file() const { return m_usage_file; }
  const std::string &stall_file() const { return m_stall_file; }

 private:
  struct Stall {
    uint64_t time_us;
    uint64_t total_us;
  };

  void find_files();
  std::string read(const std::string &file) const;
  std::optional<uint64_t> used_bytes(unsigned limit_percent) const;
  std::optional<double> stall_percent(uint64_t now_us);

  const std::string m_root;
  std::optional<uint64_t> m_found_us;
  std::string m_usage_file;
  std::string m_stall_file;
  std::optional<uint64_t> m_limit_bytes;
  /** Of the last second; the first is just older. */
  std::deque<Stall> m_stalls;
};

}  // namespace memdiag::pressure

#endif  // MEMDIAG_PRESSURE_H
