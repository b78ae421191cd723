/*
  Figures that may be unknown, and moments.

  A Reading is empty when its source could not be read. Arithmetic keeps that:
  a result is empty when one of its operands is. A Reading that does not fit is
  empty, too. Plain values: any thread. Units: those of the operands.
*/

#ifndef MEMDIAG_READING_H
#define MEMDIAG_READING_H

#include <algorithm>
#include <cstdint>
#include <optional>

namespace memdiag {

using Reading = std::optional<uint64_t>;

/** Also empty when it does not fit. */
inline Reading sum(Reading a, Reading b) {
  uint64_t result;
  if (!a || !b || __builtin_add_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

/** Also empty when it would be negative. */
inline Reading difference(Reading a, Reading b) {
  return a && b && *a >= *b ? Reading{*a - *b} : std::nullopt;
}

/** Also empty when it does not fit. */
inline Reading product(Reading a, Reading b) {
  uint64_t result;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

/** The lower one of two limits; empty only if neither is known. */
inline Reading lower(Reading a, Reading b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}

/** Known to be 0; an empty reading is not. */
inline bool is_zero(Reading a) { return a && *a == 0; }

/** A moment: microseconds since the epoch. */
struct Timestamp {
  uint64_t us;
  bool operator==(const Timestamp &) const = default;
};

}  // namespace memdiag

#endif  // MEMDIAG_READING_H
