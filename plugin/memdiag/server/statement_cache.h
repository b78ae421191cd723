/*
  The readings that the tables of one statement have in common: a snapshot of
  the allocator and a report of the host. Each is taken when a table first needs
  it. Joined tables therefore agree, and a table that is filled again for each
  outer row does not change. Statements of a read group (read_group.h) share
  them, too.

  Threads: a cache belongs to the session's thread.
  Lifetime: references stay valid until the thread's next statement that reads
  a table of this plugin.
  Errors: a reading that failed is empty in the value; the statement gets a
  warning for it, once.
*/

#ifndef MEMDIAG_STATEMENT_CACHE_H
#define MEMDIAG_STATEMENT_CACHE_H

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/server/read_group.h"

class THD;

namespace memdiag {

/** Adds a warning to the running statement. */
void warn(THD *thd, const std::string &text);

class Statement_cache {
 public:
  /** The cache of the running statement. The first call for a statement begins
  a read group or joins the session's last one. @throws std::bad_alloc */
  static Statement_cache &of(THD *thd);

  /** @param details  the rows that the snapshot must have
  @throws std::bad_alloc */
  const Snapshot &snapshot(THD *thd, Details details);

  /** @throws std::bad_alloc */
  const host::Report &host_report(THD *thd);

 private:
  template <typename T>
  struct Cached {
    std::optional<T> value{};
    /** The last statement that got the warnings. */
    uint64_t warned_query{0};
  };

  /** Takes the value if it is missing, and warns once in each statement. */
  template <typename T, typename Take, typename Warn>
  static const T &get_or_take(THD *thd, Cached<T> *cached, Take take,
                              Warn warn_of);

  Read_group m_group;
  /** The rows that tables of the running statement need in the snapshot. */
  Details m_details{0};
  Cached<Snapshot> m_snapshot;
  Cached<host::Report> m_host;
};

}  // namespace memdiag

#endif  // MEMDIAG_STATEMENT_CACHE_H
