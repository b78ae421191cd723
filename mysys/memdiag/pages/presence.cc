#include "mysys/memdiag/pages/presence.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/base/interruption.h"

namespace memdiag {
namespace {

/** The interface of PAGEMAP_SCAN; headers of older kernels do not have it. */
struct Scanned_region {
  uint64_t begin;
  uint64_t end;
  uint64_t categories;
};
struct Scan_argument {
  uint64_t size;
  uint64_t flags;
  uint64_t begin;
  uint64_t end;
  /** Out: where to go on. */
  uint64_t walk_end;
  uint64_t regions;
  uint64_t regions_room;
  uint64_t max_pages;
  uint64_t category_inverted;
  uint64_t category_mask;
  uint64_t category_anyof_mask;
  uint64_t return_mask;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, Scan_argument);
constexpr uint64_t page_is_present = 1 << 3;
constexpr uint64_t page_is_zero = 1 << 5;
constexpr uint64_t page_is_huge = 1 << 6;

/** @return the number of regions, or -1 */
int scan(int fd, Address_range range, Scanned_region *regions, size_t room,
         uint64_t *walk_end) {
  Scan_argument argument{};
  argument.size = sizeof argument;
  argument.begin = range.begin;
  argument.end = range.end;
  argument.regions = reinterpret_cast<uint64_t>(regions);
  argument.regions_room = room;
  argument.category_inverted = page_is_zero;
  argument.category_mask = page_is_present | page_is_zero;
  argument.return_mask = page_is_present | page_is_huge;
  const int found = ioctl(fd, pagemap_scan, &argument);
  *walk_end = argument.walk_end;
  return found;
}

}  // namespace

Page_scan::Page_scan()
    : m_fd(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
  const auto here = reinterpret_cast<uintptr_t>(this) / page_size();
  Scanned_region region;
  uint64_t walk_end;
  if (m_fd < 0 || scan(m_fd, {here * page_size(), (here + 1) * page_size()},
                       &region, 1, &walk_end) >= 0)
    return;
  close(m_fd);
  m_fd = -1;
}

Page_scan::~Page_scan() {
  if (m_fd >= 0) close(m_fd);
}

bool Page_scan::mark(Address_range range, unsigned char *present) const {
  const size_t page = page_size();
  memset(present, 0, range.bytes() / page);
  for (uint64_t at = range.begin; at < range.end;) {
    Scanned_region regions[64];
    uint64_t next;
    const int found = scan(m_fd, {at, range.end}, regions, 64, &next);
    if (found < 0 || next <= at) return false;
    for (int i = 0; i < found; ++i)
      memset(present + (regions[i].begin - range.begin) / page,
             (regions[i].categories & page_is_huge) != 0 ? is_there | is_huge
                                                         : is_there,
             (regions[i].end - regions[i].begin) / page);
    at = next;
  }
  return true;
}

size_t page_size() {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

/** Ask about pages from `at` on, as many as there is room for. */
bool Presence::load(uintptr_t at) {
  if (fault::at(fault::Point::pages)) {
    errno = EIO;
    return false;
  }
  if (is_interrupted()) {
    errno = EINTR;
    return false;
  }
  const size_t page = page_size();
  size_t pages = std::min((m_range.end - at + page - 1) / page, m_ask);
  if (m_scan != nullptr && *m_scan) {
    m_window = {at, at + pages * page};
    m_mapped = m_scan->mark(m_window, m_present);
    if (m_mapped) return true;
  }
  m_scanned = false;
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

std::optional<uint64_t> Presence::bytes(Address_range part,
                                        uint64_t *huge_bytes) {
  const size_t page = page_size();
  uint64_t pages = 0;
  uint64_t huge_pages = 0;
  for (uintptr_t at = part.begin / page * page; at < part.end;) {
    if ((at < m_window.begin || at >= m_window.end) && !load(at))
      return std::nullopt;
    const uintptr_t end = std::min(m_window.end, part.end);
    const size_t count = (end - at + page - 1) / page;
    if (m_mapped) {
      const unsigned char *first = m_present + (at - m_window.begin) / page;
      const auto count_of = [first, count](unsigned char bit) {
        return std::count_if(first, first + count, [bit](unsigned char one) {
          return (one & bit) != 0;
        });
      };
      pages += count_of(Page_scan::is_there);
      if (huge_bytes != nullptr) huge_pages += count_of(Page_scan::is_huge);
    }
    at += count * page;
  }
  if (huge_bytes != nullptr) *huge_bytes += huge_pages * page;
  return pages * page;
}

}  // namespace memdiag
