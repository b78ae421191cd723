/*
  The figures of memory by which component_group_replication_resource_manager
  expels a member of a group.

  The component reads /proc/meminfo, which has the machine's figures even in a
  container. In a container the kernel would kill the member long before the
  machine is short. On a crowded machine the component would expel the member
  for the memory of other processes. This file therefore uses the limit of the
  control group, or the machine's if that is lower (host/limit_reader.h).

  A member above the component's limit first purges its pools. The component
  gets the figures from after the purge.

  Errors: figures that cannot be read are empty; the component then keeps its
  own.
  Throws std::bad_alloc only.
  Threads: an object belongs to one thread. Units: bytes, percent.
*/

#ifndef MEMDIAG_MEMBER_MEMORY_H
#define MEMDIAG_MEMBER_MEMORY_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "plugin/memdiag/host/limit_reader.h"

namespace memdiag::member_memory {

struct Figures {
  uint64_t total_bytes;
  /** At most total_bytes. */
  uint64_t available_bytes;
};

/** Whole percent, rounded as the component does. 0 if there is no total. */
unsigned used_percent(const Figures &figures);

/** Reads the figures, and purges first if they are too high. */
class Reader {
 public:
  /** @param purge  gives unused pages back
  @param root   stands before every path, for tests */
  explicit Reader(std::function<void()> purge, std::string root = {})
      : m_purge(std::move(purge)), m_limit_reader(std::move(root)) {}

  /** @param now_us               the time of a clock that does not go back
  @param purge_above_percent  the use above which pools are purged; 0: never
  @throws std::bad_alloc */
  std::optional<Figures> read(uint64_t now_us, unsigned purge_above_percent);

 private:
  std::optional<Figures> read_once(uint64_t now_us);

  const std::function<void()> m_purge;
  host::Limit_reader m_limit_reader;
};

}  // namespace memdiag::member_memory

#endif  // MEMDIAG_MEMBER_MEMORY_H
