#include "plugin/memdiag/server/bridge/gone_options.h"

#include <mysql/plugin.h>

#include <string>

#include "plugin/memdiag/server/bridge/error_log.h"

namespace memdiag::gone_options {
namespace {

char *pressure_watcher_text;
char *pressure_limit_text;
char *pressure_stall_percent_text;
char *pressure_buffer_pool_min_text;
char *admission_text;
char *admission_reserve_text;
char *admission_wait_ms_text;

constexpr unsigned flags =
    PLUGIN_VAR_NOSYSVAR | PLUGIN_VAR_READONLY | PLUGIN_VAR_OPCMDARG;

#define MEMDIAG_GONE(name)                     \
  MYSQL_SYSVAR_STR(name, name##_text, flags,   \
                   "Does nothing, and is gone" \
                   " (docs/ceiling.md)",       \
                   nullptr, nullptr, nullptr)
static MEMDIAG_GONE(pressure_watcher);
static MEMDIAG_GONE(pressure_limit);
static MEMDIAG_GONE(pressure_stall_percent);
static MEMDIAG_GONE(pressure_buffer_pool_min);
static MEMDIAG_GONE(admission);
static MEMDIAG_GONE(admission_reserve);
static MEMDIAG_GONE(admission_wait_ms);
#undef MEMDIAG_GONE

struct Gone {
  const char *name;
  char *const *text;
  const char *instead;
};
constexpr const char *target = "memdiag_memory_target";
constexpr Gone all[] = {
    {"memdiag_pressure_watcher", &pressure_watcher_text, target},
    {"memdiag_pressure_limit", &pressure_limit_text, target},
    {"memdiag_pressure_stall_percent", &pressure_stall_percent_text, target},
    {"memdiag_pressure_buffer_pool_min", &pressure_buffer_pool_min_text,
     target},
    {"memdiag_admission", &admission_text, target},
    {"memdiag_admission_reserve", &admission_reserve_text, target},
    {"memdiag_admission_wait_ms", &admission_wait_ms_text,
     "memdiag_memory_wait_ms"}};

}  // namespace

SYS_VAR *options[] = {MYSQL_SYSVAR(pressure_watcher),
                      MYSQL_SYSVAR(pressure_limit),
                      MYSQL_SYSVAR(pressure_stall_percent),
                      MYSQL_SYSVAR(pressure_buffer_pool_min),
                      MYSQL_SYSVAR(admission),
                      MYSQL_SYSVAR(admission_reserve),
                      MYSQL_SYSVAR(admission_wait_ms),
                      nullptr};

void name_those_set() {
  for (const Gone &gone : all)
    if (*gone.text != nullptr)
      error_log::warn(std::string(gone.name) +
                      " is gone and does nothing: remove it from the options, "
                      "and see " +
                      gone.instead);
}

}  // namespace memdiag::gone_options
