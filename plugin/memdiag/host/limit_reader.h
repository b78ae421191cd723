/*
  Collector: the memory limit as it is now, and how much of it the control group
  cannot do without. Cheap enough for each second: some five small files.

  An administrator, a container's runtime or Kubernetes may change a limit at
  any time, of the server's own control group or of one above it. So read()
  reads the limits each time. The reader finds the group again when
  /proc/self/cgroup names another one, when the group's files have vanished, and
  once a minute.

  Errors: a file that is missing, cannot be read or has another form makes its
  figures empty. Throws std::bad_alloc only; the next read() begins anew.
  Threads: a reader belongs to one thread. Units: bytes.
*/

#ifndef MEMDIAG_LIMIT_READER_H
#define MEMDIAG_LIMIT_READER_H

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/host/cgroup_limits.h"
#include "plugin/memdiag/host/host.h"

namespace memdiag::host {

struct Limit_figures {
  Reading machine_bytes;
  /** The machine's memory that is available (MemAvailable). */
  Reading available_bytes;
  /** The lowest limit of the control group and those above. Empty: there is
  none, or it is not known. */
  Reading group_limit_bytes;
  /** A file that would tell a limit is there and cannot be read, or no mount
  shows the control group. */
  bool is_unsure{false};
  /** The group with that limit; without a limit the process's own. "": there is
  no group. */
  std::string folder;
  /** The file that says how much that group uses. "": there is none. */
  std::string usage_file;
  /** The group with least room below its limit. */
  std::optional<Limit> tightest;
  /** The use of the group of usage_file, without page cache that the kernel can
  drop at once (kernel_text::clean_cache()): the memory of programs, the
  kernel's memory for them, page cache that is dirty or mapped. */
  Reading kept_bytes;
  /** The least that is free below a limit of a group or of the machine
  (MemAvailable), counted as kept_bytes for the group of usage_file and as
  Limit::usage_bytes for others. May be too high: MemAvailable is left out if it
  is not known, all groups if the lowest limit is not, and all other groups if
  the use of one is not. Empty: kept_bytes is not known below a limit, or
  nothing is. */
  Reading room_bytes;
};

/** The most memory that the server can have: the lower one of both limits.
Empty: one of them may be lower than what is known. */
Reading limit_bytes(const Limit_figures &figures);

class Limit_reader {
 public:
  /** @param root  stands before every path, for tests */
  explicit Limit_reader(std::string root = {}, Limits which = Limits::kill)
      : m_root(std::move(root)), m_which(which) {}

  /** @param now_us  the time of a clock that does not go back
  @throws std::bad_alloc */
  Limit_figures read(uint64_t now_us);

 private:
  std::optional<std::string> read_text(const std::string &file);
  bool find(const std::string &membership);
  Limit_figures read_files(uint64_t now_us);

  const std::string m_root;
  const Limits m_which;
  /** read_text() sets it when it fails. */
  bool m_failed{false};
  /** Empty: the group is looked for. */
  Reading m_found_us;
  /** The text of /proc/self/cgroup when the group was found. Empty: it is not
  known. */
  std::optional<std::string> m_membership;
  std::optional<Group> m_group;
  /** Group_search::is_hidden */
  bool m_is_hidden{false};
};

}  // namespace memdiag::host

#endif  // MEMDIAG_LIMIT_READER_H
