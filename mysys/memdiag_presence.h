/*
  Which pages of the process are in physical memory. The kernel is asked
  (mincore), which neither touches nor locks a page: 1 ms for a gigabyte. A page
  that is swapped out is not; one that was only read and never written is,
  though the kernel counts the shared page of zeros that it stands for as
  nobody's.

  A Presence belongs to one thread. Nothing is allocated.
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
};

class Presence {
 public:
  /** To ask about parts of this range, in ascending order best. */
  explicit Presence(Address_range range) : m_range(range) {}

  /** What of a part is in physical memory, in whole pages; what is not mapped
  is not. @return empty: the kernel did not tell, which errno explains */
  std::optional<uint64_t> bytes(Address_range part);

  /** Treat the kernel as not telling from now on (EIO), to test what that looks
  like. */
  static void fail_for_test(bool fail);

 private:
  bool load(uintptr_t at);

  const Address_range m_range;
  /** What m_present tells of. */
  Address_range m_window{0, 0};
  bool m_mapped = false;
  unsigned char m_present[4096];
  /** Pages to ask about next: where none are mapped, one by one. */
  size_t m_ask = sizeof m_present;
};

}  // namespace memdiag

#endif  // MEMDIAG_PRESENCE_H
