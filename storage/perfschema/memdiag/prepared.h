/*
  The texts and names in Performance Schema's record of a prepared statement
  (patches/diets/0046).

  Upstream's record has room for a text of 1,024 bytes and three names of 192:
  four fifths of its size. Most texts have less than 64 bytes, only PREPARE in
  SQL names a statement, and only a program owns one. Here a record has pointers
  to cells instead.

  Upstream's code uses these members as it used the arrays. For this,
  kept::Text converts to a pointer, and its namespace has a strncpy() and a
  memcpy() to it.

  Ownership: a record keeps its cells for the statements that it serves later. A
  text returns a cell that is too small or more than four times too large; a
  name of an owner never does. Threads: the statement's thread writes. Other
  threads read without a lock, and drop the row if the record's version has
  changed meanwhile. A reader never goes beyond a page of cells: a text's
  length, which upstream keeps, is at most the greatest cell, and the length of
  an owner's name lies with the name. Errors: without memory a text is zeros and
  an owner's name is empty.
*/

#ifndef MEMDIAG_PFS_PREPARED_H
#define MEMDIAG_PFS_PREPARED_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "my_inttypes.h"
#include "my_sys.h"
#include "mysql_com.h"
#include "storage/perfschema/memdiag/cells.h"
#include "storage/perfschema/memdiag/rows.h"
#include "storage/perfschema/pfs_builtin_memory.h"
#include "storage/perfschema/pfs_column_types.h"
#include "storage/perfschema/pfs_global.h"
#include "storage/perfschema/pfs_name.h"

struct PFS_prepared_stmt;

namespace memdiag {

inline constinit Cells prepared_cells([](size_t bytes) {
  return pfs_malloc(&builtin_memory_prepared_stmt, bytes, MYF(MY_ZEROFILL));
});

template <>
inline size_t bytes_beside_rows<PFS_prepared_stmt>() {
  return prepared_cells.bytes();
}

namespace kept {

/** A text of at most `most` bytes; its length is kept by the record. All zeros
is a valid object: records are not constructed. */
template <size_t most>
class Text {
  static_assert(most <= Cells::greatest);

 public:
  void set(const char *text, size_t length) {
    length = std::min(length, most);
    if (length == 0) return;
    char *const place = place_for(Cells::kind_for(length));
    if (place != nullptr) ::memcpy(place, text, length);
  }

  /** @return `most` bytes that can be read */
  operator const char *() const {
    // The reader has read the length already. The place must not be older.
    std::atomic_thread_fence(std::memory_order_acquire);
    const char *const place = m_place.load(std::memory_order_relaxed);
    return place != nullptr ? place : s_zeros;
  }

 private:
  char *place_for(unsigned kind) {
    char *const old = m_place.load(std::memory_order_relaxed);
    if (old != nullptr && m_kind >= kind && m_kind <= kind + 2) return old;
    char *const place = prepared_cells.take(kind);
    m_place.store(place, std::memory_order_relaxed);
    // A text's length is written after this, a name's while the record is
    // dirty.
    std::atomic_thread_fence(std::memory_order_release);
    if (old != nullptr) prepared_cells.give_back(old, m_kind);
    m_kind = kind;
    return place;
  }

  static constexpr char s_zeros[most]{};

  std::atomic<char *> m_place;
  unsigned m_kind;
};

template <size_t most>
void strncpy(Text<most> &to, const char *from, size_t length) {
  to.set(from, length);
}
template <size_t most>
void memcpy(Text<most> &to, const char *from, size_t length) {
  to.set(from, length);
}

/** A name of an owner. All zeros is a valid object.
@tparam Name  upstream's class of the name */
template <class Name>
class Name_of_owner {
  static_assert(sizeof(Name) <= Cells::greatest &&
                alignof(Name) <= Cells::smallest);

 public:
  void reset() { m_is_set.store(false, std::memory_order_relaxed); }

  template <class From>
  Name_of_owner &operator=(const From &from) {
    Name *place = m_place.load(std::memory_order_relaxed);
    if (place == nullptr) {
      char *const cell = prepared_cells.take(Cells::kind_for(sizeof(Name)));
      if (cell == nullptr) {
        reset();
        return *this;
      }
      place = new (cell) Name;
      m_place.store(place, std::memory_order_relaxed);
    }
    *place = from;
    m_is_set.store(true, std::memory_order_release);
    return *this;
  }

  operator const Name &() const {
    static const Name empty;
    return m_is_set.load(std::memory_order_acquire)
               ? *m_place.load(std::memory_order_relaxed)
               : empty;
  }
  const char *ptr() const { return static_cast<const Name &>(*this).ptr(); }
  size_t length() const { return static_cast<const Name &>(*this).length(); }

 private:
  std::atomic<Name *> m_place;
  std::atomic<bool> m_is_set;
};

}  // namespace kept

/** Members of PFS_prepared_stmt, with upstream's names. */
struct Prepared_texts {
  kept::Text<NAME_LEN> m_stmt_name;
  uint m_stmt_name_length;

  kept::Text<COL_INFO_SIZE> m_sqltext;
  uint m_sqltext_length;

  ulonglong m_owner_thread_id;
  ulonglong m_owner_event_id;
  enum_object_type m_owner_object_type;
  kept::Name_of_owner<PFS_schema_name> m_owner_object_schema;
  kept::Name_of_owner<PFS_object_name> m_owner_object_name;
};

}  // namespace memdiag

#endif  // MEMDIAG_PFS_PREPARED_H
