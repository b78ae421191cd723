/*
  Purges: a pool's unused pages go back to the system, on the calling thread.

  Threads: any. Purges are serialised by a mutex, so that the sizes before and
  after are the purge's own. Allocation goes on meanwhile. A call may sleep: it
  waits for the mutex, and if another thread is purging an arena, it tries again
  for up to 63 ms, in each pool.
  Inside an Interruptible that ends it (interruption.h) the rest is left alone.
  A purge that had not begun is neither counted nor in the log.
  Errors: a receipt has the errno of the first step that failed. An arena that
  was still being purged after that time is left alone, which is no error.
  Units: bytes, microseconds.
*/

#ifndef MEMDIAG_PURGE_H
#define MEMDIAG_PURGE_H

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/purging/receipt.h"

namespace memdiag::purging {

/** Purge a pool's arenas, and note it in the log of purges. Pool::general
stands for all arenas that no pool owns.
@param only  some of the pool's arenas; the others, and the pool's caches, are
             left alone. Empty: all are purged, and the caches are dropped
             first */
Receipt purge(Pool pool, Purge_reason reason = Purge_reason::asked,
              std::span<const unsigned> only = {});

/** Purge every arena there is. The receipt has the sums, and RSS before the
first purge and after the last. */
Receipt purge_all(Purge_reason reason = Purge_reason::asked);

/** Large blocks of one thread, many bytes together, which it is about to free
and will not need again soon: their pages go back at once. Other threads are at
work in the pool, so no other arena is purged, and the caches stay. No log and
no counter has it: the log is short, and the purger judges the last purge there.
The mutex is not held while the thread sleeps. The thread may hold what others
need: it does not wait for a purge, and then leaves its pages to decay. */
class Freed_blocks {
 public:
  /** Nothing is noted of a small block.
  @param size  as asked for at allocation */
  void add(const void *block, size_t size) noexcept;
  /** The blocks have been freed. */
  void give_back() const noexcept;

 private:
  std::bitset<pools::max_arenas> m_arenas;
};

/** Sums over a pool's purges since the server started. Pages that decay gave
back are not in them. */
struct Counters {
  uint64_t purges;
  uint64_t purged_bytes;
  uint64_t purge_us;
  /** The part of purged_bytes that was taken again within a second. */
  uint64_t refaulted_bytes;
};
Counters counters(Pool pool);

/** Bytes of the pool's unused pages as they are now. */
Result<uint64_t> dirty_bytes(Pool pool);

/** Resident bytes that the arenas of a purge have now and did not have right
after it. Arenas that were purged again since are left out.
@param sequence  the purge's, in the log of purges */
Result<uint64_t> taken_again(Pool pool, uint64_t sequence);

/** A pool is quiet for so many times its quiet_ms before it is purged: 1, or
more where pages that such purges gave back had to be taken again. */
uint32_t backoff(Pool pool);

/** The pool has taken `bytes` again that a purge had given back. */
void note_refault(Pool pool, uint64_t bytes);

/** The back-off doubles from now on, up to so much; 0: it is halved. */
void change_backoff(Pool pool, uint32_t most);

/** @name Around fork(), see mysys/memdiag/fork.cc
fork() waits until a purge has ended: the child would find the mutex locked for
ever, and jemalloc's arena in the midst of a purge that no thread ends. @{ */
void hold_purges() noexcept;
void let_go_of_purges() noexcept;
/** @} */

}  // namespace memdiag::purging

#endif  // MEMDIAG_PURGE_H
