#include "plugin/memdiag/history/sampler.h"

#include <new>
#include <string>
#include <string_view>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::history {
namespace {

using black_box::Sample;
using black_box::unknown;

constexpr uint64_t minute_us = 60'000'000;
/** While a peak grows steadily, the largest session is asked for once per
MB. */
constexpr uint64_t worth_asking_bytes = 1 << 20;
/** The buffer pool's reading takes one part of this many of the time. */
constexpr uint64_t buffer_pool_rest_times = 100;

void add_allocator(Sample *sample) {
  Snapshot snapshot{};
  try {
    snapshot = take_snapshot();
  } catch (const std::bad_alloc &) {
    // An empty snapshot: all of it is unknown.
  }
  const auto figure = [](Reading reading) { return reading.value_or(unknown); };
  const Allocator_row &total = snapshot.allocator;
  sample->allocated_bytes = figure(total.allocated_bytes);
  sample->active_bytes = figure(total.active_bytes);
  sample->resident_bytes = figure(total.resident_bytes);
  sample->dirty_bytes = figure(total.dirty_bytes);
  sample->metadata_bytes = figure(total.metadata_bytes);
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool_row &pool = snapshot.pools[i];
    sample->pools[i] = {figure(pool.live_bytes), figure(pool.dirty_bytes)};
    const auto counters = purging::counters(static_cast<Pool>(i));
    sample->purges += counters.purges;
    sample->purged_bytes += counters.purged_bytes;
  }
}

}  // namespace

Sample Sampler::take() {
  Sample sample{};
  sample.time_us = m_clock(CLOCK_REALTIME);
  add_process(&sample);
  add_holder(&sample);
  sample.limit_bytes = limit_bytes();
  add_allocator(&sample);
  sample.buffer_pool_bytes = buffer_pool_bytes();
  return sample;
}

void Sampler::add_process(Sample *sample) {
  std::string text;
  try {
    if (kernel_file::read("/proc/self/status", &text) != 0) text.clear();
  } catch (const std::bad_alloc &) {
    text.clear();
  }
  const auto figure = [&text](std::string_view key) {
    return kernel_text::amount_of(text, key).value_or(unknown);
  };
  sample->rss_bytes = figure("VmRSS");
  sample->swap_bytes = figure("VmSwap");
  // VmHWM misses no peak between two samples. The time of the peak is that of
  // the first sample that shows it.
  if (const uint64_t peak = figure("VmHWM");
      peak != unknown && (m_rss_peak_us == 0 || peak > m_rss_peak_bytes)) {
    m_rss_peak_bytes = peak;
    m_rss_peak_us = sample->time_us;
  }
  sample->rss_peak_bytes = m_rss_peak_us == 0 ? unknown : m_rss_peak_bytes;
  sample->rss_peak_us = m_rss_peak_us;
}

void Sampler::add_holder(Sample *sample) {
  if (m_largest_session != nullptr && m_rss_peak_us != 0 &&
      m_rss_peak_bytes >= m_asked_at_bytes + worth_asking_bytes) {
    m_asked_at_bytes = m_rss_peak_bytes;
    try {
      m_holder = m_largest_session();
    } catch (const std::bad_alloc &) {
      m_holder.reset();
    }
  }
  sample->rss_peak_processlist_id =
      m_holder ? m_holder->processlist_id : unknown;
  sample->rss_peak_session_bytes = m_holder ? m_holder->bytes : unknown;
  if (m_holder) sample->rss_peak_digest = m_holder->digest;
}

uint64_t Sampler::limit_bytes() {
  const uint64_t now_us = m_clock(CLOCK_MONOTONIC);
  if (now_us < m_limit_due_us) return m_limit_bytes;
  m_limit_due_us = now_us + minute_us;
  try {
    m_limit_bytes =
        host::limit_bytes(host::collect().figures).value_or(unknown);
  } catch (const std::bad_alloc &) {
    m_limit_bytes = unknown;
  }
  return m_limit_bytes;
}

uint64_t Sampler::buffer_pool_bytes() {
  const uint64_t began_us = m_clock(CLOCK_MONOTONIC);
  if (began_us < m_buffer_pool_due_us) return m_buffer_pool_bytes;
  try {
    m_buffer_pool_bytes =
        regions::resident_bytes(Region_kind::buffer_pool).value_or(unknown);
  } catch (const std::bad_alloc &) {
    m_buffer_pool_bytes = unknown;
  }
  const uint64_t took_us = m_clock(CLOCK_MONOTONIC) - began_us;
  m_buffer_pool_due_us = began_us + buffer_pool_rest_times * took_us;
  return m_buffer_pool_bytes;
}

}  // namespace memdiag::history
