#include "mysys/memdiag/accounting/thread_bytes.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "mysys/memdiag/accounting/block_events.h"

namespace memdiag::sessions {
namespace {

/** The times that counting was begun, from 1. Written under the mutex. */
constinit std::atomic<uint32_t> generation{1};

/** Bytes that the running statement took. */
struct Statement {
  uint64_t taken = 0;
  /** Taken less freed, and the most that this was: since the statement began,
  or the innermost interval. */
  int64_t growth = 0;
  int64_t peak = 0;
};

/** A thread's own: written by it alone, so that plain adding will do. */
struct Thread {
  /** The generation of `nets`; 0: the thread is not linked. */
  std::atomic<uint32_t> generation{0};
  std::array<std::atomic<int64_t>, pool_count> nets{};
  Statement statement{};
  /** The running statement's number, by which an interval knows its own. */
  uint64_t statement_number = 0;
  pthread_t id{};
  Thread *next = nullptr;
  Thread *previous = nullptr;
  bool linked = false;
  /** Its last destructors run: who reads it later finds other memory here. */
  bool ending = false;

  Statement_bytes bytes() const {
    return {statement_number, statement.taken, statement.growth,
            statement.peak};
  }

  /** The next statement begins. */
  void end_statement() {
    ++statement_number;
    statement.growth = 0;
    statement.taken = 0;
    statement.peak = 0;
  }

  bool is_current() const {
    return generation.load(std::memory_order_relaxed) ==
           sessions::generation.load(std::memory_order_relaxed);
  }
};

constinit thread_local Thread this_thread;

constinit std::mutex threads_mutex;
constinit Thread *first_thread = nullptr;
constinit Nets gone{};

/** Counts from now on as gone what the thread holds. Caller holds the mutex. */
void fold(Thread *thread) {
  const bool counts = thread->is_current();
  for (size_t i = 0; i < pool_count; ++i) {
    if (counts) gone[i] += thread->nets[i].load(std::memory_order_relaxed);
    thread->nets[i].store(0, std::memory_order_relaxed);
  }
}

void end_of_thread(void *) {
  Thread &mine = this_thread;
  const std::lock_guard<std::mutex> guard(threads_mutex);
  fold(&mine);
  if (mine.next != nullptr) mine.next->previous = mine.previous;
  (mine.previous != nullptr ? mine.previous->next : first_thread) = mine.next;
  mine.linked = false;
  mine.ending = true;
  mine.generation.store(0, std::memory_order_relaxed);
}

/** Makes the calling thread count from 0, for all to see.
@return false: it ends, or the system has no room for its end to be noted */
bool begin(Thread *mine) {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, end_of_thread) == 0
               ? std::optional<pthread_key_t>(made)
               : std::nullopt;
  }();
  if (mine->ending || !key) return false;
  if (!mine->linked && pthread_setspecific(*key, mine) != 0) return false;
  mine->end_statement();
  const std::lock_guard<std::mutex> guard(threads_mutex);
  for (auto &net : mine->nets) net.store(0, std::memory_order_relaxed);
  mine->generation.store(generation.load(), std::memory_order_relaxed);
  if (mine->linked) return true;
  mine->id = pthread_self();
  mine->previous = nullptr;
  mine->next = first_thread;
  if (first_thread != nullptr) first_thread->previous = mine;
  first_thread = mine;
  mine->linked = true;
  return true;
}

}  // namespace

void track_threads(bool on) {
  const std::lock_guard<std::mutex> guard(threads_mutex);
  if (on) {
    generation.fetch_add(1);
    gone.fill(0);
  }
  block_events::set(block_events::sessions, on ? note : nullptr);
}

void note(Pool pool, pools::Account, int64_t bytes) noexcept {
  Thread &mine = this_thread;
  const auto i = static_cast<size_t>(pool);
  if (!mine.is_current() && !begin(&mine)) [[unlikely]] {
    const std::lock_guard<std::mutex> guard(threads_mutex);
    gone[i] += bytes;
    return;
  }
  mine.nets[i].store(mine.nets[i].load(std::memory_order_relaxed) + bytes,
                     std::memory_order_relaxed);
  Statement &statement = mine.statement;
  if (bytes > 0) statement.taken += static_cast<uint64_t>(bytes);
  statement.growth += bytes;
  statement.peak = std::max(statement.peak, statement.growth);
}

void session_began() noexcept { this_thread.end_statement(); }

void session_ended() noexcept {
  const std::lock_guard<std::mutex> guard(threads_mutex);
  fold(&this_thread);
}

bool count_thread() noexcept {
  Thread &mine = this_thread;
  return mine.is_current() || begin(&mine);
}

std::optional<Statement_bytes> statement_bytes() noexcept {
  const Thread &mine = this_thread;
  if (!mine.is_current()) return std::nullopt;
  return mine.bytes();
}

void set_statement_peak(int64_t peak) noexcept {
  this_thread.statement.peak = peak;
}

Statement_bytes end_statement() noexcept {
  const Statement_bytes ended = this_thread.bytes();
  this_thread.end_statement();
  return ended;
}

Holdings holdings() {
  Holdings found;
  // Room is made while the mutex is not held; more may have come meanwhile.
  for (size_t room = 256;; room *= 2) {
    found.threads.reserve(room);
    const std::lock_guard<std::mutex> guard(threads_mutex);
    found.threads.clear();
    found.gone = {};
    if (!block_events::is_on(block_events::sessions)) return found;
    found.gone = gone;
    const Thread *thread = first_thread;
    for (; thread != nullptr; thread = thread->next) {
      if (!thread->is_current()) continue;
      if (found.threads.size() == found.threads.capacity()) break;
      Thread_nets &copy = found.threads.emplace_back();
      copy.thread = thread->id;
      for (size_t i = 0; i < pool_count; ++i)
        copy.nets[i] = thread->nets[i].load(std::memory_order_relaxed);
    }
    if (thread == nullptr) return found;
  }
}

void hold_threads() noexcept { threads_mutex.lock(); }

// The child does not have the other threads: what they held has gone.
void let_go_of_threads(bool in_child) noexcept {
  if (in_child) {
    Thread *const mine = &this_thread;
    for (Thread *other = first_thread; other != nullptr; other = other->next)
      if (other != mine) fold(other);
    mine->next = mine->previous = nullptr;
    first_thread = mine->linked ? mine : nullptr;
  }
  threads_mutex.unlock();
}

}  // namespace memdiag::sessions
