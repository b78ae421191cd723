#include "storage/innobase/memdiag_log_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace memdiag {

namespace {

/** @return false: the kernel cannot do this */
bool populate(const char *begin, const char *end) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // The next piece begins with the page in which this one ends. The ring may
  // share its last page with another owner.
  const uintptr_t from = reinterpret_cast<uintptr_t>(begin) & ~(page - 1);
  const uintptr_t to = reinterpret_cast<uintptr_t>(end) & ~(page - 1);
  return from >= to ||
         madvise(reinterpret_cast<void *>(from), to - from,
                 Log_pages::populate_write) == 0 ||
         errno != EINVAL;
}

}  // namespace

void Log_pages::begin(void *ring, size_t bytes) {
  const std::lock_guard guard(m_mutex);
  m_ring = static_cast<char *>(ring);
  m_ahead = Ring_ahead(bytes);
}

bool Log_pages::make_piece_resident(std::optional<uint64_t> position) {
  const std::lock_guard guard(m_mutex);
  if (m_ring == nullptr) return false;
  if (position) m_ahead.move_to(*position);
  const auto piece = m_ahead.next();
  if (!piece) return false;
  const char *const begin = m_ring + piece->offset;
  if (!populate(begin, begin + piece->bytes)) m_ring = nullptr;
  return true;
}

void Log_pages::make_resident(uint64_t position) {
  // The ring may change between two pieces. The new one has no position yet.
  bool more = make_piece_resident(position);
  while (more) more = make_piece_resident(std::nullopt);
}

}  // namespace memdiag
