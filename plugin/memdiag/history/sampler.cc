#include "plugin/memdiag/history/sampler.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>

#include "mysys/memdiag/pages/presence.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::history {
namespace {

using black_box::Sample;
using black_box::unknown;

/** While a peak grows steadily, the largest session is asked for once per
MB. */
constexpr uint64_t worth_asking_bytes = 1 << 20;
/** Reading InnoDB's buffers takes one part of this many of the time. */
constexpr uint64_t innodb_rest_times = 100;
constexpr uint64_t innodb_rest_times_at_rest = 1000;
/** The server rests while less has come and gone in the pools than the first,
and RSS is nearer to that of the last reading than the second. */
constexpr uint64_t rest_moved_bytes = 1 << 20;
constexpr uint64_t rest_rss_bytes = 256 << 10;
constexpr uint64_t most_rest_us = 10'000'000;

/** Bytes that ever came into the pools and left them. */
uint64_t activity() {
  uint64_t sum = 0;
  for (size_t i = 0; i < pool_count; ++i)
    sum += pools::activity(static_cast<Pool>(i));
  return sum;
}

void add_purges(Sample *sample) {
  for (size_t i = 0; i < pool_count; ++i) {
    const auto counters = purging::counters(static_cast<Pool>(i));
    sample->purges += counters.purges;
    sample->purged_bytes += counters.purged_bytes;
  }
}

/** @return false: a figure is unknown */
bool read_allocator(Sample *sample) {
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
  }
  return snapshot.failed.empty() && total.allocated_bytes.has_value();
}

void repeat_allocator(const Sample &from, Sample *sample) {
  sample->allocated_bytes = from.allocated_bytes;
  sample->active_bytes = from.active_bytes;
  sample->resident_bytes = from.resident_bytes;
  sample->dirty_bytes = from.dirty_bytes;
  sample->metadata_bytes = from.metadata_bytes;
  sample->pools = from.pools;
}

uint64_t resident_bytes_of(std::span<const std::byte> buffer) {
  if (buffer.empty()) return unknown;
  const auto begin = reinterpret_cast<uintptr_t>(buffer.data());
  const Address_range range{begin, begin + buffer.size()};
  return Presence(range).bytes(range).value_or(unknown);
}

void repeat_innodb(const Sample &from, Sample *sample) {
  sample->buffer_pool_bytes = from.buffer_pool_bytes;
  // The buffer may have shrunk since.
  sample->log_buffer_resident_bytes =
      from.log_buffer_resident_bytes == unknown
          ? unknown
          : std::min(from.log_buffer_resident_bytes, sample->log_buffer_bytes);
}

void add_limits(Sample *sample) {
  limits::Figures figures;
  try {
    figures = limits::now(0);
  } catch (const std::bad_alloc &) {
    // They are unknown then.
  }
  sample->limit_bytes = figures.limit_bytes.value_or(unknown);
  sample->room_bytes = figures.room_bytes.value_or(unknown);
}

/** true: pages have hardly come or gone between two readings of RSS. */
bool is_same(uint64_t rss, uint64_t other_rss) {
  const auto [less, more] = std::minmax(rss, other_rss);
  return more != unknown && more - less < rest_rss_bytes;
}

}  // namespace

Sample Sampler::take() {
  Sample sample{};
  sample.time_us = m_clock(CLOCK_REALTIME);
  add_process(&sample);
  add_holder(&sample);
  add_limits(&sample);
  add_purges(&sample);
  add_allocator(&sample);
  add_innodb(&sample);
  return sample;
}

void Sampler::add_allocator(Sample *sample) {
  const uint64_t now_us = m_clock(CLOCK_MONOTONIC);
  const uint64_t moved = activity();
  const bool is_at_rest = m_read_us != 0 &&
                          is_same(sample->rss_bytes, m_read.rss_bytes) &&
                          moved - m_read_activity < rest_moved_bytes &&
                          sample->purges == m_read.purges;
  if (is_at_rest && now_us - m_read_us < most_rest_us) {
    repeat_allocator(m_read, sample);
  } else {
    const bool known = read_allocator(sample);
    m_read = *sample;
    m_read_activity = moved;
    m_read_us = known ? now_us : 0;
  }
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
  const uint64_t files = figure("RssFile");
  const uint64_t shared = figure("RssShmem");
  if (files != unknown && shared != unknown)
    sample->file_bytes = files + shared;
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

void Sampler::add_innodb(Sample *sample) {
  // The live bytes of InnoDB's pool change with this size at once. The summary
  // takes one from the other.
  const auto log_buffer =
      m_log_buffer == nullptr ? std::span<const std::byte>{} : m_log_buffer();
  if (!log_buffer.empty()) sample->log_buffer_bytes = log_buffer.size();
  const uint64_t began_us = m_clock(CLOCK_MONOTONIC);
  const uint64_t times = is_same(sample->rss_bytes, m_innodb.rss_bytes)
                             ? innodb_rest_times_at_rest
                             : innodb_rest_times;
  if (began_us < m_innodb_read_us + times * m_innodb_took_us) {
    repeat_innodb(m_innodb, sample);
    return;
  }
  try {
    sample->buffer_pool_bytes =
        regions::resident_bytes(Region_kind::buffer_pool).value_or(unknown);
  } catch (const std::bad_alloc &) {
    sample->buffer_pool_bytes = unknown;
  }
  sample->log_buffer_resident_bytes = resident_bytes_of(log_buffer);
  m_innodb = *sample;
  m_innodb_read_us = began_us;
  m_innodb_took_us = m_clock(CLOCK_MONOTONIC) - began_us;
}

}  // namespace memdiag::history
