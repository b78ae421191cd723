#include "storage/innobase/memdiag_log_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "log0chkp.h"
#include "log0log.h"
#include "log0sys.h"
#include "univ.i"

namespace memdiag {

namespace {

/** include/uapi/asm-generic/mman-common.h of Linux. glibc has it since 2.35. */
constexpr int populate_write = 23;

/** A ring that log_t had. */
struct Ring {
  byte *begin{nullptr};
  size_t bytes{0};
  bool refused{false};
  Ring_ahead ahead{0};
};

/** @return false: the kernel refuses */
bool make_resident(const byte *begin, const byte *end) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // The page of the end may be another owner's. The next range begins with it.
  const uintptr_t from = reinterpret_cast<uintptr_t>(begin) & ~(page - 1);
  const uintptr_t to = reinterpret_cast<uintptr_t>(end) & ~(page - 1);
  return from >= to || madvise(reinterpret_cast<void *>(from), to - from,
                               populate_write) == 0;
}

}  // namespace

void make_log_pages(log_t &log) {
  if (mutex_enter_nowait(&log.checkpointer_mutex) != 0) return;
  static Ring ring;  // the mutex guards it
  if (ring.begin != log.buf || ring.bytes != log.buf_size)
    ring = {.begin = log.buf,
            .bytes = log.buf_size,
            .ahead = Ring_ahead(log.buf_size)};
  if (!ring.refused) {
    if (const auto range = ring.ahead.next(log_get_lsn(log))) {
      const byte *const begin = ring.begin + range->offset;
      ring.refused = !make_resident(begin, begin + range->bytes);
    }
  }
  log_checkpointer_mutex_exit(log);
}

}  // namespace memdiag
