#include "plugin/memdiag/server/threads/kept_programs.h"

#include <sys/eventfd.h>

#include <atomic>

#include "sql/current_thd.h"
#include "sql/sp_cache.h"
#include "sql/sql_class.h"

namespace memdiag::ceiling::kept_programs {
namespace {

/** Lives as long as the process: a thread may wait for it at any time. */
constinit std::atomic<int> bell{-1};

bool has_any(const THD &thd) {
  return thd.sp_proc_cache != nullptr || thd.sp_func_cache != nullptr;
}

}  // namespace

bool drop(THD *thd) {
  if (!has_any(*thd) || thd->sp_runtime_ctx != nullptr ||
      thd->in_sub_stmt != 0 || thd->locked_tables_mode != LTM_NONE)
    return false;
  sp_cache_clear(&thd->sp_proc_cache);
  sp_cache_clear(&thd->sp_func_cache);
  return true;
}

int when_idle(bool drops) {
  THD *const thd = current_thd;
  if (thd == nullptr || !has_any(*thd) || (drops && drop(thd))) return -1;
  return bell.load(std::memory_order_relaxed);
}

void begin() {
  if (bell.load() < 0) bell.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void call_idle(bool drops) {
  const int descriptor = bell.load(std::memory_order_relaxed);
  if (descriptor < 0) return;
  eventfd_t rung;
  if (drops)
    (void)eventfd_write(descriptor, 1);
  else
    (void)eventfd_read(descriptor, &rung);
}

}  // namespace memdiag::ceiling::kept_programs
