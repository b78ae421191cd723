#include "mysys/memdiag/profiling/sample_table.h"

#include <bit>
#include <cstring>

#include "mysys/memdiag/base/hash.h"

namespace memdiag::profiling {

size_t Sample_table::places_in(size_t bytes) {
  const size_t places = bytes / (sizeof(uintptr_t) + sizeof(Body));
  return places < window ? 0 : std::bit_floor(places);
}

size_t Sample_table::bytes_of(size_t places) {
  return places * (sizeof(uintptr_t) + sizeof(Body));
}

Sample_table::Sample_table(void *memory, size_t places)
    : m_places(places),
      m_blocks(static_cast<std::atomic<uintptr_t> *>(memory)),
      m_bodies(reinterpret_cast<Body *>(m_blocks + places)) {}

size_t Sample_table::first_of_window(uintptr_t block) const {
  return mixed(block) & (m_places - 1) & ~(window - 1);
}

uint64_t Sample_table::check_of(const uint64_t (&digest)[4],
                                uint32_t generation) {
  uint64_t sum = generation;
  for (const uint64_t word : digest) sum = mixed(sum ^ word);
  return sum;
}

void Sample_table::write_digest(Body *body, const Digest &digest,
                                uint32_t generation) noexcept {
  uint64_t words[4];
  static_assert(sizeof words == sizeof digest);
  memcpy(words, digest.data(), sizeof words);
  for (size_t i = 0; i < 4; ++i)
    body->digest[i].store(words[i], std::memory_order_release);
  body->check.store(check_of(words, generation), std::memory_order_release);
}

void Sample_table::write(size_t place, const Sample &sample) noexcept {
  Body &body = m_bodies[place];
  const uint32_t generation =
      body.generation.load(std::memory_order_relaxed) + 1;
  body.generation.store(generation, std::memory_order_release);
  body.site.store(sample.site, std::memory_order_release);
  body.bytes.store(sample.bytes, std::memory_order_release);
  body.time_us.store(sample.time_us, std::memory_order_release);
  body.session.store(sample.session, std::memory_order_release);
  body.number.store(m_added.fetch_add(1, std::memory_order_relaxed),
                    std::memory_order_release);
  write_digest(&body, sample.digest, generation);
}

std::optional<Sample_table::Handle> Sample_table::add(
    const Sample &sample) noexcept {
  const size_t first = first_of_window(sample.block);
  for (size_t place = first; place < first + window; ++place) {
    uintptr_t expected = free_place;
    if (m_blocks[place].load(std::memory_order_relaxed) != free_place ||
        !m_blocks[place].compare_exchange_strong(expected, busy_place))
      continue;
    write(place, sample);
    const Handle made{
        static_cast<uint32_t>(place),
        m_bodies[place].generation.load(std::memory_order_relaxed)};
    m_blocks[place].store(sample.block, std::memory_order_release);
    return made;
  }
  return std::nullopt;
}

std::optional<Sample_table::Removed> Sample_table::remove(
    uintptr_t block) noexcept {
  const size_t first = first_of_window(block);
  for (;;) {
    size_t oldest = m_places;
    uint64_t least = UINT64_MAX;
    for (size_t place = first; place < first + window; ++place) {
      if (m_blocks[place].load(std::memory_order_acquire) != block) continue;
      const uint64_t number =
          m_bodies[place].number.load(std::memory_order_relaxed);
      if (number >= least) continue;
      oldest = place;
      least = number;
    }
    if (oldest == m_places) return std::nullopt;
    // Another remove() of this address may be faster. Then this one takes the
    // next sample.
    uintptr_t expected = block;
    if (!m_blocks[oldest].compare_exchange_strong(expected, busy_place))
      continue;
    const Body &body = m_bodies[oldest];
    const Removed removed{body.site.load(std::memory_order_relaxed),
                          body.bytes.load(std::memory_order_relaxed)};
    m_blocks[oldest].store(free_place, std::memory_order_release);
    return removed;
  }
}

void Sample_table::set_digest(Handle handle, const Digest &digest) noexcept {
  // A handle of another profile may be beyond this one.
  if (handle.place >= m_places) return;
  Body &body = m_bodies[handle.place];
  if (body.generation.load(std::memory_order_acquire) == handle.generation)
    write_digest(&body, digest, handle.generation);
}

bool Sample_table::read(size_t place, uint64_t end,
                        Sample *sample) const noexcept {
  const uintptr_t block = m_blocks[place].load(std::memory_order_acquire);
  if (block == free_place || block == busy_place) return false;
  const Body &body = m_bodies[place];
  const uint32_t generation = body.generation.load(std::memory_order_acquire);
  if (body.number.load(std::memory_order_acquire) >= end) return false;
  sample->block = block;
  sample->site = body.site.load(std::memory_order_acquire);
  sample->bytes = body.bytes.load(std::memory_order_acquire);
  sample->time_us = body.time_us.load(std::memory_order_acquire);
  sample->session = body.session.load(std::memory_order_acquire);
  uint64_t words[4];
  for (size_t i = 0; i < 4; ++i)
    words[i] = body.digest[i].load(std::memory_order_acquire);
  if (body.check.load(std::memory_order_acquire) == check_of(words, generation))
    memcpy(sample->digest.data(), words, sizeof words);
  else
    sample->digest = {};
  return body.generation.load(std::memory_order_acquire) == generation &&
         m_blocks[place].load(std::memory_order_acquire) == block;
}

}  // namespace memdiag::profiling
