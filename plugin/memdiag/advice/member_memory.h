/*
  How much memory a member of a group has left: the figures by which
  component_group_replication_resource_manager expels it.

  The component reads /proc/meminfo, which has the machine's figures in a
  container too. A container's member would be killed long before the machine
  is short, and one on a crowded machine would be expelled for the others. Here
  the limit is the control group's, or the machine's if that is lower
  (host/limit_reader.h), and free is what is left below it.

  A member that uses more than the component's limit purges its pools first and
  is judged by what it still uses then.

  Errors: figures that cannot be read are empty; the component's own hold then.
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

class Judge {
 public:
  /** @param purge  gives unused pages back
  @param root   stands before every path, for tests */
  explicit Judge(std::function<void()> purge, std::string root = {})
      : m_purge(std::move(purge)), m_reader(std::move(root)) {}

  /** @param now_us         the time of a clock that does not go back
  @param limit_percent  a member may use so much; 0: it is not judged, and
                        nothing is purged
  @throws std::bad_alloc */
  std::optional<Figures> look(uint64_t now_us, unsigned limit_percent);

 private:
  std::optional<Figures> read(uint64_t now_us);

  const std::function<void()> m_purge;
  host::Limit_reader m_reader;
};

}  // namespace memdiag::member_memory

#endif  // MEMDIAG_MEMBER_MEMORY_H
