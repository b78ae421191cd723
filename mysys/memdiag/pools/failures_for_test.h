/*
  Allocations that fail on purpose, so that tests see what the server does then.

  Threads: any. Overlapping calls of fail_allocations_for_test() mix their
  settings, but count every failure once.
*/

#ifndef MEMDIAG_FAILURES_FOR_TEST_H
#define MEMDIAG_FAILURES_FOR_TEST_H

#include <atomic>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** Which allocations fail. */
struct Failures {
  uint32_t count;
  /** So many succeed before. */
  uint32_t skip{0};
  /** Only allocations of that pool, that account (0: any), the calling thread
  are counted and fail. */
  std::optional<Pool> pool{};
  Account account{0};
  bool this_thread{false};
  /** false: the pool has no page to give. true: the general allocator has no
  memory either, and allocate() returns nullptr. */
  bool hard{false};
};

/** Make allocations from pools fail.
@return how many failures of the call before have not happened */
uint32_t fail_allocations_for_test(const Failures &failures);

/** @name For allocate() @{ */
enum class Failure { none, soft, hard };

namespace detail {
/** Hidden, as all that the path of an allocation reads: position-independent
code would otherwise look its address up. */
extern std::atomic<uint32_t> failures_left
    __attribute__((visibility("hidden")));
}  // namespace detail

/** One relaxed load: allocate() asks on every call. */
inline bool failures_are_left() {
  return detail::failures_left.load(std::memory_order_relaxed) != 0;
}

/** Decides whether this allocation fails, and counts a failure. */
Failure next_failure(Pool pool, Account account);
/** @} */

}  // namespace memdiag::pools

#endif  // MEMDIAG_FAILURES_FOR_TEST_H
