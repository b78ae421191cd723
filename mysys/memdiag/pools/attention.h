/*
  One word that allocate() reads for each block. It says whether tests make
  allocations fail (failures_for_test.h), whether the profiler needs each
  request, and whether memory is short below the ceiling. It is nearly always 0.
  Then all of them cost an allocation one load and one branch.

  Threads: any; the word is changed by an atomic operation.
*/

#ifndef MEMDIAG_ATTENTION_H
#define MEMDIAG_ATTENTION_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

enum class Attention : uint32_t { failures = 1, profiler = 2, ceiling = 4 };

namespace detail {
/** Hidden, as all that the path of an allocation reads: position-independent
code would otherwise look its address up. */
extern std::atomic<uint32_t> attention __attribute__((visibility("hidden")));
}  // namespace detail

inline uint32_t attention() {
  return detail::attention.load(std::memory_order_relaxed);
}
/** In order: the caller then sees what the thread stored that set the value. */
inline uint32_t attention_in_order() {
  return detail::attention.load(std::memory_order_acquire);
}
inline bool is_set(uint32_t attention, Attention bit) {
  return (attention & static_cast<uint32_t>(bit)) != 0;
}
void set_attention(Attention bit, bool on) noexcept;

/** The calling thread's last request to allocate(), while
Attention::profiler is set. jemalloc's hook knows the block and not its route.
*/
struct Request {
  Pool pool;
  Account account;
};
extern constinit thread_local Request request_of_thread;

/** malloc() serves the calling thread for a pool. InnoDB's heaps have their
small blocks from there, and all of them where their pools are disabled, below
latches of pages. So the thread does not wait there. Others' blocks of disabled
pools come without this mark. */
inline constinit thread_local bool in_malloc_of_pool = false;

/** Blocks of this size are watched whether the attention is set or not. They
are few, and much of them may be untouched for long. */
constexpr size_t watched_size = 1 << 20;

/** The account of the bytes of binary log events. 0: it is not known. */
inline constinit std::atomic<Account> account_of_events{0};
/** Accounts of blocks whose users look whether they got them. Others may be a
memory root's, whose users do not. */
inline constinit std::array<std::atomic<bool>, max_accounts> may_be_refused{};
/** Accounts of buffers of a setting's size. Where upstream gets none of an
IO_CACHE, it asks for a quarter less, down to 8 KB. The binary-log cache of a
transaction keeps the buffer that it has. */
inline constinit std::array<std::atomic<bool>, max_accounts> may_be_smaller{};

struct Watcher {
  /** Called by allocate() before it takes a shard or a flag of an arena, so it
  may sleep: for watched blocks, and for all while Attention::ceiling is set.
  @return false: the caller gets no block */
  bool (*ask)(Pool pool, size_t size, Account account);
  /** A watched block was allocated. malloc() may have served it. */
  void (*allocated)(const void *block, size_t size);
  /** A watched block is about to be freed, or one that malloc() served and of
  which the size is not known. */
  void (*freed)(const void *block);
};
/** @param watcher  lives for ever; nullptr: none */
void set_watcher(const Watcher *watcher) noexcept;
const Watcher *watcher() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_ATTENTION_H
