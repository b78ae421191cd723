#include "mysys/memdiag/ceiling/ask.h"

#include <algorithm>

namespace memdiag::ceiling {
bool Tokens::take(int64_t bytes) {
  int64_t taken = taken_bytes();
  do {
    if (taken + bytes > m_all.load(std::memory_order_relaxed)) return false;
  } while (!m_taken.compare_exchange_weak(taken, taken + bytes,
                                          std::memory_order_relaxed));
  return true;
}

Answer answer(const Account &account, Tokens *tokens, Asked *asked,
              bool told_to_end, Refusal refusal, uint64_t now_us,
              uint64_t rounds) {
  if (account.level() != Level::red) return Answer::room;
  if (told_to_end) {
    if (refusal == Refusal::at_once &&
        account.left_bytes() >= -account.marks().reserve_bytes / 2)
      return Answer::room;
    if (refusal >= Refusal::at_once) return Answer::refuse;
    if (tokens->take(asked->bytes)) return Answer::tokens;
    if (refusal == Refusal::without_tokens ||
        (refusal == Refusal::too_large && tokens->is_too_large(asked->bytes)))
      return Answer::refuse;
  }
  if (rounds != asked->seen_rounds) {
    asked->seen_rounds = rounds;
    asked->seen_us = now_us;
  }
  const uint32_t halvings = std::min(asked->went_on, most_halvings);
  const int64_t reserve = account.marks().reserve_bytes;
  const bool is_deadly =
      asked->bytes > reserve && account.left_bytes() < -reserve;
  const uint64_t longest_us =
      is_deadly ? longest_large_ask_us : longest_ask_us >> halvings;
  const bool long_ago = now_us - asked->began_us >= longest_us;
  const bool many_rounds =
      rounds - asked->began_rounds >= longest_ask_rounds >> halvings;
  const bool no_rounds = now_us - asked->seen_us >= longest_us;
  if (!(long_ago && many_rounds) && !no_rounds) return Answer::wait;
  if (refusal == Refusal::after_the_wait && account.left_bytes() < 0)
    return Answer::refuse;
  return is_deadly && refusal != Refusal::never ? Answer::refuse
                                                : Answer::went_on;
}

}  // namespace memdiag::ceiling
