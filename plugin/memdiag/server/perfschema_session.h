/*
  What Performance Schema knows of a session beyond what THD tells. Read as its
  own tables read it, without a lock: what changes meanwhile is not known.

  The thread's instrumentation must not go away during the call; nullptr, as
  with performance_schema=OFF, is one of which nothing is known.
*/

#ifndef MEMDIAG_PERFSCHEMA_SESSION_H
#define MEMDIAG_PERFSCHEMA_SESSION_H

#include <cstdint>
#include <optional>
#include <string>

#include "mysys/memdiag/accounting/sessions.h"

struct PSI_thread;

namespace memdiag::perfschema {

/** The connection attribute program_name. @throws std::bad_alloc */
std::optional<std::string> program_name(PSI_thread *thread);

/** The digest of the statement that the session runs: of the outermost, where
it is within a stored program. */
std::optional<sessions::Digest> current_digest(PSI_thread *thread);

/** What lives of what the session's thread took, of all instruments that are
enabled (threads.TOTAL_MEMORY). */
std::optional<uint64_t> memory_bytes(PSI_thread *thread);

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_SESSION_H
