/*
  memdiag_advance_clock(ms), a loadable function for tests: puts the clock of
  the allocator layer and of the plugin (mysys/memdiag/base/clock.h) forward by
  so many milliseconds. 0: the clock is the system's again. Returns `ms`.
*/

#include <dlfcn.h>
#include <mysql/udf_registration_types.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "mysys/memdiag/base/clock.h"

namespace {

std::atomic<uint64_t> ahead_us{0};

uint64_t advanced_clock_us(clockid_t clock) {
  return memdiag::system_clock_us(clock) + ahead_us.load();
}

/** Keeps this library in the process: threads of the server may call
advanced_clock_us() after the server has dropped its functions.
@return false: it may be unloaded */
bool stay_loaded() {
  Dl_info self;
  return dladdr(&ahead_us, &self) != 0 &&
         dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE) != nullptr;
}

}  // namespace

extern "C" bool memdiag_advance_clock_init(UDF_INIT *init, UDF_ARGS *args,
                                           char *message) {
  if (args->arg_count != 1) {
    strcpy(message, "it takes milliseconds");
    return true;
  }
  static const bool stays = stay_loaded();
  if (!stays) {
    strcpy(message, "its library may be unloaded");
    return true;
  }
  args->arg_type[0] = INT_RESULT;
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_advance_clock(UDF_INIT *, UDF_ARGS *args,
                                           unsigned char *, unsigned char *) {
  long long ms = 0;
  if (args->args[0] != nullptr) memcpy(&ms, args->args[0], sizeof ms);
  if (ms == 0) {
    memdiag::set_clock_for_test(nullptr);
    ahead_us.store(0);
  } else {
    ahead_us.fetch_add(static_cast<uint64_t>(ms) * 1000);
    memdiag::set_clock_for_test(advanced_clock_us);
  }
  return ms;
}
