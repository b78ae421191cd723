#include "plugin/memdiag/allocator/background_threads.h"

#include "mysys/memdiag/jemalloc/mallctl.h"

namespace memdiag::background_threads {

int ensure() {
  const Result<bool> wanted = mallctl::read<Ctl::opt_background_thread>();
  if (!wanted) return wanted.error();
  const Result<bool> running = mallctl::read<Ctl::background_thread>();
  if (!running) return running.error();
  if (!wanted.value() || running.value()) return 0;
  return mallctl::write<Ctl::background_thread>(true);
}

}  // namespace memdiag::background_threads
