#include "mysys/memdiag/purging/purge_log.h"

#include <algorithm>
#include <mutex>

namespace memdiag::purge_log {
namespace {

constinit std::mutex mutex;
/** The purge of a sequence number lies at that number, modulo the size. */
constinit Purge ring[max_purges]{};
constinit uint64_t last_sequence = 0;
constinit uint64_t last_sequences[pool_count];

/** The entry of a purge, or nullptr if it is gone. Caller holds the mutex. */
Purge *find(uint64_t sequence) {
  Purge &entry = ring[sequence % max_purges];
  return sequence != 0 && entry.sequence == sequence ? &entry : nullptr;
}

std::optional<Purge> copy_of(const Purge *entry) {
  return entry == nullptr ? std::nullopt : std::optional<Purge>{*entry};
}

Row row_of(const Purge &purge) {
  const purging::Receipt &receipt = purge.receipt;
  Row row{};
  row.sequence = purge.sequence;
  row.time_us = purge.time_us;
  row.pool = spec_of(purge.pool).name;
  row.reason = purge_reason_names[static_cast<size_t>(purge.reason)];
  row.duration_us = receipt.duration_us;
  row.refaulted_bytes = purge.refaulted_bytes;
  if (receipt.error != 0) {
    row.error = receipt.error;
    return row;
  }
  if (receipt.rss_is_known()) {
    row.rss_before_bytes = receipt.rss_before_bytes;
    row.rss_after_bytes = receipt.rss_after_bytes;
  }
  row.released_bytes = receipt.released_bytes();
  return row;
}

}  // namespace

uint64_t add(const Purge &purge) noexcept {
  const std::lock_guard<std::mutex> guard(mutex);
  Purge &entry = ring[++last_sequence % max_purges];
  entry = purge;
  entry.sequence = last_sequence;
  last_sequences[static_cast<size_t>(purge.pool)] = last_sequence;
  return last_sequence;
}

std::optional<Purge> last_of(Pool pool) noexcept {
  const std::lock_guard<std::mutex> guard(mutex);
  return copy_of(find(last_sequences[static_cast<size_t>(pool)]));
}

std::optional<Purge> of(uint64_t sequence) noexcept {
  const std::lock_guard<std::mutex> guard(mutex);
  return copy_of(find(sequence));
}

void note_refault(uint64_t sequence, uint64_t bytes) noexcept {
  const std::lock_guard<std::mutex> guard(mutex);
  Purge *const found = find(sequence);
  if (found != nullptr && !found->refaulted_bytes)
    found->refaulted_bytes = bytes;
}

std::vector<Row> all() {
  std::vector<Row> rows;
  rows.reserve(max_purges);
  const std::lock_guard<std::mutex> guard(mutex);
  const uint64_t count = std::min<uint64_t>(last_sequence, max_purges);
  for (uint64_t i = last_sequence - count; i < last_sequence; ++i)
    rows.push_back(row_of(ring[(i + 1) % max_purges]));
  return rows;
}

void hold() noexcept { mutex.lock(); }
void let_go() noexcept { mutex.unlock(); }

}  // namespace memdiag::purge_log
