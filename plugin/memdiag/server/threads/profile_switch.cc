#include "plugin/memdiag/server/threads/profile_switch.h"

#include <cerrno>
#include <mutex>
#include <new>

#include "mysql_version.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/base/rss.h"
#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/profile_file/flight_recorder.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/bridge/perfschema.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"

namespace memdiag::profile_switch {
namespace {

/** The session and statement of the calling thread. Within an allocation:
Performance Schema's record is read as other threads read it, because this
thread may be about to change it. */
void read_context(profiling::Context *context) noexcept {
  THD *const thd = current_thd;
  if (thd == nullptr) return;
  context->session = thd->thread_id();
  if (const auto digest = perfschema::current_digest(thd->get_psi()))
    context->digest = *digest;
}

constexpr uint64_t tick_ms = 250;

/** Never destroyed: the server may exit while the thread runs. */
struct State {
  /** Held while the recorder is used. */
  std::mutex mutex;
  profile::Flight_recorder recorder;
  Worker worker;
  bool can_record{false};
  bool has_warned{false};
};
State &state() {
  static State *const instance = new State;
  return *instance;
}

void run_recorder(Worker *worker) {
  State &self = state();
  do {
    const uint64_t rss = process_rss();
    if (rss == 0) continue;
    const std::lock_guard<std::mutex> guard(self.mutex);
    const int error = self.recorder.tick(rss);
    if (error == 0 || self.has_warned) continue;
    try {
      error_log::warn(std::string(file_name) + " cannot be written (" +
                      reason(error) + "): it is tried again.");
      self.has_warned = true;
    } catch (const std::bad_alloc &) {
      // An exception would end the server here. The next failure warns.
    }
  } while (worker->wait_ms(tick_ms));
}

/** @return why nothing is recorded; empty: it is */
std::string begin_to_record() {
  State &self = state();
  if (!self.can_record)
    return "a data directory that is being made is not recorded";
  int error = 0;
  std::string remark;
  {
    const std::lock_guard<std::mutex> guard(self.mutex);
    self.has_warned = false;
    error = self.recorder.begin(&remark);
  }
  if (!remark.empty()) error_log::note(remark);
  if (error != 0)
    return std::string(file_name) +
           " cannot be made in the data directory: " + reason(error);
  error = self.worker.start("memdiag_profile", run_recorder);
  return error == 0 || error == EALREADY
             ? ""
             : "the recording thread cannot be started: " + reason(error);
}

std::string why(const profiling::Switched &switched, uint64_t memory_bytes) {
  if (switched.error == ENOMEM)
    return "the system has no " + std::to_string(memory_bytes) +
           " bytes (memdiag_profile_memory)";
  if (switched.error == ENOENT)
    return "jemalloc was started without profiling: remove prof:false from "
           "MALLOC_CONF and restart the server";
  if (switched.error == EINVAL)
    return "memdiag_profile_sample_bytes must be a power of two, for example "
           "524288";
  return std::string(switched.step) + " failed: error " +
         reason(switched.error);
}

/** As apply(). @throws std::bad_alloc */
std::string apply_mode(const Settings &wanted) {
  if (wanted.mode != record) state().worker.stop();
  if (wanted.mode == off) {
    profiling::switch_off();
    return {};
  }
  const auto switched =
      profiling::switch_on({wanted.sample_bytes, wanted.memory_bytes});
  if (switched.error != 0) return why(switched, wanted.memory_bytes);
  if (fault::at(fault::Point::profile)) throw std::bad_alloc();
  return wanted.mode == record ? begin_to_record() : "";
}

}  // namespace

Settings settings;

std::string apply(const Settings &wanted) {
  std::string wrong;
  try {
    wrong = apply_mode(wanted);
  } catch (const std::bad_alloc &) {
    wrong = "no memory";  // which fits into the string itself
  }
  if (wrong.empty()) return wrong;
  state().worker.stop();
  profiling::switch_off();
  return wrong;
}

std::string start(const std::string &path, uint64_t server) {
  profiling::set_context_reader(read_context);
  if (!path.empty()) {
    state().can_record = true;
    state().recorder.set_file(
        path, {clock_us(CLOCK_REALTIME), static_cast<uint32_t>(getpid()),
               MYSQL_VERSION_ID, server});
  }
  std::string wrong = apply(settings);
  if (!wrong.empty()) settings.mode = off;
  return wrong;
}

profile::Contents runs(std::string *remark) {
  return state().recorder.runs(remark);
}

void stop() {
  state().worker.stop();
  profiling::switch_off();
  profiling::set_context_reader(nullptr);
}

void end() noexcept { (void)state().recorder.end(); }

}  // namespace memdiag::profile_switch
