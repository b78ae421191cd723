/*
  Reads Performance Schema: its counts of memory instruments, all of them in one
  pass over the threads, and facts of a session that THD has not. It reads them
  as Performance Schema's own tables do, without a lock: a fact of a session
  that changes meanwhile is empty.

  The linker redirects the calls by which a statement applies a switch of an
  instrument or of a consumer to this file (--wrap, in
  cmake/upstream/product.cmake).

  The instrumentation of a thread must not go away during a call; nullptr, as
  with performance_schema=OFF, is one of which nothing is known.

  Threads: any. Ownership: results are copies. Errors: empty where Performance
  Schema is off. Units: bytes.
*/

#ifndef MEMDIAG_PERFSCHEMA_H
#define MEMDIAG_PERFSCHEMA_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "plugin/memdiag/ledger/instruments.h"

struct PSI_thread;

namespace memdiag::perfschema {

using instruments::Counted;
using instruments::Held;

/** False: instruments of sessions count nothing, with performance_schema=OFF.
 */
bool is_on();

/** Locks of names (metadata_locks) are counted from when they are taken, and
there was room for each. */
bool counts_locks_of_names();

/** When the server starts, and after a statement has switched the instrument of
names' locks, or the consumer that all instruments need. */
void see_switches();
/** Sessions of a lower PROCESSLIST_ID may have locks without a row: they were
there when a statement last switched these counts on. 0: none did. */
uint64_t first_session_with_counts_of_locks();

/** The thread's allocations are counted for it, by instrument. */
bool counts_memory_of(PSI_thread *thread);

/** @param only  names of instruments; empty: all instruments
@return empty: Performance Schema is not up
@throws std::bad_alloc */
std::vector<Counted> counted(std::span<const char *const> only = {});

/** The most that a thread can still hold, by instrument. Performance Schema
does not subtract from a thread what another one freed. But no thread holds more
of an instrument than there is of it.
@param all  as counted() has all of them
@param only  names of instruments; empty: all instruments
@return empty, too, if thread is nullptr
@throws std::bad_alloc */
std::vector<Held> held_at_most(PSI_thread *thread, std::span<const Counted> all,
                               std::span<const char *const> only = {});

/** The connection attribute program_name. @throws std::bad_alloc */
std::optional<std::string> program_name(PSI_thread *thread);

/** The digest of the statement that the session runs: of the outermost, where
it is within a stored program. It allocates nothing and takes no lock, because
the profiler calls it within an allocation (profile_switch.cc). */
std::optional<sessions::Digest> current_digest(PSI_thread *thread);

/** Warnings that the last statement of an idle session raised
(events_statements_current), of which the session keeps max_error_count; 0 where
statements are not counted. */
uint64_t warnings(PSI_thread *thread);

/** Live bytes that the session's thread took, of all enabled instruments
(threads.TOTAL_MEMORY). What another thread freed is not subtracted. */
std::optional<uint64_t> memory_bytes(PSI_thread *thread);

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_H
