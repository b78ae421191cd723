/*
  Statistics of Performance Schema whose empty state is zero (patches/0010,
  patches/0035).

  An array of statistics comes from the system's zero pages. If zeros mean "no
  event yet", nobody need write to an entry before its first event, and a page
  that no event writes to takes no memory. Upstream's empty minimum is the
  highest number; here its complement is kept.

  Plain C++ without any header of the server or of this layer. Threads: as for
  the statistics themselves.
*/

#ifndef MEMDIAG_PFS_ZERO_H
#define MEMDIAG_PFS_ZERO_H

#include <cstddef>
#include <cstring>

namespace memdiag {

/** A minimum. Its zero bytes stand for ULLONG_MAX. */
class Minimum {
 public:
  operator unsigned long long() const { return ~m_complement; }
  Minimum &operator=(unsigned long long value) {
    m_complement = ~value;
    return *this;
  }

 private:
  unsigned long long m_complement;
};

/** The same as stat->reset(), where that makes all bytes zero. Zeros are not
written again. */
template <class Stat>
void reset_if_written(Stat *stat) {
  static constexpr unsigned char zeros[sizeof(Stat)]{};
  if (memcmp(stat, zeros, sizeof(Stat)) != 0) stat->reset();
}

/** The same as memcpy(stat, &empty, sizeof(Stat)). What is the same already is
not written. */
template <class Stat>
void copy_where_different(Stat *stat, const Stat &empty) {
  constexpr size_t part = 512;
  auto *const to = reinterpret_cast<unsigned char *>(stat);
  const auto *const from = reinterpret_cast<const unsigned char *>(&empty);
  for (size_t at = 0; at < sizeof(Stat); at += part) {
    const size_t size = sizeof(Stat) - at < part ? sizeof(Stat) - at : part;
    if (memcmp(to + at, from + at, size) != 0) memcpy(to + at, from + at, size);
  }
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_ZERO_H
