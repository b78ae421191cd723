#include "plugin/memdiag/host/member_memory.h"

#include <algorithm>
#include <cmath>

namespace memdiag::member_memory {

unsigned used_percent(const Figures &figures) {
  if (figures.total_bytes == 0) return 0;
  const double free = static_cast<double>(figures.available_bytes) /
                      static_cast<double>(figures.total_bytes);
  return 100 - static_cast<unsigned>(std::round(100 * std::min(free, 1.0)));
}

std::optional<Figures> Reader::read(uint64_t now_us,
                                    unsigned purge_above_percent) {
  std::optional<Figures> found = read_once(now_us);
  if (!found || purge_above_percent == 0 ||
      used_percent(*found) <= purge_above_percent)
    return found;
  m_purge();
  return read_once(now_us);
}

std::optional<Figures> Reader::read_once(uint64_t now_us) {
  const host::Limit_figures figures = m_limit_reader.read(now_us);
  const Reading limit = host::limit_bytes(figures);
  if (!limit || *limit == 0 || !figures.room_bytes) return std::nullopt;
  return Figures{*limit, std::min(*limit, *figures.room_bytes)};
}

}  // namespace memdiag::member_memory
