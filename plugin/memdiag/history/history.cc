#include "plugin/memdiag/history/history.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"
#include "mysys/memdiag/clock.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/purging/worker.h"

namespace memdiag::history {

unsigned interval_ms = 1000;
unsigned capacity = 3600;

namespace {

using black_box::Box;
using black_box::Sample;
using black_box::unknown;

/** Never destroyed: see Worker. */
struct State {
  Worker worker;
  /** Of what follows, and of what is in the box. */
  std::mutex mutex;
  std::optional<Box> box;
  uint64_t run_us{0};
  uint32_t version{0};
  Who_has_most who_has_most{nullptr};
};
State &state() {
  static State *const instance = new State;
  return *instance;
}

/** Takes samples; remembers what is not read anew each time. */
class Sampler {
 public:
  explicit Sampler(Who_has_most who_has_most) : m_who_has_most(who_has_most) {}

  Sample take() {
    Sample sample{};
    sample.time_us = clock_us(CLOCK_REALTIME);
    add_process(&sample);
    add_holder(&sample);
    sample.limit_bytes = limit_bytes();
    add_allocator(&sample);
    sample.buffer_pool_bytes = buffer_pool_bytes();
    return sample;
  }

 private:
  void add_process(Sample *sample) {
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
    // The kernel misses no peak; when it was is known as well as the interval
    // says.
    if (const uint64_t peak = figure("VmHWM");
        peak != unknown && (m_rss_peak_us == 0 || peak > m_rss_peak_bytes)) {
      m_rss_peak_bytes = peak;
      m_rss_peak_us = sample->time_us;
    }
    sample->rss_peak_bytes = m_rss_peak_us == 0 ? unknown : m_rss_peak_bytes;
    sample->rss_peak_us = m_rss_peak_us;
  }

  void add_holder(Sample *sample) {
    // Of a peak that grows byte by byte, not each time.
    if (m_who_has_most != nullptr && m_rss_peak_us != 0 &&
        m_rss_peak_bytes >= m_asked_at_bytes + worth_asking_bytes) {
      m_asked_at_bytes = m_rss_peak_bytes;
      try {
        m_holder = m_who_has_most();
      } catch (const std::bad_alloc &) {
        m_holder.reset();
      }
    }
    sample->rss_peak_processlist_id =
        m_holder ? m_holder->processlist_id : unknown;
    sample->rss_peak_session_bytes = m_holder ? m_holder->bytes : unknown;
    if (m_holder) sample->rss_peak_digest = m_holder->digest;
  }

  uint64_t limit_bytes() {
    const uint64_t now = clock_us(CLOCK_MONOTONIC);
    if (now < m_limit_due_us) return m_limit_bytes;
    m_limit_due_us = now + 60'000'000;
    try {
      m_limit_bytes =
          host::limit_bytes(host::collect().figures).value_or(unknown);
    } catch (const std::bad_alloc &) {
      m_limit_bytes = unknown;
    }
    return m_limit_bytes;
  }

  static void add_allocator(Sample *sample) {
    Snapshot snapshot{};
    try {
      snapshot = take_snapshot();
    } catch (const std::bad_alloc &) {
      // All of it is unknown then.
    }
    const auto figure = [](Reading reading) {
      return reading.value_or(unknown);
    };
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

  uint64_t buffer_pool_bytes() {
    const uint64_t begin = clock_us(CLOCK_MONOTONIC);
    if (begin < m_buffer_pool_due_us) return m_buffer_pool_bytes;
    try {
      m_buffer_pool_bytes =
          regions::resident_bytes(Region_kind::buffer_pool).value_or(unknown);
    } catch (const std::bad_alloc &) {
      m_buffer_pool_bytes = unknown;
    }
    const uint64_t end = clock_us(CLOCK_MONOTONIC);
    m_buffer_pool_due_us = end + 99 * (end - begin);
    return m_buffer_pool_bytes;
  }

  static constexpr uint64_t worth_asking_bytes = 1 << 20;

  const Who_has_most m_who_has_most;
  std::optional<Holder> m_holder;
  uint64_t m_asked_at_bytes{0};
  uint64_t m_limit_bytes{unknown};
  uint64_t m_limit_due_us{0};
  uint64_t m_rss_peak_bytes{0};
  uint64_t m_rss_peak_us{0};
  uint64_t m_buffer_pool_bytes{unknown};
  uint64_t m_buffer_pool_due_us{0};
};

void append(Sample sample) {
  State &self = state();
  const std::lock_guard<std::mutex> guard(self.mutex);
  sample.run_us = self.run_us;
  sample.process = static_cast<uint32_t>(getpid());
  sample.version = self.version;
  self.box->append(sample);
}

void run(Worker *worker) {
  Sampler sampler(state().who_has_most);
  bool any = false;
  unsigned interval;
  do {
    interval = __atomic_load_n(&interval_ms, __ATOMIC_RELAXED);
    if (interval == 0) continue;
    append(sampler.take());
    any = true;
  } while (worker->wait_ms(interval));
  if (!any) return;
  Sample last = sampler.take();
  last.ended = 1;
  append(last);
}

/** What there is to say of the runs before. */
std::string remark_of(const std::vector<Sample> &former) {
  if (former.empty() || former.back().ended != 0) return "";
  return "the last run (process " + std::to_string(former.back().process) +
         ") was not shut down: what memory it had until its end is in "
         "INFORMATION_SCHEMA.MEMDIAG_LAST_RUN";
}

}  // namespace

Started start(const std::string &path, uint32_t version,
              Who_has_most who_has_most) {
  State &self = state();
  Started started{};
  black_box::Contents contents;
  started.remark = black_box::load(path, &contents);
  if (const std::string more = remark_of(contents.samples); !more.empty())
    started.remark += (started.remark.empty() ? "" : "; ") + more;
  {
    const std::lock_guard<std::mutex> guard(self.mutex);
    self.run_us = clock_us(CLOCK_REALTIME);
    self.version = version;
    self.who_has_most = who_has_most;
    started.file_error = self.box.emplace().open(
        path, std::clamp<size_t>(capacity, 1, black_box::max_capacity),
        contents.samples);
  }
  started.thread_error = self.worker.start("memdiag_history", run);
  return started;
}

void stop() {
  State &self = state();
  self.worker.stop();
  const std::lock_guard<std::mutex> guard(self.mutex);
  self.box.reset();
}

void interval_changed() { state().worker.wake(); }

std::vector<Sample> this_run(uint64_t since_us) {
  State &self = state();
  const std::lock_guard<std::mutex> guard(self.mutex);
  return self.box ? self.box->this_run(since_us) : std::vector<Sample>{};
}

std::vector<Sample> former_runs() {
  State &self = state();
  const std::lock_guard<std::mutex> guard(self.mutex);
  return self.box ? self.box->former_runs() : std::vector<Sample>{};
}

}  // namespace memdiag::history
