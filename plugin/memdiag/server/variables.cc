/*
  Our system variables. They are the server's own and not the plugin's, because
  memory has to be routed long before the first plugin is there.
*/

#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/sessions.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/routes/routes.h"
#include "my_sys.h"
#include "mysqld_error.h"
#include "plugin/memdiag/history.h"
#include "plugin/memdiag/watcher.h"
#include "sql/derror.h"
#include "sql/sql_error.h"
#include "sql/sys_vars.h"

namespace {

/** A list that is read before memory is routed, and holds for the run. */
class Start_up_variable : public Sys_var_charptr {
 public:
  Start_up_variable(const char *name, const char *comment, const char *&list)
      : Sys_var_charptr(name, comment, READ_ONLY NON_PERSIST GLOBAL_VAR(list),
                        CMD_LINE(REQUIRED_ARG), IN_SYSTEM_CHARSET, DEFAULT(""),
                        NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
                        ON_UPDATE(nullptr), nullptr, sys_var::PARSE_EARLY) {}
};

Start_up_variable routes_variable(
    "memdiag_routes",
    "Takes memory from other pools than the built-in ones: a list of "
    "route=pool, where a route is a memory instrument or the beginning of "
    "some, as INFORMATION_SCHEMA.MEMDIAG_ROUTES shows them",
    memdiag::routes::options.routes);

Start_up_variable disabled_pools_variable(
    "memdiag_disabled_pools",
    "Pools that are not used: their memory comes from the general allocator. "
    "A list of names, or all",
    memdiag::routes::options.disabled_pools);

template <memdiag::Policy policy>
bool check_policy(sys_var *, THD *, set_var *var) {
  const LEX_STRING &list = var->save_result.string_value;
  if (list.str == nullptr) return true;  // NULL; the server says so
  const std::string wrong =
      memdiag::policies::check(policy, {list.str, list.length});
  if (wrong.empty()) return false;
  my_error(ER_WRONG_ARGUMENTS, MYF(0), wrong.c_str());
  return true;
}

template <memdiag::Policy policy>
bool update_policy(sys_var *, THD *, enum_var_type) {
  (void)memdiag::policies::set(
      policy, memdiag::policies::options[static_cast<size_t>(policy)]);
  return false;
}

template <memdiag::Policy policy>
class Policy_variable : public Sys_var_charptr {
 public:
  Policy_variable(const char *name, const char *comment)
      : Sys_var_charptr(
            name, comment,
            GLOBAL_VAR(memdiag::policies::options[static_cast<size_t>(policy)]),
            CMD_LINE(REQUIRED_ARG), IN_SYSTEM_CHARSET, DEFAULT(""),
            NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(check_policy<policy>),
            ON_UPDATE(update_policy<policy>)) {}
};

using memdiag::Policy;

Policy_variable<Policy::quiet_ms> quiet_variable(
    "memdiag_quiet_ms",
    "How long a pool must have been quiet before its unused pages go back: a "
    "list of pool=milliseconds, or all=milliseconds; 0 leaves them to decay");
Policy_variable<Policy::dirty_decay_ms> dirty_decay_variable(
    "memdiag_dirty_decay_ms",
    "How long unused pages of a busy pool stay dirty: a list of "
    "pool=milliseconds, or all=milliseconds; -1 keeps them");
Policy_variable<Policy::muzzy_decay_ms> muzzy_decay_variable(
    "memdiag_muzzy_decay_ms",
    "How long unused pages stay muzzy after that: a list of "
    "pool=milliseconds, or all=milliseconds; -1 keeps them");
Policy_variable<Policy::dirty_limit> dirty_limit_variable(
    "memdiag_dirty_limit",
    "Dirty bytes above which a pool's unused pages go back in the midst of a "
    "burst: a list of pool=bytes, or all=bytes, with K, M or G; 0 is no limit");

namespace tracking = memdiag::tracking;

bool update_scope_survivors(sys_var *, THD *, enum_var_type) {
  memdiag::scopes::track(tracking::options.survivors);
  return false;
}

Sys_var_bool scope_survivors_variable(
    "memdiag_scope_survivors",
    "Counts what statements, transactions and sessions leave behind in pools "
    "of their lifetime: INFORMATION_SCHEMA.MEMDIAG_SURVIVORS. Switching it ON "
    "begins with none",
    GLOBAL_VAR(tracking::options.survivors), CMD_LINE(OPT_ARG),
    DEFAULT(false), NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
    ON_UPDATE(update_scope_survivors));

bool update_sessions(sys_var *, THD *, enum_var_type) {
  memdiag::sessions::track(tracking::options.sessions);
  return false;
}

Sys_var_bool sessions_variable(
    "memdiag_sessions",
    "Counts what sessions hold of pools and what statements take: "
    "INFORMATION_SCHEMA.MEMDIAG_SESSIONS and MEMDIAG_DIGESTS. Switching it ON "
    "begins with none",
    GLOBAL_VAR(tracking::options.sessions), CMD_LINE(OPT_ARG),
    DEFAULT(false), NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
    ON_UPDATE(update_sessions));

bool update_history_interval(sys_var *, THD *, enum_var_type) {
  memdiag::history::interval_changed();
  return false;
}

Sys_var_uint history_interval_variable(
    "memdiag_history_interval_ms",
    "How often a sample of the server's memory is taken, in milliseconds, for "
    "INFORMATION_SCHEMA.MEMDIAG_HISTORY; 0: never",
    GLOBAL_VAR(memdiag::history::interval_ms), CMD_LINE(REQUIRED_ARG),
    VALID_RANGE(0, 3600 * 1000), DEFAULT(1000), BLOCK_SIZE(1), NO_MUTEX_GUARD,
    NOT_IN_BINLOG, ON_CHECK(nullptr), ON_UPDATE(update_history_interval));

Sys_var_uint history_samples_variable(
    "memdiag_history_samples",
    "How many samples are kept of this run, and how many of former runs in "
    "INFORMATION_SCHEMA.MEMDIAG_LAST_RUN",
    READ_ONLY GLOBAL_VAR(memdiag::history::capacity), CMD_LINE(REQUIRED_ARG),
    VALID_RANGE(10, memdiag::black_box::max_capacity), DEFAULT(3600),
    BLOCK_SIZE(1), NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
    ON_UPDATE(nullptr));

bool update_watcher(sys_var *, THD *thd, enum_var_type) {
  if (const int error = memdiag::watcher::changed(); error != 0)
    push_warning_printf(thd, Sql_condition::SL_WARNING, ER_CANT_CREATE_THREAD,
                        ER_THD(thd, ER_CANT_CREATE_THREAD), error);
  return false;
}

/** In the order of memdiag::watcher::Mode. */
const char *watcher_modes[] = {"OFF", "WATCH", "ON", nullptr};

Sys_var_enum pressure_watcher_variable(
    "memdiag_pressure_watcher",
    "What is done when memory is short: OFF nothing, WATCH says in the error "
    "log what ON would do, ON gives unused pages back, then shrinks caches",
    GLOBAL_VAR(memdiag::watcher::mode), CMD_LINE(REQUIRED_ARG), watcher_modes,
    DEFAULT(memdiag::watcher::off), NO_MUTEX_GUARD, NOT_IN_BINLOG,
    ON_CHECK(nullptr), ON_UPDATE(update_watcher));

class Pressure_variable : public Sys_var_uint {
 public:
  Pressure_variable(const char *name, const char *comment, unsigned &percent,
                    unsigned default_percent)
      : Sys_var_uint(name, comment, GLOBAL_VAR(percent), CMD_LINE(REQUIRED_ARG),
                     VALID_RANGE(0, 100), DEFAULT(default_percent),
                     BLOCK_SIZE(1), NO_MUTEX_GUARD, NOT_IN_BINLOG,
                     ON_CHECK(nullptr), ON_UPDATE(update_watcher)) {}
};

Pressure_variable pressure_limit_variable(
    "memdiag_pressure_limit",
    "Memory is short when so many percent of the lowest limit of the control "
    "group, or else of the machine's memory, are used; 0: that is not heeded",
    memdiag::watcher::limit_percent, 90);

Pressure_variable pressure_stall_variable(
    "memdiag_pressure_stall_percent",
    "Memory is short when some task waited for it for so many percent of the "
    "last second; 0: that is not heeded",
    memdiag::watcher::stall_percent, 10);

Sys_var_ulonglong pressure_buffer_pool_variable(
    "memdiag_pressure_buffer_pool_min",
    "When memory is still short after all else was given back, the buffer pool "
    "is made smaller, to no less than so many bytes; 0: it is left alone",
    GLOBAL_VAR(memdiag::watcher::buffer_pool_min_bytes), CMD_LINE(REQUIRED_ARG),
    VALID_RANGE(0, ULLONG_MAX), DEFAULT(0), BLOCK_SIZE(1), NO_MUTEX_GUARD,
    NOT_IN_BINLOG, ON_CHECK(nullptr), ON_UPDATE(update_watcher));

}  // namespace
