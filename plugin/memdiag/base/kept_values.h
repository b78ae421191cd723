/*
  Values that a session's statements share, kept for a short time after the last
  of them has ended.

  Threads: any. A mutex is held while a value is made or freed and while
  has_ended() runs: none of these may use the list. The mutex does not protect a
  value, which only its session's thread uses. Ownership: shared by the list and
  the statements that use a value; a statement that runs holds its own
  reference. Units: microseconds of the monotonic clock.
*/

#ifndef MEMDIAG_KEPT_VALUES_H
#define MEMDIAG_KEPT_VALUES_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace memdiag {

template <typename T>
class Kept_values {
 public:
  /** The session's value, made if it is missing. @throws std::bad_alloc */
  std::shared_ptr<T> of(uint64_t session, uint64_t query, uint64_t now_us) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    for (Entry &entry : m_entries)
      if (entry.session == session) {
        entry.query = query;
        entry.used_us = now_us;
        return entry.value;
      }
    m_entries.push_back({session, query, now_us, std::make_shared<T>()});
    return m_entries.back().value;
  }

  /** nullptr: the session has none. */
  std::shared_ptr<T> find(uint64_t session) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    for (const Entry &entry : m_entries)
      if (entry.session == session) return entry.value;
    return nullptr;
  }

  /** Drops each value that has not been used for keep_us and whose last
  statement has ended.
  @param has_ended  bool(session, query): the session runs the statement no more
  @return how many values are left */
  template <typename Has_ended>
  size_t drop(uint64_t keep_us, uint64_t now_us, Has_ended has_ended) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    std::erase_if(m_entries, [&](const Entry &entry) {
      return now_us >= entry.used_us + keep_us &&
             entry.value.use_count() == 1 &&
             has_ended(entry.session, entry.query);
    });
    return m_entries.size();
  }

 private:
  struct Entry {
    uint64_t session;
    uint64_t query;
    uint64_t used_us;
    std::shared_ptr<T> value;
  };

  std::mutex m_mutex;
  std::vector<Entry> m_entries;
};

}  // namespace memdiag

#endif  // MEMDIAG_KEPT_VALUES_H
