#include "plugin/memdiag/server/threads/server_locks.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "mysys/memdiag/upstream/private_member.h"
#include "sql/mdl.h"
#include "sql/memdiag/counted_locks.h"
#include "sql/mysqld.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/sql_base.h"
#include "sql/sql_class.h"
#include "sql/sql_plugin.h"
#include "sql/table_cache.h"

namespace memdiag {

using Mutexes = mysql_mutex_t[Global_THD_manager::NUM_PARTITIONS];

struct Removal_locks {
  using Member = Mutexes Global_THD_manager::*;
  friend Member member_of(Removal_locks);
};
template struct Names<Removal_locks, &Global_THD_manager::LOCK_thd_remove>;

struct Cache_lock {
  using Member = mysql_mutex_t Table_cache::*;
  friend Member member_of(Cache_lock);
};
template struct Names<Cache_lock, &Table_cache::m_lock>;

}  // namespace memdiag

namespace memdiag::server_locks {
namespace {

/** glibc writes into each mutex which thread has locked it. */
bool is_of([[maybe_unused]] const mysql_mutex_t &mutex,
           [[maybe_unused]] pid_t thread) {
#ifdef SAFE_MUTEX
  const native_mutex_t &native = mutex.m_mutex.m_u.m_safe_ptr->mutex;
#else
  const native_mutex_t &native = mutex.m_mutex.m_u.m_native;
#endif
#ifdef __GLIBC__
  return __atomic_load_n(&native.__data.__owner, __ATOMIC_RELAXED) == thread;
#else
  return false;
#endif
}

}  // namespace

bool holds_one(const THD &thd) {
  const Mutexes &removals =
      Global_THD_manager::get_instance()->*member_of(Removal_locks{});
  // A thread that has the locks of all caches has LOCK_open, too.
  const mysql_mutex_t &cache =
      table_cache_manager.get_cache(const_cast<THD *>(&thd))
          ->*member_of(Cache_lock{});
  const auto is_mine = [self = gettid()](const mysql_mutex_t &mutex) {
    return is_of(mutex, self);
  };
  return thd.mdl_context.has_locks(MDL_key::ACL_CACHE) ||
         is_mine(LOCK_global_system_variables) || is_mine(LOCK_status) ||
         is_mine(LOCK_plugin) || is_mine(LOCK_plugin_delete) ||
         is_mine(LOCK_open) || is_mine(cache) || is_mine(thd.LOCK_thd_data) ||
         is_mine(thd.LOCK_thd_query) || holds_counted_lock() ||
         std::any_of(std::begin(removals), std::end(removals), is_mine);
}

bool is_mine(const mysql_mutex_t &mutex) { return is_of(mutex, gettid()); }

}  // namespace memdiag::server_locks
