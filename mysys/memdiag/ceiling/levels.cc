#include "mysys/memdiag/ceiling/levels.h"

#include <algorithm>
#include <limits>

namespace memdiag::ceiling {
namespace {

constexpr int64_t mb = 1 << 20;
constexpr int64_t growth_bytes_per_us = 4 << 10;
constexpr uint64_t min_look_us = 1'000;
constexpr uint64_t max_look_us = 250'000;

/** A limit of some exabytes is none: half of the range cannot overflow. */
int64_t bounded(uint64_t bytes) {
  return static_cast<int64_t>(
      std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max() / 2));
}

Marks marks(int64_t limit_bytes, int64_t target_bytes, uint64_t running) {
  const int64_t statements = bounded(std::min<uint64_t>(running, 1 << 20));
  return {target_bytes, std::max(64 * mb, limit_bytes / 16),
          std::max({16 * mb, limit_bytes / 32,
                    statements * int64_t{interval_bytes}})};
}

}  // namespace

Marks marks_of_limit(uint64_t limit_bytes, uint64_t running) {
  const int64_t limit = bounded(limit_bytes);
  return marks(limit, limit - std::max(32 * mb, limit / 32), running);
}

Marks marks_of_target(uint64_t target_bytes, uint64_t running) {
  const int64_t target = bounded(target_bytes);
  return marks(target, target, running);
}

Level level_of(int64_t left_bytes, const Marks &marks) {
  if (left_bytes < marks.reserve_bytes) return Level::red;
  return left_bytes < marks.plenty_bytes ? Level::yellow : Level::green;
}

uint64_t next_look_us(int64_t left_bytes, const Marks &marks) {
  const int64_t spare = left_bytes - marks.reserve_bytes;
  if (spare <= 0) return min_look_us;
  return std::clamp(static_cast<uint64_t>(spare / growth_bytes_per_us),
                    min_look_us, max_look_us);
}

}  // namespace memdiag::ceiling
