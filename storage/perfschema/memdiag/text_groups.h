/*
  Where the texts of a thread's old statements lie in Performance Schema's
  memory (patches/diets/0035).

  Upstream reserves the greatest length for each text, 1 KB by default. Most
  texts are much shorter, and each takes a page or a part of one for itself.
  Here a thread has as many groups of the greatest length as it has records.
  Short texts share a group: a text takes the whole, a half, a quarter or an
  eighth.

  There is a place for every text. A text lies within one group, so the texts of
  the other records lie in at most all groups but one, and that one is free.

  The last group is never shared. A reader that takes the place of an old text
  and the length of the new one thus reads beyond the place and not beyond the
  array of all threads: readers of the history take no lock. Such a torn row, as
  rare as in stock, may end with another text.

  Plain C++ without any header of the server or of this layer. Threads: the one
  whose statement it is.
*/

#ifndef MEMDIAG_PFS_TEXT_GROUPS_H
#define MEMDIAG_PFS_TEXT_GROUPS_H

#include <cstddef>

namespace memdiag {

/** A part of a group. */
struct Text_place {
  unsigned group;
  unsigned eighth;    ///< of the group, where it begins
  unsigned halvings;  ///< 0: the whole group, 3: an eighth

  /** @param length  of a group, in bytes */
  size_t begin(size_t length) const { return length / 8 * eighth; }
  size_t size(size_t length) const {
    return halvings == 0 ? length : length / 8 * (8 >> halvings);
  }
  bool operator==(const Text_place &) const = default;
};

/** @return how often a group of `length` bytes can be halved for a text of
`used` bytes, at most three times */
inline unsigned halvings_for(size_t used, size_t length) {
  unsigned halvings = 0;
  while (halvings < 3 && used <= length / 8 * (4 >> halvings)) ++halvings;
  return halvings;
}

/** Which parts of a thread's groups are taken. */
class Text_groups {
 public:
  static constexpr unsigned most = 64;

  /** @param groups  from 1 to `most` */
  explicit Text_groups(unsigned groups) : m_groups(groups) {}

  void take(const Text_place &place) {
    m_taken[place.group] |= mask(place.eighth, place.halvings);
  }

  /** @return the first free part of that size; a whole group if there is none
   */
  Text_place find(unsigned halvings) const {
    for (unsigned group = 0; halvings > 0 && group + 1 < m_groups; ++group)
      for (unsigned eighth = 0; eighth < 8; eighth += 8 >> halvings)
        if ((m_taken[group] & mask(eighth, halvings)) == 0)
          return {group, eighth, halvings};
    unsigned group = 0;
    while (group + 1 < m_groups && m_taken[group] != 0) ++group;
    return {group, 0, 0};
  }

 private:
  static unsigned char mask(unsigned eighth, unsigned halvings) {
    return static_cast<unsigned char>(((1U << (8 >> halvings)) - 1) << eighth);
  }

  const unsigned m_groups;
  unsigned char m_taken[most]{};
};

}  // namespace memdiag

#endif  // MEMDIAG_PFS_TEXT_GROUPS_H
