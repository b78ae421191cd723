#include "mysys/memdiag/profiling/statement_stacks.h"

#include <algorithm>

namespace memdiag::profiling {
namespace {

constexpr auto by_bytes = [](const auto &a, const auto &b) {
  return a.bytes < b.bytes;
};

}  // namespace

void Statement_stacks::add(uint32_t site, double bytes) {
  auto stack =
      std::find_if(m_stacks.begin(), m_stacks.end(),
                   [site](const Stack &each) { return each.site == site; });
  if (stack == m_stacks.end()) {
    stack = std::min_element(m_stacks.begin(), m_stacks.end(), by_bytes);
    m_bytes -= stack->bytes;
    *stack = {site, 0};
  }
  stack->bytes += bytes;
  m_bytes += bytes;
  if (m_bytes <= m_peak_bytes) return;
  m_peak_bytes = m_bytes;
  m_top_at_peak =
      std::max_element(m_stacks.begin(), m_stacks.end(), by_bytes)->site;
}

void Statement_stacks::remove(uint32_t site, double bytes) {
  for (Stack &stack : m_stacks) {
    if (stack.site != site) continue;
    // Blocks from before the statement may go, too.
    bytes = std::min(bytes, stack.bytes);
    stack.bytes -= bytes;
    m_bytes -= bytes;
  }
}

}  // namespace memdiag::profiling
