/*
  The linker redirects the server's calls of these functions to this file
  (--wrap, in cmake/upstream/product.cmake). Calls within a file that has such a
  function are not redirected: those release a session that was not handed out.
  Where the compiler inlines nothing (presets debug and sanitize), the program's
  only copy of ~THD_ptr() may be in that file, and the counter would never come
  back.

  Threads: any. Errors: as the replaced functions.
*/

#include "sql/memdiag/counted_locks.h"

#include "scope_guard.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/tztime.h"

THD_ptr find(Global_THD_manager *sessions, Find_THD_Impl *wanted) asm(
    "__real__ZN18Global_THD_manager8find_thdEP13Find_THD_Impl");
THD_ptr find_and_count(Global_THD_manager *sessions, Find_THD_Impl *wanted) asm(
    "__wrap__ZN18Global_THD_manager8find_thdEP13Find_THD_Impl");
THD_ptr find_id(Global_THD_manager *sessions, Find_thd_with_id *wanted) asm(
    "__real__ZN18Global_THD_manager8find_thdEP16Find_thd_with_id");
THD_ptr
find_id_and_count(Global_THD_manager *sessions, Find_thd_with_id *wanted) asm(
    "__wrap__ZN18Global_THD_manager8find_thdEP16Find_thd_with_id");
THD *release(THD_ptr *found) asm("__real__ZN7THD_ptr7releaseEv");
THD *release_and_count(THD_ptr *found) asm("__wrap__ZN7THD_ptr7releaseEv");
void lock_host_names() asm("__real__Z19hostname_cache_lockv");
void lock_host_names_and_count() asm("__wrap__Z19hostname_cache_lockv");
void unlock_host_names() asm("__real__Z21hostname_cache_unlockv");
void unlock_host_names_and_count() asm("__wrap__Z21hostname_cache_unlockv");
Time_zone *find_time_zone(THD *thd, const String *name) asm(
    "__real__Z10my_tz_findP3THDPK6String");
Time_zone *find_time_zone_and_count(THD *thd, const String *name) asm(
    "__wrap__Z10my_tz_findP3THDPK6String");

namespace {

constinit thread_local unsigned held = 0;

#ifdef __NO_INLINE__
constexpr bool sees_each_release = false;
#else
constexpr bool sees_each_release = true;
#endif

THD_ptr counted(THD_ptr found) {
  if (sees_each_release && found) ++held;
  return found;
}

}  // namespace

THD_ptr find_and_count(Global_THD_manager *sessions, Find_THD_Impl *wanted) {
  return counted(find(sessions, wanted));
}

THD_ptr find_id_and_count(Global_THD_manager *sessions,
                          Find_thd_with_id *wanted) {
  return counted(find_id(sessions, wanted));
}

THD *release_and_count(THD_ptr *found) {
  THD *const session = release(found);
  if (sees_each_release && session != nullptr && held != 0) --held;
  return session;
}

void lock_host_names_and_count() {
  lock_host_names();
  ++held;
}

void unlock_host_names_and_count() {
  unlock_host_names();
  --held;
}

Time_zone *find_time_zone_and_count(THD *thd, const String *name) {
  ++held;
  const auto guard = create_scope_guard([] { --held; });
  return find_time_zone(thd, name);
}

bool memdiag::holds_counted_lock() { return held != 0; }
