/*
  Takes a sample of the server's memory: the allocator's snapshot, the kernel's
  figures of the process, and the resident bytes of the buffer pool.

  Cost: some 0.5 ms, plus 1 ms for each GB of buffer pool. The buffer pool is
  therefore read so seldom that this takes 1% of the time, and the limit of the
  control group once a minute; other samples repeat the last figures.
  Nothing is asked of sessions, except at a new peak of RSS: then the callback
  names the session that holds most.

  Errors: a figure that cannot be read is black_box::unknown.
  Threads: an object belongs to one thread.
*/

#ifndef MEMDIAG_SAMPLER_H
#define MEMDIAG_SAMPLER_H

#include <cstdint>
#include <optional>

#include "mysys/memdiag/accounting/sessions.h"
#include "mysys/memdiag/clock.h"
#include "plugin/memdiag/history/black_box.h"

namespace memdiag::history {

/** A session, its bytes, and the digest of its statement (zeros: none). */
struct Holder {
  uint64_t processlist_id;
  uint64_t bytes;
  sessions::Digest digest;
};
/** Names the session that holds most now; empty: not known. Throws nothing but
std::bad_alloc. */
using Largest_session = std::optional<Holder> (*)();

class Sampler {
 public:
  /** As clock_us(). */
  using Clock = uint64_t (*)(clockid_t);

  /** @param largest_session  nullptr: the holder is never known */
  explicit Sampler(Largest_session largest_session, Clock clock = clock_us)
      : m_largest_session(largest_session), m_clock(clock) {}

  /** All but what Box::append() and the run give it. Never throws. */
  black_box::Sample take();

 private:
  void add_process(black_box::Sample *sample);
  void add_holder(black_box::Sample *sample);
  uint64_t limit_bytes();
  uint64_t buffer_pool_bytes();

  const Largest_session m_largest_session;
  const Clock m_clock;
  std::optional<Holder> m_holder;
  uint64_t m_asked_at_bytes{0};
  uint64_t m_limit_bytes{black_box::unknown};
  uint64_t m_limit_due_us{0};
  uint64_t m_rss_peak_bytes{0};
  uint64_t m_rss_peak_us{0};
  uint64_t m_buffer_pool_bytes{black_box::unknown};
  uint64_t m_buffer_pool_due_us{0};
};

}  // namespace memdiag::history

#endif  // MEMDIAG_SAMPLER_H
