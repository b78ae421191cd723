#include "plugin/memdiag/host/safe_limit.h"

#include <algorithm>

namespace memdiag::host {

void Safe_limit::add(uint64_t now_us, Reading needed_bytes) {
  m_known = false;
  while (!m_needs.empty() && now_us - m_needs.front().time_us > window_us)
    m_needs.pop_front();
  if (!needed_bytes) return;
  while (!m_needs.empty() && m_needs.back().bytes <= *needed_bytes)
    m_needs.pop_back();
  m_needs.push_back({now_us, *needed_bytes});
  m_known = true;
}

Reading Safe_limit::bytes() const {
  if (!m_known) return std::nullopt;
  const uint64_t most = m_needs.front().bytes;
  return sum(most, std::max(most / rest_part, least_rest_bytes));
}

}  // namespace memdiag::host
