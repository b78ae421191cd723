#include "mysys/memdiag/pools/failures_for_test.h"

#include <unistd.h>

#include <atomic>

#include "mysys/memdiag/pools/attention.h"

namespace memdiag::pools {
namespace {

/** The allocations that fail while failures_left is not 0. The bit of
attention.h stays set after the last one, until the next call. */
struct Settings {
  std::atomic<uint32_t> to_skip{0};
  /** Pool::count: any. */
  std::atomic<Pool> pool{Pool::count};
  std::atomic<Account> account{0};
  /** 0: any. */
  std::atomic<pid_t> thread{0};
  std::atomic<bool> hard{false};
  std::atomic<bool (*)()> may_fail{nullptr};
  std::atomic<void (*)()> fails{nullptr};
};
constinit Settings settings;
constinit std::atomic<uint32_t> failures_left{0};

/** Count one down. @return false: none was left */
bool take_one(std::atomic<uint32_t> *left) {
  uint32_t now = left->load(std::memory_order_relaxed);
  while (now > 0 && !left->compare_exchange_weak(now, now - 1)) {
  }
  return now > 0;
}

}  // namespace

Failure next_failure(Pool pool, Account account) {
  if (failures_left.load(std::memory_order_acquire) == 0) return Failure::none;
  const Pool of_pool = settings.pool.load(std::memory_order_relaxed);
  const Account of_account = settings.account.load(std::memory_order_relaxed);
  const pid_t of_thread = settings.thread.load(std::memory_order_relaxed);
  if ((of_pool != Pool::count && of_pool != pool) ||
      (of_account != 0 && of_account != account) ||
      (of_thread != 0 && of_thread != gettid()))
    return Failure::none;
  const auto may_fail = settings.may_fail.load(std::memory_order_relaxed);
  if (may_fail != nullptr && !may_fail()) return Failure::none;
  if (take_one(&settings.to_skip) || !take_one(&failures_left))
    return Failure::none;
  if (const auto fails = settings.fails.load(std::memory_order_relaxed);
      fails != nullptr)
    fails();
  return settings.hard.load(std::memory_order_relaxed) ? Failure::hard
                                                       : Failure::soft;
}

uint32_t fail_allocations_for_test(const Failures &failures) {
  const uint32_t left_over = failures_left.exchange(0);
  settings.to_skip.store(failures.skip);
  settings.pool.store(failures.pool.value_or(Pool::count));
  settings.account.store(failures.account);
  settings.thread.store(failures.this_thread ? gettid() : 0);
  settings.hard.store(failures.hard);
  settings.may_fail.store(failures.may_fail);
  settings.fails.store(failures.fails);
  failures_left.store(failures.count, std::memory_order_release);
  set_attention(Attention::failures, failures.count != 0);
  return left_over;
}

}  // namespace memdiag::pools
