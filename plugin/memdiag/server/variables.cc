/*
  Registers the system variables of tables/variable_list.h. This file is a part
  of mysqld and not of the plugin (cmake/upstream/product.cmake): the server
  routes memory long before it starts its first plugin, so these options must be
  parsed before.
*/

#include <bit>
#include <climits>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "my_sys.h"
#include "mysql/service_mysql_alloc.h"
#include "mysqld_error.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/ceiling.h"
#include "plugin/memdiag/server/threads/profile_switch.h"
#include "plugin/memdiag/tables/variable_list.h"
#include "sql/derror.h"
#include "sql/mysqld.h"
#include "sql/psi_memory_key.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sys_vars.h"

namespace {

using memdiag::Policy;
using memdiag::system_variable;
using memdiag::System_variable;
namespace tracking = memdiag::tracking;

/** The server applies persisted variables while it starts, and the first that
fails ends its loop: each variable that was persisted later would be lost,
super_read_only among them. A SET of the init_file fails as that of a session.
*/
bool is_starting(const THD *thd) {
  return get_server_state() == SERVER_BOOTING &&
         !thd->is_init_file_system_thread();
}

/** A value that was refused, while the server starts: the variable takes its
default, and the error log says why. @return false: the server runs */
bool takes_default(sys_var *variable, THD *thd, set_var *var) {
  if (!is_starting(thd)) return false;
  std::string reason = "it cannot have the value that was set";
  if (thd->is_error()) {
    reason = thd->get_stmt_da()->message_text();
    thd->clear_error();
  }
  memdiag::error_log::warn(std::string(variable->name.str) +
                           " has its default: " + reason);
  variable->save_default(thd, var);
  return true;
}

/** SET PERSIST_ONLY stores a value unchecked. The next start checks it.
@param Base  one of the server's types of variables */
template <typename Base>
class Checked_at_start : public Base {
 public:
  using Base::Base;
  bool do_check(THD *thd, set_var *var) override {
    return Base::do_check(thd, var) && !takes_default(this, thd, var);
  }
};

/** A list that is read before memory is routed, and holds for the run. */
class Start_up_list : public Sys_var_charptr {
 public:
  Start_up_list(const System_variable &of, const char *&list)
      : Sys_var_charptr(of.name, of.comment,
                        READ_ONLY NON_PERSIST GLOBAL_VAR(list),
                        CMD_LINE(REQUIRED_ARG), IN_SYSTEM_CHARSET, DEFAULT(""),
                        NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
                        ON_UPDATE(nullptr), nullptr, sys_var::PARSE_EARLY) {}
};

template <Policy policy>
bool check_policy(sys_var *variable, THD *thd, set_var *var) {
  const LEX_STRING &list = var->save_result.string_value;
  // Of NULL the server itself says that it is refused.
  if (list.str != nullptr) {
    const std::string wrong =
        memdiag::policies::check(policy, {list.str, list.length});
    if (wrong.empty()) return false;
    my_error(ER_WRONG_ARGUMENTS, MYF(0), wrong.c_str());
  }
  return !takes_default(variable, thd, var);
}

/** Called with LOCK_global_system_variables, which each new connection needs.
Setting a decay time visits each arena and may purge it, so the mutex is
released meanwhile. Two SETs at the same time take turns, and each applies the
newest list. */
template <Policy policy>
bool update_policy(sys_var *, THD *, enum_var_type) {
  static constinit std::mutex one_at_a_time;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    const memdiag::ceiling::No_wait no_wait;
    mysql_mutex_lock(&LOCK_global_system_variables);
    const std::string list =
        memdiag::policies::options[static_cast<size_t>(policy)];
    mysql_mutex_unlock(&LOCK_global_system_variables);
    (void)memdiag::policies::set(policy, list);
  }
  mysql_mutex_lock(&LOCK_global_system_variables);
  return false;
}

template <Policy policy>
class Policy_list : public Sys_var_charptr {
 public:
  explicit Policy_list(const System_variable &of)
      : Sys_var_charptr(
            of.name, of.comment,
            GLOBAL_VAR(memdiag::policies::options[static_cast<size_t>(policy)]),
            CMD_LINE(REQUIRED_ARG), IN_SYSTEM_CHARSET, DEFAULT(""),
            NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(check_policy<policy>),
            ON_UPDATE(update_policy<policy>)) {}
};

class Switch : public Checked_at_start<Sys_var_bool> {
 public:
  Switch(const System_variable &of, bool &value, on_update_function update)
      : Checked_at_start(of.name, of.comment, GLOBAL_VAR(value),
                         CMD_LINE(OPT_ARG), DEFAULT(of.default_value != 0),
                         NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
                         ON_UPDATE(update)) {}
};

class Number : public Checked_at_start<Sys_var_uint> {
 public:
  Number(const System_variable &of, unsigned &value, on_update_function update)
      : Checked_at_start(of.name, of.comment, GLOBAL_VAR(value),
                         CMD_LINE(REQUIRED_ARG), VALID_RANGE(of.min, of.max),
                         DEFAULT(of.default_value), BLOCK_SIZE(1),
                         NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(nullptr),
                         ON_UPDATE(update)),
        m_value(&value) {}
  /** Threads of ours read it at any time, without the server's lock. */
  bool global_update(THD *, set_var *var) override {
    __atomic_store_n(m_value,
                     static_cast<unsigned>(var->save_result.ulonglong_value),
                     __ATOMIC_RELAXED);
    return false;
  }

 private:
  unsigned *const m_value;
};

class Start_up_number : public Sys_var_uint {
 public:
  Start_up_number(const System_variable &of, unsigned &value)
      : Sys_var_uint(of.name, of.comment, READ_ONLY GLOBAL_VAR(value),
                     CMD_LINE(REQUIRED_ARG), VALID_RANGE(of.min, of.max),
                     DEFAULT(of.default_value), BLOCK_SIZE(1), NO_MUTEX_GUARD,
                     NOT_IN_BINLOG, ON_CHECK(nullptr), ON_UPDATE(nullptr)) {}
};

class Bytes : public Checked_at_start<Sys_var_ulonglong> {
 public:
  Bytes(const System_variable &of, ulonglong &value, on_update_function update,
        on_check_function check = nullptr)
      : Checked_at_start(of.name, of.comment, GLOBAL_VAR(value),
                         CMD_LINE(REQUIRED_ARG), VALID_RANGE(of.min, of.max),
                         DEFAULT(of.default_value), BLOCK_SIZE(1),
                         NO_MUTEX_GUARD, NOT_IN_BINLOG, ON_CHECK(check),
                         ON_UPDATE(update)) {}
};

/** A power of two, where the profiler needs one. */
bool check_power_of_two(sys_var *variable, THD *thd, set_var *var) {
  if (std::has_single_bit(var->save_result.ulonglong_value)) return false;
  my_error(ER_WRONG_ARGUMENTS, MYF(0),
           "memdiag_profile_sample_bytes (it must be a power of two, for "
           "example 524288)");
  return !takes_default(variable, thd, var);
}

/** Switching waits for readers of the profile, so the lock that each new
connection needs is released meanwhile. Two SETs at the same time take turns,
and each applies the newest values. One that fails stores OFF. So its error is
also that of each one whose value it had read, and whose turn comes behind it.
*/
bool apply_profile(const THD *thd) {
  using memdiag::profile_switch::settings;
  static constinit std::mutex one_at_a_time;
  /** The number of SETs. LOCK_global_system_variables protects it. */
  static constinit uint64_t sets = 0;
  /** @name Protected by one_at_a_time @{ */
  static constinit uint64_t failed_up_to = 0;
  static std::string wrong;
  /** @} */
  const uint64_t mine = ++sets;
  const bool wants_off = settings.mode == memdiag::profile_switch::off;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  bool is_refused = false;
  {
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    const memdiag::ceiling::No_wait no_wait;
    mysql_mutex_lock(&LOCK_global_system_variables);
    const memdiag::profile_switch::Settings newest = settings;
    const uint64_t sets_before = sets;
    mysql_mutex_unlock(&LOCK_global_system_variables);
    bool has_failed = !wants_off && mine <= failed_up_to &&
                      newest.mode == memdiag::profile_switch::off;
    if (!has_failed) {
      std::string why = memdiag::profile_switch::apply(newest);
      has_failed = !why.empty();
      if (has_failed) {
        wrong = std::move(why);
        failed_up_to = sets_before;
        mysql_mutex_lock(&LOCK_global_system_variables);
        // A SET that came meanwhile tries its own.
        if (sets == sets_before) settings.mode = memdiag::profile_switch::off;
        mysql_mutex_unlock(&LOCK_global_system_variables);
      }
    }
    is_refused = has_failed && !is_starting(thd);
    if (is_refused)
      my_printf_error(ER_UNKNOWN_ERROR, "memdiag_profile is OFF: %s", MYF(0),
                      wrong.c_str());
    else if (has_failed)
      memdiag::error_log::warn("memdiag_profile stays OFF: " + wrong);
  }
  mysql_mutex_lock(&LOCK_global_system_variables);
  return is_refused;
}

bool update_profile(sys_var *, THD *thd, enum_var_type) {
  return apply_profile(thd);
}

/** The new value holds from the next begin on, which is now. */
bool update_profile_setting(sys_var *, THD *thd, enum_var_type) {
  return memdiag::profile_switch::settings.mode !=
             memdiag::profile_switch::off &&
         apply_profile(thd);
}

/** As Sys_var_enum wants them: ended by nullptr. */
const char *profile_modes[] = {
    memdiag::profile_modes[memdiag::profile_switch::off],
    memdiag::profile_modes[memdiag::profile_switch::on],
    memdiag::profile_modes[memdiag::profile_switch::record], nullptr};

class Mode : public Checked_at_start<Sys_var_enum> {
 public:
  Mode(const System_variable &of, const char **modes, ulong &mode,
       on_update_function update)
      : Checked_at_start(of.name, of.comment, GLOBAL_VAR(mode),
                         CMD_LINE(REQUIRED_ARG), modes,
                         DEFAULT(of.default_value), NO_MUTEX_GUARD,
                         NOT_IN_BINLOG, ON_CHECK(nullptr), ON_UPDATE(update)) {}
};

bool update_survivors(sys_var *, THD *, enum_var_type) {
  memdiag::scopes::track(tracking::options.survivors);
  return false;
}

bool update_sessions(sys_var *, THD *, enum_var_type) {
  memdiag::sessions::track(tracking::options.sessions);
  return false;
}

bool update_history(sys_var *, THD *, enum_var_type) {
  memdiag::history::interval_changed();
  return false;
}

bool check_target(sys_var *self, THD *thd, set_var *var) {
  const LEX_STRING &text = var->save_result.string_value;
  // Of NULL the server itself says that it is refused.
  if (text.str != nullptr) {
    if (memdiag::ceiling::is_target({text.str, text.length})) return false;
    my_printf_error(ER_WRONG_VALUE_FOR_VAR,
                    "Variable '%s' can't be set to the value of '%s' (write "
                    "OFF, WATCH, AUTO or bytes, for example '2G'; 16M is the "
                    "least)",
                    MYF(0), self->name.str, text.str);
  }
  return !takes_default(self, thd, var);
}

/** Called with LOCK_global_system_variables, which each new connection needs.
changed() waits for the giver's round and may fill the buffer pool again, so the
mutex is released meanwhile, as in update_policy(). */
bool update_target(sys_var *, THD *thd, enum_var_type) {
  using memdiag::ceiling::wish;
  static constinit std::mutex one_at_a_time;
  const memdiag::ceiling::No_wait no_wait;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  const std::unique_lock<std::mutex> guard(one_at_a_time);
  mysql_mutex_lock(&LOCK_global_system_variables);
  const std::string text = wish;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  const int error = memdiag::ceiling::changed(text);
  mysql_mutex_lock(&LOCK_global_system_variables);
  if (error != 0) {
    push_warning_printf(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                        "memdiag: the ceiling is OFF: error %d", error);
    // A SET that came meanwhile tries its own.
    if (text != wish) return false;
    // The server made a copy of what was set, and frees it at the next SET.
    my_free(wish);
    wish = my_strdup(key_memory_Sys_var_charptr_value, "OFF", MYF(0));
  } else if (const std::string doubt = memdiag::ceiling::doubt();
             !doubt.empty())
    push_warning(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                 ("memdiag: " + doubt).c_str());
  return false;
}

/** Bytes may be given as a number, too. */
class Memory_target : public Sys_var_charptr {
 public:
  explicit Memory_target(const System_variable &of)
      : Sys_var_charptr(of.name, of.comment, GLOBAL_VAR(memdiag::ceiling::wish),
                        CMD_LINE(REQUIRED_ARG), IN_SYSTEM_CHARSET,
                        DEFAULT("AUTO"), NO_MUTEX_GUARD, NOT_IN_BINLOG,
                        ON_CHECK(check_target), ON_UPDATE(update_target)) {}
  bool check_update_type(Item_result type) override {
    return type != STRING_RESULT && type != INT_RESULT;
  }
};

Start_up_list routes(system_variable("memdiag_routes"),
                     memdiag::routes::options.routes);
Start_up_list disabled_pools(system_variable("memdiag_disabled_pools"),
                             memdiag::routes::options.disabled_pools);

Policy_list<Policy::quiet_ms> quiet_ms(system_variable("memdiag_quiet_ms"));
Policy_list<Policy::dirty_decay_ms> dirty_decay_ms(
    system_variable("memdiag_dirty_decay_ms"));
Policy_list<Policy::muzzy_decay_ms> muzzy_decay_ms(
    system_variable("memdiag_muzzy_decay_ms"));
Policy_list<Policy::dirty_limit> dirty_limit(
    system_variable("memdiag_dirty_limit"));

Switch scope_survivors(system_variable("memdiag_scope_survivors"),
                       tracking::options.survivors, update_survivors);
Switch sessions(system_variable("memdiag_sessions"), tracking::options.sessions,
                update_sessions);

Number history_interval_ms(system_variable("memdiag_history_interval_ms"),
                           memdiag::history::interval_ms, update_history);
constexpr System_variable of_samples =
    system_variable("memdiag_history_samples");
static_assert(of_samples.max == memdiag::black_box::max_capacity);
Start_up_number history_samples(of_samples, memdiag::history::capacity);

Mode profile(system_variable("memdiag_profile"), profile_modes,
             memdiag::profile_switch::settings.mode, update_profile);
constexpr System_variable of_profile_sample_bytes =
    system_variable("memdiag_profile_sample_bytes");
static_assert(of_profile_sample_bytes.max ==
              memdiag::profiling::most_sample_bytes);
Bytes profile_sample_bytes(of_profile_sample_bytes,
                           memdiag::profile_switch::settings.sample_bytes,
                           update_profile_setting, check_power_of_two);
constexpr System_variable of_profile_memory =
    system_variable("memdiag_profile_memory");
static_assert(of_profile_memory.min == memdiag::profiling::least_memory_bytes &&
              of_profile_memory.max == memdiag::profiling::most_memory_bytes);
Bytes profile_memory(of_profile_memory,
                     memdiag::profile_switch::settings.memory_bytes,
                     update_profile_setting);

Memory_target memory_target(system_variable("memdiag_memory_target"));
Number memory_wait_ms(system_variable("memdiag_memory_wait_ms"),
                      memdiag::ceiling::wait_ms, nullptr);

}  // namespace
