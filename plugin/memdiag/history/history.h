/*
  The history of the server's memory: a thread records a sample each second in
  the black box (recorder.h, sampler.h, black_box.h), so that the way to the
  present can be seen, and after a crash the way to the end.

  Threads: start(), stop() and end() are called one at a time, and start() not
  again before stop(): it opens the recorder, which the thread uses without a
  lock. Otherwise as those of a Worker (mysys/memdiag/base/worker.h). The other
  functions: any thread.
  Errors: a figure that cannot be read is unknown, and the next sample tries
  again.
*/

#ifndef MEMDIAG_HISTORY_H
#define MEMDIAG_HISTORY_H

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/history/recorder.h"
#include "plugin/memdiag/history/sampler.h"

namespace memdiag::history {

/** Values of the server's variables. 0: only the first and the last sample are
taken. */
extern unsigned interval_ms;
/** Samples of a run that are kept; the oldest are overwritten. Read by
start(). */
extern unsigned capacity;

inline constexpr const char *file_name = "memdiag_history.bin";

/** The report of start(). Unless there is a thread_error, samples are taken. */
struct Started : Recorder::Opened {
  int thread_error;
};

/** Make the file anew and begin to take samples, the first at once.
@param version  of the server, as 90704
@param server  as Recorder::open()
@param largest_session  called by the sampler's thread; nullptr: not known
@param warn  called by the sampler's thread when the file cannot be written
@param log_buffer  called by the sampler's thread; nullptr: not known
@throws std::bad_alloc */
Started start(const std::string &path, uint32_t version, uint64_t server,
              Largest_session largest_session = nullptr, Warn warn = nullptr,
              Log_buffer log_buffer = nullptr);

/** Take the last sample and wait for the thread to end. this_run() and
former_runs() are empty after that; what readers got before remains theirs. */
void stop();

/** After stop(), when the process ends: the last sample says from now on that
the run was shut down. Whoever dies between the two counts as killed. */
void end() noexcept;

/** interval_ms has changed: the thread takes a sample and waits by the new
value. */
void interval_changed();

/** Those not older than a moment, oldest first; empty when not started.
@throws std::bad_alloc */
std::vector<black_box::Sample> this_run(uint64_t since_us = 0);
/** Empty when not started. @throws std::bad_alloc */
Former_runs former_runs();

}  // namespace memdiag::history

#endif  // MEMDIAG_HISTORY_H
