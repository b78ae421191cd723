/*
  The ask: a running statement wants memory. These functions decide whether its
  thread goes on, waits, or goes on although no memory came.

  A statement that was told to end may take from the reserve, as far as there
  are tokens. They come back at its end. Without tokens it could not end. A
  block that is larger than all tokens is refused where that is safe: no reserve
  is made for it.

  Pure but for the account and the tokens. Threads: any; an Asked belongs to
  one. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_ASK_H
#define MEMDIAG_CEILING_ASK_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/ceiling/account.h"

namespace memdiag::ceiling {

/** The part of the reserve that statements may take that were told to end. */
class Tokens {
 public:
  /** Another reserve: what was taken stays taken. */
  void set_all(int64_t bytes) { m_all.store(bytes, std::memory_order_relaxed); }
  bool take(int64_t bytes);
  /** So much can never be taken. */
  bool is_too_large(int64_t bytes) const {
    return bytes > m_all.load(std::memory_order_relaxed);
  }
  void give_back(int64_t bytes) {
    m_taken.fetch_sub(bytes, std::memory_order_relaxed);
  }
  int64_t taken_bytes() const {
    return m_taken.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> m_all{0};
  std::atomic<int64_t> m_taken{0};
};

/** A wait ends after this time and so many rounds of the giver. It also ends
when no round ends for this time: the giver may wait for a mutex that the
waiting thread holds. */
constexpr uint64_t longest_ask_us = 5'000'000;
/** The wait for a block that is larger than the reserve, and does not fit into
another one beyond the target: to go on would end the server. Then it is
refused, if a pool may refuse it. */
constexpr uint64_t longest_large_ask_us = 50'000'000;
constexpr uint64_t longest_ask_rounds = 100;
/** See Asked::went_on. */
constexpr uint32_t most_halvings = 6;

struct Asked {
  /** 0: only what the thread has taken already. */
  int64_t bytes;
  uint64_t began_us;
  /** Rounds that had ended then. */
  uint64_t began_rounds;
  /** The last round that the thread saw, and when it saw it first. */
  uint64_t seen_rounds;
  uint64_t seen_us;
  /** So many waits of the statement ended without room, one after the other.
  Each makes the next one half as long, down to a 64th: a statement of DDL asks
  often, and is never told to end. */
  uint32_t went_on{0};
};

/** When a pool may refuse a statement a block. The statement was told to end,
but for after_the_wait and longest_large_ask_us. */
enum class Refusal : uint8_t {
  never,
  /** If it is larger than the reserve. */
  too_large,
  /** If there are no tokens for it now. */
  without_tokens,
  /** Although there are tokens: the block may stay when the statement has
  ended, and its tokens would come back. But not while half of the reserve
  beyond the target is left: not all code can do without its block. */
  at_once,
  /** The session keeps the block, and the end of the statement would not give
  it back. A statement that was told to end is refused at once. Behind the
  target, any other is refused when its wait is over, and does not go on. */
  after_the_wait
};

enum class Answer : uint8_t {
  /** There is room. */
  room,
  /** Tokens were taken: give them back when the statement ends. */
  tokens,
  wait,
  /** The block may be refused. */
  refuse,
  /** There is no room, and the wait was as long as it may be. */
  went_on
};

/** `bytes` of the ask are promised already. */
Answer answer(const Account &account, Tokens *tokens, Asked *asked,
              bool told_to_end, Refusal refusal, uint64_t now_us,
              uint64_t rounds);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_ASK_H
