#include "mysys/memdiag/profiling/site_table.h"

#include <algorithm>
#include <bit>

#include "mysys/memdiag/base/hash.h"

namespace memdiag::profiling {

size_t Site_table::sites_in(size_t bytes) {
  // The index has two to four places for each site, so that searches are short.
  const size_t each = sizeof(Entry) + 4 * sizeof(uint32_t) +
                      frames_of_a_site * sizeof(uintptr_t);
  const size_t fixed = sizeof(Counters) + sizeof(Entry) + alignof(uintptr_t);
  return bytes <= fixed ? 0 : (bytes - fixed) / each;
}

Site_table::Site_table(void *memory, size_t bytes)
    : m_room(sites_in(bytes)),
      m_index_size(std::bit_ceil(2 * m_room)),
      m_frame_room(m_room * frames_of_a_site),
      m_used(static_cast<Counters *>(memory)),
      m_entries(reinterpret_cast<Entry *>(m_used + 1)),
      m_index(
          reinterpret_cast<std::atomic<uint32_t> *>(m_entries + m_room + 1)),
      m_frames(reinterpret_cast<uintptr_t *>(m_index + m_index_size)) {}

Site Site_table::site_of(uint32_t number, const Entry &entry) const {
  return {number,
          entry.pool,
          entry.account,
          {m_frames + entry.first_frame, entry.frames},
          entry.look,
          entry.allocated_bytes.load(std::memory_order_relaxed),
          static_cast<double>(
              entry.allocated_object_parts.load(std::memory_order_relaxed)) /
              parts_of_an_object};
}

bool Site_table::is_same(const Entry &entry, uint64_t hash, Pool pool,
                         pools::Account account, const Stack &stack) const {
  const auto frames = stack.frames;
  return entry.hash == hash && entry.pool == pool && entry.account == account &&
         entry.youngest == stack.youngest && entry.frames == frames.size() &&
         std::equal(frames.begin(), frames.end(), m_frames + entry.first_frame);
}

uint32_t Site_table::make(uint64_t hash, Pool pool, pools::Account account,
                          const Stack &stack) noexcept {
  const auto frames = stack.frames;
  // A site that does not fit takes no number, or the counters would overflow.
  if (m_used->sites.load(std::memory_order_relaxed) >= m_room ||
      m_used->frames.load(std::memory_order_relaxed) + frames.size() >
          m_frame_room)
    return 0;
  const uint32_t number = m_used->sites.fetch_add(1) + 1;
  const uint32_t first =
      m_used->frames.fetch_add(static_cast<uint32_t>(frames.size()));
  if (number > m_room || first + frames.size() > m_frame_room) return 0;
  std::copy(frames.begin(), frames.end(), m_frames + first);
  Entry &entry = m_entries[number];
  entry.hash = hash;
  entry.first_frame = first;
  entry.youngest = stack.youngest;
  entry.look = stack.look;
  entry.frames = static_cast<uint16_t>(frames.size());
  entry.account = account;
  entry.pool = pool;
  return number;
}

uint32_t Site_table::find_or_make(Pool pool, pools::Account account,
                                  const Stack &stack) noexcept {
  uint64_t hash = mixed(uint64_t{stack.youngest} << 32 |
                        static_cast<uint64_t>(pool) << 16 | account);
  for (const uintptr_t frame : stack.frames) hash = mixed(hash ^ frame);
  uint32_t made = 0;
  for (size_t step = 0; step < longest_search; ++step) {
    std::atomic<uint32_t> &place = m_index[(hash + step) & (m_index_size - 1)];
    uint32_t number = place.load(std::memory_order_acquire);
    if (number == 0) {
      if (made == 0) made = make(hash, pool, account, stack);
      if (made == 0) return 0;
      if (place.compare_exchange_strong(number, made)) {
        m_entries[made].ready.store(true, std::memory_order_release);
        return made;
      }
      // Another thread's site is there now, which may be the same.
    }
    if (is_same(m_entries[number], hash, pool, account, stack)) return number;
  }
  return 0;
}

uint32_t Site_table::add(Pool pool, pools::Account account, const Stack &stack,
                         uint64_t size, double objects) noexcept {
  const uint32_t number = find_or_make(pool, account, stack);
  if (number == 0) return 0;
  Entry &entry = m_entries[number];
  entry.allocated_bytes.fetch_add(
      static_cast<uint64_t>(objects * static_cast<double>(size) + 0.5),
      std::memory_order_relaxed);
  entry.allocated_object_parts.fetch_add(
      static_cast<uint64_t>(objects * parts_of_an_object + 0.5),
      std::memory_order_relaxed);
  return number;
}

}  // namespace memdiag::profiling
