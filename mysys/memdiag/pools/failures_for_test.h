/*
  Allocations that fail on purpose, so that tests see what the server does then.

  Threads: any. Overlapping calls of fail_allocations_for_test() mix their
  settings, but count every failure once.
*/

#ifndef MEMDIAG_FAILURES_FOR_TEST_H
#define MEMDIAG_FAILURES_FOR_TEST_H

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
  /** false: this one succeeds, and is not counted. Called in allocate(), for
  those that the other members choose; it may lock and allocate. */
  bool (*may_fail)(){nullptr};
  /** One fails. As may_fail. */
  void (*fails)(){nullptr};
};

/** Make allocations from pools fail.
@return how many failures of the call before have not happened */
uint32_t fail_allocations_for_test(const Failures &failures);

/** @name For allocate(), while Attention::failures is set @{ */
enum class Failure { none, soft, hard };

/** Decides whether this allocation fails, and counts a failure. */
Failure next_failure(Pool pool, Account account);
/** @} */

}  // namespace memdiag::pools

#endif  // MEMDIAG_FAILURES_FOR_TEST_H
