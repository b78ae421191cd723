#include "plugin/memdiag/server/profile_switch.h"

#include <cerrno>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/server/perfschema_session.h"
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

std::string why(const profiling::Switched &switched) {
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

}  // namespace

unsigned long mode;
unsigned long long sample_bytes;
unsigned long long memory_bytes;

std::string apply() {
  if (mode == off) {
    profiling::switch_off();
    return {};
  }
  const auto switched = profiling::switch_on({sample_bytes, memory_bytes});
  if (switched.error == 0) return {};
  mode = off;
  return why(switched);
}

std::string start() {
  profiling::set_context_reader(read_context);
  return apply();
}

void stop() {
  profiling::switch_off();
  profiling::set_context_reader(nullptr);
}

}  // namespace memdiag::profile_switch
