/*
  Which pages of the process are in physical memory. The kernel is asked, which
  neither touches nor locks a page. A page that is swapped out is not there.

  mincore() takes 1 ms for a gigabyte, and counts pages of anonymous memory that
  were read but never written: all of them are the kernel's one page of zeros,
  which no process owns. PAGEMAP_SCAN (Linux 6.7,
  Documentation/admin-guide/mm/pagemap.rst) tells these apart in eight times the
  time, and which pages are parts of huge ones.

  A Presence belongs to one thread; any thread may use a Page_scan. Nothing is
  allocated.
*/

#ifndef MEMDIAG_PRESENCE_H
#define MEMDIAG_PRESENCE_H

#include <cstddef>
#include <cstdint>
#include <optional>

namespace memdiag {

size_t page_size();

/** Addresses from begin up to end. */
struct Address_range {
  uintptr_t begin;
  uintptr_t end;
  size_t bytes() const { return end - begin; }
  /** True if so many bytes from `at` on lie in the range, for any `at`. No sum
  of addresses is formed, because it could pass the end of the address space. */
  bool has(uintptr_t at, size_t count) const {
    return at >= begin && at < end && count <= end - at;
  }
};

/** True if the kernel has PAGEMAP_SCAN, and lets the process use it: one that
has changed its user may not read its own page map. */
class Page_scan {
 public:
  Page_scan();
  ~Page_scan();
  Page_scan(const Page_scan &) = delete;
  Page_scan &operator=(const Page_scan &) = delete;

  explicit operator bool() const { return m_fd >= 0; }

  /** Marks by mark(): a page that is there and not the page of zeros, as
  mincore() tells it, and one in a huge page. */
  static constexpr unsigned char is_there = 1;
  static constexpr unsigned char is_huge = 2;

  /** @param[out] present  a byte for each page of the range
  @return false: the kernel did not tell */
  bool mark(Address_range range, unsigned char *present) const;

 private:
  int m_fd;
};

class Presence {
 public:
  /** To ask about parts of this range, in ascending order best.
  @param scan  asked where it can be; otherwise, and without one, mincore() */
  explicit Presence(Address_range range, const Page_scan *scan = nullptr)
      : m_range(range), m_scan(scan) {}

  /** Bytes of a part in physical memory, in whole pages. Unmapped pages are
  not.
  @param[in,out] huge_bytes  bytes in huge pages are added to it, if a scan can
  tell them apart; see scanned()
  @return empty: the kernel did not tell, which errno explains; EINTR: the
  caller's Interruptible (interruption.h) ended the read */
  std::optional<uint64_t> bytes(Address_range part,
                                uint64_t *huge_bytes = nullptr);

  /** True if all answers so far came from scans, none from mincore(). */
  bool scanned() const { return m_scanned; }

 private:
  bool load(uintptr_t at);

  const Address_range m_range;
  const Page_scan *const m_scan;
  /** The part of memory that m_present describes. */
  Address_range m_window{0, 0};
  bool m_mapped = false;
  bool m_scanned = true;
  unsigned char m_present[4096];
  /** Pages to ask about next: where none are mapped, one by one. */
  size_t m_ask = sizeof m_present;
};

}  // namespace memdiag

#endif  // MEMDIAG_PRESENCE_H
