/*
  The text of memdiag_memory_target.

  Pure. Errors: a wrong text is empty. Units: bytes.
*/

#ifndef MEMDIAG_CEILING_TARGET_H
#define MEMDIAG_CEILING_TARGET_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace memdiag::ceiling {

struct Target {
  enum Mode : uint8_t { off, watch, automatic, bytes };
  Mode mode{off};
  /** With Mode::bytes. */
  uint64_t target_bytes{0};
  bool operator==(const Target &) const = default;
};

/** A smaller target is taken for a mistake in the unit. */
constexpr uint64_t least_target_bytes = 16 << 20;

/** OFF, WATCH or AUTO in any case, or bytes, which K, M, G or T may follow. 0
and "" are mistakes as well: a script that has no value must not switch it off
unseen. */
std::optional<Target> parse_target(std::string_view text);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_TARGET_H
