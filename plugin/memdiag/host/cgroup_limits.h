/*
  Memory limits of nested control groups. A process is bound by the limit of
  its own group and of each group above it. The lowest limit need not be the one
  that is reached first: a group above may have a higher limit and be nearly
  full of other processes.

  Errors: a limit that cannot be understood makes the lowest limit empty; usage
  that cannot be understood makes the room empty. A missing file is no limit.
  Threads: pure but for the callback that reads. Units: bytes.
*/

#ifndef MEMDIAG_CGROUP_LIMITS_H
#define MEMDIAG_CGROUP_LIMITS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {

/** The place where the control group of a process can be seen. */
struct Group {
  int version;
  std::string folder;
  /** The uppermost group that can be seen. */
  std::string top;
};

struct Group_search {
  /** Empty: no mount has the group. */
  std::optional<Group> group;
  /** The process is in a group that no mount shows: it may have any limit.
  False for the uppermost one where no group of its version is mounted. */
  bool is_hidden{false};
};

/** @param mounts  in the order of mountinfo */
Group_search find_group(const kernel_text::Memory_cgroup &of,
                        const std::vector<kernel_text::Mount> &mounts);

/** Reads a file; empty: there is no such file, which counts as no limit. For a
file that cannot be read it must return "", which counts as not known. */
using Read_file =
    std::function<std::optional<std::string>(const std::string &file)>;

/** A control group with a limit. */
struct Limited_group {
  std::string folder;
  uint64_t limit_bytes;
};

struct Cgroup_limits {
  /** kernel_text::unlimited: no group has a limit. Empty: not known. */
  std::optional<uint64_t> lowest_bytes;
  /** The group with the lowest limit; the process's own if there is no limit.
   */
  std::string lowest_folder;
  /** The file with the lowest limit; "": no group has such a file. */
  std::string source;
  /** Every group with a limit, the process's own first. */
  std::vector<Limited_group> limited;
};

enum class Limits : uint8_t {
  /** Behind them the kernel kills. */
  kill,
  /** And memory.high of version 2: behind it, the kernel makes the processes of
  the group wait, ever longer, while it takes pages back. */
  kill_or_throttle
};

/** @param group  the process's
@param hierarchical_bytes  version 1: what memory.stat says of all groups
                           above, also of those that cannot be seen */
Cgroup_limits cgroup_limits(const Group &group,
                            std::optional<uint64_t> hierarchical_bytes,
                            const Read_file &read, Limits which = Limits::kill);

/** The file that says how much a group uses. */
std::string usage_file(const std::string &folder, int version);

/** The memory that is free below the limit of a group. */
struct Room {
  /** Limit less use, without page cache that the kernel takes back
  (kernel_text::without_cache()). Empty: a use is not known. */
  std::optional<uint64_t> bytes;
  std::string folder;
  uint64_t limit_bytes;
};

/** Without groups that have no use. */
std::vector<Room> rooms_of(const std::vector<Limited_group> &groups,
                           int version, const Read_file &read);

/** @return the group that will reach its limit first, or one whose room is not
known; empty: there is no group */
std::optional<Room> least_room(const std::vector<Room> &rooms);

}  // namespace memdiag::host

#endif  // MEMDIAG_CGROUP_LIMITS_H
