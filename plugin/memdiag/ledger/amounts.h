/* Arithmetic on bytes that neither wraps around nor divides by zero. */

#ifndef MEMDIAG_AMOUNTS_H
#define MEMDIAG_AMOUNTS_H

#include <cstdint>

namespace memdiag::ledger {

inline uint64_t minus_or_zero(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/** amount * part / whole; 0 where the whole is 0. */
inline uint64_t proportion(uint64_t amount, uint64_t part, uint64_t whole) {
  if (whole == 0) return 0;
  if (part == whole) return amount;  // a quotient could be a byte less
  return static_cast<uint64_t>(static_cast<double>(amount) *
                               static_cast<double>(part) /
                               static_cast<double>(whole));
}

}  // namespace memdiag::ledger

#endif  // MEMDIAG_AMOUNTS_H
