/*
  The sampler: a thread that notes each second what memory the server has, in
  the black box, so that it can be seen how it came to what it is, after the end
  of the server too.

  A sample is a snapshot of the allocator, the process's own figures of the
  kernel, and the resident part of the buffer pool, which takes 1 ms for each
  gigabyte to find out: it is looked at so seldom that this takes 1% of the time
  at most, and is of the last time meanwhile. Nothing is asked of statements,
  but at a new peak of RSS who has most.

  Threads: start() and stop() as of a Worker; the others from any thread.
  Errors: a figure that cannot be read is unknown, and the next sample tries
  again.
*/

#ifndef MEMDIAG_HISTORY_H
#define MEMDIAG_HISTORY_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/memdiag/history/black_box.h"
#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::history {

/** Values of the server's variables. 0: no samples are taken. */
extern unsigned interval_ms;
/** Of a run; older ones give way. Read by start(). */
extern unsigned capacity;

inline constexpr const char *file_name = "memdiag_history.bin";

/** What is to be said of the start; there are samples all the same, but if
there is no thread. */
struct Started {
  int thread_error;
  /** Why samples are kept in memory only, or 0. */
  int file_error;
  /** Of the file that was there, and of the run before; or empty. */
  std::string remark;
};

/** A session, what it has, and the digest of its statement (zeros: none). */
struct Holder {
  uint64_t processlist_id;
  uint64_t bytes;
  sessions::Digest digest;
};
/** The session that has most now; empty: it is not known. Must not throw
anything but std::bad_alloc. */
using Who_has_most = std::optional<Holder> (*)();

/** Make the file anew and begin to take samples; the first at once.
@param path     of the file
@param version  of the server, as 90704
@param who_has_most  asked by the sampler's thread; nullptr: nobody knows
@throws std::bad_alloc */
Started start(const std::string &path, uint32_t version,
              Who_has_most who_has_most = nullptr);

/** Take the last sample, which says that the run has been ended. */
void stop();

/** interval_ms has another value: to be heeded at once. */
void interval_changed();

/** Oldest first; empty when not started; of this run, those that are not older
than a moment. @throws std::bad_alloc */
std::vector<black_box::Sample> this_run(uint64_t since_us = 0);
std::vector<black_box::Sample> former_runs();

}  // namespace memdiag::history

#endif  // MEMDIAG_HISTORY_H
