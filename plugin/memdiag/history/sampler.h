/*
  Takes a sample of the server's memory: the allocator's snapshot, the kernel's
  figures of the process, its limit, and the resident bytes of the buffer pool
  and of the redo log buffer.

  Cost: 20 us for each of the allocator's arenas, of which many processors have
  hundreds, and 1 ms for each GB of InnoDB's buffers. Samples repeat the last
  figures where they can:
  - the allocator's, for ten seconds at most, while the server rests: less than
    1 MB has come and gone in the pools, RSS has changed by less than 256 KB,
    and no pool was purged;
  - the resident bytes of InnoDB's buffers, so that reading them takes 1% of the
    time, and a tenth of that while RSS has changed by less than 256 KB.
  Nothing is asked of sessions, except when the peak of RSS has risen by 1 MiB:
  then the callback names the session that holds most.

  Errors: a figure that cannot be read is black_box::unknown.
  Threads: an object belongs to one thread.
*/

#ifndef MEMDIAG_SAMPLER_H
#define MEMDIAG_SAMPLER_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/base/clock.h"
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

/** The present place of InnoDB's redo log buffer. The buffer may move, so its
bytes are not read. Empty: not known. */
using Log_buffer = std::span<const std::byte> (*)();

class Sampler {
 public:
  /** As clock_us(). */
  using Clock = uint64_t (*)(clockid_t);

  /** @param largest_session  nullptr: the holder is never known
  @param log_buffer  nullptr: it is never known */
  explicit Sampler(Largest_session largest_session, Clock clock = clock_us,
                   Log_buffer log_buffer = nullptr)
      : m_largest_session(largest_session),
        m_clock(clock),
        m_log_buffer(log_buffer) {}

  /** All but what Box::append() and the run give it. Never throws. */
  black_box::Sample take();

 private:
  void add_allocator(black_box::Sample *sample);
  void add_process(black_box::Sample *sample);
  void add_holder(black_box::Sample *sample);
  void add_innodb(black_box::Sample *sample);

  /** The last sample whose figures of the allocator were read, not repeated,
  and what had moved in the pools by then. Time 0: none, or a figure is unknown.
*/
  black_box::Sample m_read{};
  uint64_t m_read_activity{0};
  uint64_t m_read_us{0};
  const Largest_session m_largest_session;
  const Clock m_clock;
  const Log_buffer m_log_buffer;
  std::optional<Holder> m_holder;
  uint64_t m_asked_at_bytes{0};
  uint64_t m_rss_peak_bytes{0};
  uint64_t m_rss_peak_us{0};
  /** The last sample for which InnoDB's buffers were read. */
  black_box::Sample m_innodb{};
  uint64_t m_innodb_read_us{0};
  uint64_t m_innodb_took_us{0};
};

}  // namespace memdiag::history

#endif  // MEMDIAG_SAMPLER_H
