#include "memdiag_presence.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace memdiag {
namespace {
constinit std::atomic<bool> fails{false};
}

size_t page_size() {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

/** Ask about pages from `at` on, as many as there is room for. */
bool Presence::load(uintptr_t at) {
  if (fails.load(std::memory_order_relaxed)) {
    errno = EIO;
    return false;
  }
  const size_t page = page_size();
  size_t pages = std::min((m_range.end - at + page - 1) / page, m_ask);
  int error;
  // A part may not be mapped: the main thread's stack grows, others unmap.
  while ((error = mincore(reinterpret_cast<void *>(at), pages * page,
                          m_present)) != 0 &&
         errno == ENOMEM && pages > 1)
    pages /= 2;
  m_mapped = error == 0;
  m_ask = m_mapped ? std::min(2 * pages, sizeof m_present) : 1;
  m_window = {at, at + pages * page};
  return m_mapped || errno == ENOMEM;
}

std::optional<uint64_t> Presence::bytes(Address_range part) {
  const size_t page = page_size();
  uint64_t pages = 0;
  for (uintptr_t at = part.begin / page * page; at < part.end;) {
    if ((at < m_window.begin || at >= m_window.end) && !load(at))
      return std::nullopt;
    const uintptr_t end = std::min(m_window.end, part.end);
    const size_t count = (end - at + page - 1) / page;
    if (m_mapped) {
      const unsigned char *first = m_present + (at - m_window.begin) / page;
      pages += std::count_if(first, first + count,
                             [](unsigned char one) { return one & 1; });
    }
    at += count * page;
  }
  return pages * page;
}

void Presence::fail_for_test(bool fail) { fails.store(fail); }

}  // namespace memdiag
