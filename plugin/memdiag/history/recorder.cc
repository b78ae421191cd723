#include "plugin/memdiag/history/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/base/record_file.h"

namespace memdiag::history {

using black_box::Sample;

Recorder::Opened Recorder::open(const std::string &path, uint32_t version,
                                uint64_t server, size_t capacity,
                                Largest_session largest_session, Warn warn,
                                Log_buffer log_buffer) {
  Opened opened{};
  black_box::Contents contents;
  opened.remark = black_box::load(path, server, &contents);
  opened.remark += record_file::keep_unread(contents.error, path);
  const auto &former = contents.samples;
  if (!former.empty() && former.back().ended == 0) {
    opened.was_killed = true;
    opened.remark +=
        (opened.remark.empty() ? "" : "; ") +
        ("the last run (process " + std::to_string(former.back().process)) +
        ") was not shut down: what memory it had until its end is in "
        "INFORMATION_SCHEMA.MEMDIAG_HISTORY";
  }
  m_run_us = m_clock(CLOCK_REALTIME);
  m_version = version;
  m_sampler.emplace(largest_session, m_clock, log_buffer);
  m_has_samples = false;
  m_warn = warn;
  m_path = path;
  m_closed.reset();
  const auto box = std::make_shared<black_box::Box>();
  opened.file_error =
      box->open(path, std::clamp<size_t>(capacity, 1, black_box::max_capacity),
                former, server);
  // The caller does.
  m_has_reported = opened.file_error != 0;
  const std::lock_guard<std::mutex> guard(m_mutex);
  m_box = box;
  return opened;
}

unsigned Recorder::tick(unsigned interval_ms) {
  if (interval_ms == 0 && m_has_samples) return 0;
  append(m_sampler->take());
  m_has_samples = true;
  // Without this, stacks would end before code that was loaded since, until
  // the profile is read.
  if (profiling::is_on()) profiling::note_code();
  return interval_ms;
}

void Recorder::close() {
  const std::lock_guard<std::mutex> guard(m_mutex);
  m_closed = std::move(m_box);
}

void Recorder::end() noexcept {
  if (m_closed) (void)m_closed->end();
  m_closed.reset();
}

void Recorder::append(Sample sample) {
  sample.run_us = m_run_us;
  sample.process = static_cast<uint32_t>(getpid());
  sample.version = m_version;
  if (const int error = box()->append(sample); error != 0) report(error);
}

void Recorder::report(int error) {
  if (m_warn == nullptr || m_has_reported) return;
  m_has_reported = true;
  try {
    m_warn(m_path + " cannot be written: error " + reason(error) +
           ". Samples of memory are kept in memory only, until a later attempt "
           "succeeds; there is no further warning.");
  } catch (const std::bad_alloc &) {
    // The samples themselves are kept.
  }
}

std::shared_ptr<black_box::Box> Recorder::box() {
  const std::lock_guard<std::mutex> guard(m_mutex);
  return m_box;
}

std::vector<Sample> Recorder::this_run(uint64_t since_us) {
  const auto from = box();
  return from ? from->this_run(since_us) : std::vector<Sample>{};
}

Former_runs Recorder::former_runs() {
  const auto from = box();
  // It shares the box.
  return from ? Former_runs(from, &from->former_runs())
              : std::make_shared<const std::vector<Sample>>();
}

}  // namespace memdiag::history
