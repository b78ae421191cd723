/*
  Records the samples of a run in the black box, and has those of former runs.

  tick() takes one sample. While the profiler is on, it also looks for code that
  was loaded since (code_ranges.h), as the server loads components and functions
  after its plugins. That takes some microseconds. The server's only recorder is
  driven by a thread (history.h); tests call tick() and set the clock.

  Threads: open(), tick(), close() and end() belong to one thread at a time;
  this_run() and former_runs() may be called from any thread meanwhile, and give
  nothing before open() and after close(). tick() may be called between these
  two only. Errors: where no file can be written, samples are kept
  in memory only. The first failed write of a run is reported.
*/

#ifndef MEMDIAG_RECORDER_H
#define MEMDIAG_RECORDER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/history/sampler.h"

namespace memdiag::history {

/** Writes a warning to the error log. */
using Warn = void (*)(const std::string &text);

/** Samples of former runs, oldest first. They never change, so readers share
them, and keep them for as long as they like. Never nullptr. */
using Former_runs = std::shared_ptr<const std::vector<black_box::Sample>>;

class Recorder {
 public:
  explicit Recorder(Sampler::Clock clock = clock_us) : m_clock(clock) {}

  struct Opened {
    /** The errno that says why samples are kept in memory only, until a later
    attempt succeeds; or 0. */
    int file_error;
    /** About the file that was there, and about the last run; or empty. */
    std::string remark;
    /** The last run left no sign that its shutdown came to an end. */
    bool was_killed;
  };

  /** Begin a run: read what former runs left, and make the file anew.
  @param version   of the server, as 90704
  @param server    a hash of its UUID, so that a copied data directory tells
                   nothing of the server that it was copied from; 0: not known
  @param capacity  samples of a run that are kept
  @param warn      nullptr: failed writes are not reported
  @param log_buffer  as Sampler()
  @throws std::bad_alloc */
  Opened open(const std::string &path, uint32_t version, uint64_t server,
              size_t capacity, Largest_session largest_session = nullptr,
              Warn warn = nullptr, Log_buffer log_buffer = nullptr);

  /** Take a sample. With interval_ms 0 only the first of the run, without which
  the next start would take an older run for the last one.
  @return how long to wait before the next call, in ms; 0: until interval_ms
  changes */
  unsigned tick(unsigned interval_ms);

  /** Give readers no samples any more. The file stays open for end(). */
  void close();

  /** After close(): the process ends, and so the last sample says that the run
  was shut down. Allocates nothing and reports nothing. Nothing happens without
  an open file, or when it is called again. */
  void end() noexcept;

  /** Those not older than a moment, oldest first. @throws std::bad_alloc */
  std::vector<black_box::Sample> this_run(uint64_t since_us = 0);
  /** @throws std::bad_alloc */
  Former_runs former_runs();

 private:
  std::shared_ptr<black_box::Box> box();
  void append(black_box::Sample sample);
  void report(int error);

  const Sampler::Clock m_clock;
  Warn m_warn{nullptr};
  std::string m_path;
  std::optional<Sampler> m_sampler;
  bool m_has_samples{false};
  bool m_has_reported{false};
  uint64_t m_run_us{0};
  uint32_t m_version{0};
  /** Protects the pointer. A reader or a slow write keeps a box that close()
  lets go of. */
  std::mutex m_mutex;
  std::shared_ptr<black_box::Box> m_box;
  /** From close() to end(). */
  std::shared_ptr<black_box::Box> m_closed;
};

}  // namespace memdiag::history

#endif  // MEMDIAG_RECORDER_H
