#include "mysys/memdiag/accounting/scopes.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/routes/routes.h"

namespace memdiag {
namespace {

using pools::Account;
using pools::max_accounts;

/** Bytes that a thread took of a route less those it freed, in open scopes. */
struct Net {
  int64_t bytes;
  int64_t blocks;
  Pool pool;
  bool touched;
};

struct Thread_nets {
  /** Tracking was begun so many times when these were made. */
  uint32_t generation;
  size_t touched_count;
  std::array<Account, max_accounts> touched;
  std::array<Net, max_accounts> nets;
};

struct Survivors {
  int64_t bytes;
  int64_t blocks;
  uint64_t scopes;
  /** CLOCK_MONOTONIC gives both times. Nothing sets this clock, so ages are
  right. */
  uint64_t since_us;
  uint64_t last_us;
  Pool pool;
};

constinit std::atomic<uint32_t> generation{0};
constinit std::mutex mutex;
/** By account; under the mutex. */
constinit std::array<Survivors, max_accounts> all_survivors{};

constinit thread_local Thread_nets *thread_nets = nullptr;
/** The thread is ending: what its last destructors free is not noted. */
constinit thread_local bool thread_is_ending = false;

void forget_thread(void *nets) {
  thread_is_ending = true;
  thread_nets = nullptr;
  free(nets);
}

/** Nets of the calling thread; made if there are none, from malloc(), so that
noting never comes back here. */
Thread_nets *nets_of_thread() {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, forget_thread) == 0
               ? std::optional<pthread_key_t>(made)
               : std::nullopt;
  }();
  if (thread_is_ending || !key) return nullptr;
  const uint32_t now = generation.load(std::memory_order_relaxed);
  if (thread_nets != nullptr && thread_nets->generation != now) {
    for (size_t i = 0; i < thread_nets->touched_count; ++i)
      thread_nets->nets[thread_nets->touched[i]] = {};
    thread_nets->touched_count = 0;
    thread_nets->generation = now;
  }
  if (thread_nets == nullptr) {
    auto *nets = static_cast<Thread_nets *>(calloc(1, sizeof(Thread_nets)));
    if (nets == nullptr || pthread_setspecific(*key, nets) != 0) {
      free(nets);
      return nullptr;
    }
    nets->generation = now;
    thread_nets = nets;
  }
  return thread_nets;
}

/** Add what a scope left to a route's survivors. Caller holds the mutex. */
void add(Survivors *to, const Net &net) {
  to->bytes += net.bytes;
  to->blocks += net.blocks;
  to->pool = net.pool;
  if (to->blocks <= 0) {
    // More was freed than was seen to survive: it came before the tracking.
    *to = {};
    return;
  }
  if (net.blocks <= 0) return;
  ++to->scopes;
  to->last_us = clock_us(CLOCK_MONOTONIC);
  if (to->since_us == 0) to->since_us = to->last_us;
}

}  // namespace

namespace scopes {

void track(bool on) {
  const std::lock_guard<std::mutex> guard(mutex);
  if (on) {
    generation.fetch_add(1);
    all_survivors.fill({});
  }
  block_events::set(block_events::survivors, on ? note : nullptr);
}

void ended(Scope scope) {
  Thread_nets *const mine = nets_of_thread();
  if (mine == nullptr) return;
  size_t kept = 0;
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  for (size_t i = 0; i < mine->touched_count; ++i) {
    const Account account = mine->touched[i];
    Net &net = mine->nets[account];
    if (scope_of(net.pool) != scope) {
      mine->touched[kept++] = account;
      continue;
    }
    if (net.blocks != 0 || net.bytes != 0) {
      if (!lock.owns_lock()) lock.lock();
      if (mine->generation == generation.load())
        add(&all_survivors[account], net);
    }
    net = {};
  }
  mine->touched_count = kept;
}

void note(Pool pool, Account account, int64_t bytes) noexcept {
  if (!scope_of(pool)) return;
  Thread_nets *const mine = nets_of_thread();
  if (mine == nullptr) return;
  Net &net = mine->nets[account];
  if (!net.touched) {
    net.touched = true;
    net.pool = pool;
    mine->touched[mine->touched_count++] = account;
  }
  net.bytes += bytes;
  net.blocks += bytes > 0 ? 1 : -1;
}

std::vector<Row> survivors() {
  // Statements that leave survivors wait for the mutex.
  std::vector<Survivors> copies(max_accounts);
  {
    const std::lock_guard<std::mutex> guard(mutex);
    std::copy(all_survivors.begin(), all_survivors.end(), copies.begin());
  }
  if (std::none_of(copies.begin(), copies.end(),
                   [](const Survivors &left) { return left.blocks > 0; }))
    return {};
  const std::vector<routes::Row> routes = routes::all();
  std::vector<Row> rows;
  const uint64_t epoch_us = epoch_of_monotonic_us();
  const uint64_t now = clock_us(CLOCK_MONOTONIC);
  for (size_t i = 0; i < routes.size(); ++i) {
    const Survivors &left = copies[i];
    const uint64_t live_blocks = routes[i].live_blocks.value_or(0);
    if (left.blocks <= 0 || live_blocks == 0) continue;
    rows.push_back(
        {routes[i].name, spec_of(left.pool).name,
         scope_names[static_cast<size_t>(*scope_of(left.pool))],
         std::min(static_cast<uint64_t>(std::max<int64_t>(left.bytes, 0)),
                  *routes[i].live_bytes),
         std::min(static_cast<uint64_t>(left.blocks), live_blocks), left.scopes,
         left.since_us + epoch_us, left.last_us + epoch_us,
         now > left.since_us
             ? static_cast<double>(now - left.since_us) / 1000000
             : 0.0});
  }
  return rows;
}

void hold() noexcept { mutex.lock(); }
void let_go() noexcept { mutex.unlock(); }

}  // namespace scopes
}  // namespace memdiag
