/*
  Statistics of Performance Schema whose empty state is zero
  (patches/diets/0010, patches/diets/0035).

  An array of statistics comes from the system's zero pages. If zeros mean "no
  event yet", nobody need write to an entry before its first event, and a page
  that no event writes to takes no memory. Upstream's empty minimum is the
  highest number; here its complement is kept.

  Upstream empties all entries of a new array, and of a thread's, an account's,
  a user's and a host's at once. So reset() of an entry writes only if there is
  something to empty.

  Plain C++ without any header of the server or of this layer. Threads: as for
  the statistics themselves.
*/

#ifndef MEMDIAG_PFS_ZERO_H
#define MEMDIAG_PFS_ZERO_H

#include <cstddef>
#include <cstring>
#include <new>

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

/** True for an entry that was never written, and for one that was emptied. All
its bytes are zero. */
template <class Stat>
bool all_zero(const Stat *stat) {
  static constexpr unsigned char zeros[sizeof(Stat)]{};
  return memcmp(stat, zeros, sizeof(Stat)) == 0;
}

/** Makes *stat a new Stat, whose bytes are all zero. An entry that is so
already is not written. */
template <class Stat>
void empty_if_written(Stat *stat) {
  if (!all_zero(stat)) new (stat) Stat();
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
