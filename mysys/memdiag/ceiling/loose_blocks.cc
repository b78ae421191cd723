#include "mysys/memdiag/ceiling/loose_blocks.h"

#include <algorithm>
#include <utility>

#include "mysys/memdiag/base/clock.h"

namespace memdiag::ceiling {

constinit Loose_blocks loose_blocks;

namespace {

bool is_event(Replica_block kind) {
  return kind == Replica_block::event || kind == Replica_block::rows;
}

}  // namespace

Loose_blocks::Place *Loose_blocks::find(const void *block) {
  const auto place = std::find_if(
      m_places.begin(), m_places.end(), [block](const Place &each) {
        return each.block.address == reinterpret_cast<uintptr_t>(block);
      });
  return place == m_places.end() ? nullptr : &*place;
}

void Loose_blocks::forget(Place *place) {
  account.promise(-place->block.untouched_bytes - place->later_bytes);
  *place = {};
  m_count.fetch_sub(1, std::memory_order_relaxed);
}

void Loose_blocks::add(const void *block, size_t size, Replica_block kind,
                       int64_t later_bytes) {
  const auto bytes = static_cast<int64_t>(size);
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (Place *const place = find(nullptr); place != nullptr) {
    *place = {{reinterpret_cast<uintptr_t>(block), size, bytes},
              kind,
              later_bytes,
              clock_us(CLOCK_MONOTONIC)};
    m_count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  account.promise(-bytes - later_bytes);
  account.charge(bytes);
}

void Loose_blocks::remove(const void *block) {
  if (m_count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (Place *const place = find(block); place != nullptr) forget(place);
}

int64_t Loose_blocks::take_later(const void *block) {
  if (block == nullptr) return 0;
  const std::lock_guard<std::mutex> guard(m_mutex);
  Place *const place = find(block);
  if (place == nullptr) return 0;
  place->kind = Replica_block::other;
  return std::exchange(place->later_bytes, 0);
}

void Loose_blocks::note_taken(int64_t bytes) {
  const std::lock_guard<std::mutex> guard(m_mutex);
  for (Place &place : m_places) {
    const int64_t taken = std::min(bytes, place.later_bytes);
    place.later_bytes -= taken;
    account.promise(-taken);
    bytes -= taken;
  }
}

bool Loose_blocks::has_event() {
  const std::lock_guard<std::mutex> guard(m_mutex);
  return std::any_of(m_places.begin(), m_places.end(),
                     [](const Place &place) { return is_event(place.kind); });
}

int64_t Loose_blocks::applied_bytes() {
  const std::lock_guard<std::mutex> guard(m_mutex);
  int64_t bytes = 0;
  for (const Place &place : m_places) {
    if (is_event(place.kind)) return 0;
    if (place.kind == Replica_block::applied)
      bytes += static_cast<int64_t>(place.block.size);
  }
  return bytes;
}

void Loose_blocks::see(Place *place, uint64_t now_us) {
  hold();
  const Block before = place->block;
  const uint64_t since_us = place->since_us;
  let_go();
  if (before.address == 0) return;
  // It may have come after the caller's look at the clock.
  const bool is_over = now_us >= since_us + longest_us;
  // Others have the mutex meanwhile.
  const int64_t now = is_over || before.untouched_bytes == 0
                          ? 0
                          : ceiling::untouched_bytes(before);
  const std::lock_guard<std::mutex> guard(m_mutex);
  Block &block = place->block;
  if (block.address != before.address || place->since_us != since_us) return;
  account.charge(block.untouched_bytes - now);
  account.promise(now - std::exchange(block.untouched_bytes, now));
  if (is_over && is_event(place->kind)) {
    account.promise(-std::exchange(place->later_bytes, 0));
    place->kind = Replica_block::other;
  }
  if (now == 0 && place->kind == Replica_block::other) forget(place);
}

void Loose_blocks::see() {
  if (m_count.load(std::memory_order_relaxed) == 0) return;
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  for (Place &place : m_places) see(&place, now_us);
}

void Loose_blocks::clear() {
  const std::lock_guard<std::mutex> guard(m_mutex);
  for (Place &place : m_places)
    if (place.block.address != 0) forget(&place);
}

}  // namespace memdiag::ceiling
