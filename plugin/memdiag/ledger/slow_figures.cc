#include "plugin/memdiag/ledger/slow_figures.h"

#include <algorithm>

#include "plugin/memdiag/ledger/amounts.h"

namespace memdiag::ledger {
namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

bool fits(const Buffer_pool_bytes &then, const Buffer_pool_bytes &now) {
  if (then.mapped != now.mapped) return false;
  if (!then.data || !now.data) return now.mapped == 0;
  const uint64_t few = now.mapped / 128;
  return distance(*now.data, *then.data) <= few &&
         distance(now.parked, then.parked) <= few;
}

}  // namespace

Slow_regions::Slow_regions(const std::optional<Buffer_pool_pages> &counted)
    : m_totals(regions::totals()) {
  m_buffer_pool.mapped = m_totals[buffer_pool_kind].mapped_bytes;
  if (!counted) return;
  m_buffer_pool.parked = counted->parked_bytes;
  // mincore() shows reserved pages, and VmRSS does not have them.
  m_buffer_pool.data =
      counted->in_reserved == Buffer_pool_pages::In_reserved::all
          ? 0
          : counted->data_pages * counted->page_bytes;
}

bool Slow_regions::fit(const Slow_figures &earlier) const {
  // Threads that come and go use their stacks differently: with many of them
  // replaced, the mean of the earlier stacks says little.
  const uint64_t stacks = m_totals[stack_kind].count;
  return distance(earlier.stacks, stacks) <=
             std::max<uint64_t>(earlier.stacks, stacks) / 8 &&
         fits(earlier.buffer_pool, m_buffer_pool);
}

uint64_t Slow_regions::stack_bytes(const Slow_figures &earlier) const {
  return proportion(earlier.stack_bytes, m_totals[stack_kind].count,
                    earlier.stacks);
}

/** A new page of data makes memory resident that was not, unless it lies in
reserved pages. A page that InnoDB gives up stays resident on its free list. */
uint64_t Slow_regions::buffer_pool_bytes(const Slow_figures &earlier) const {
  const Buffer_pool_bytes &then = earlier.buffer_pool;
  const uint64_t new_data = m_buffer_pool.data && then.data
                                ? minus_or_zero(*m_buffer_pool.data, *then.data)
                                : 0;
  return std::min(
      m_buffer_pool.mapped - m_totals[buffer_pool_kind].reserved_bytes,
      then.resident + new_data);
}

}  // namespace memdiag::ledger
