/*
  Facts of a session that Performance Schema has and THD has not. This reads
  them as its own tables do, without a lock: a value that changes meanwhile is
  empty.

  The thread's instrumentation must not go away during the call; nullptr, as
  with performance_schema=OFF, is one of which nothing is known.

  Threads: any. Ownership: results are copies.
*/

#ifndef MEMDIAG_PERFSCHEMA_SESSION_H
#define MEMDIAG_PERFSCHEMA_SESSION_H

#include <cstdint>
#include <optional>
#include <string>

#include "mysys/memdiag/accounting/digests.h"

struct PSI_thread;

namespace memdiag::perfschema {

/** The connection attribute program_name. @throws std::bad_alloc */
std::optional<std::string> program_name(PSI_thread *thread);

/** The digest of the statement that the session runs: of the outermost, where
it is within a stored program. It allocates nothing and takes no lock, because
the profiler calls it within an allocation (profile_switch.cc). */
std::optional<sessions::Digest> current_digest(PSI_thread *thread);

/** Live bytes that the session's thread took, of all enabled instruments
(threads.TOTAL_MEMORY). What another thread freed is not subtracted. */
std::optional<uint64_t> memory_bytes(PSI_thread *thread);

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_SESSION_H
