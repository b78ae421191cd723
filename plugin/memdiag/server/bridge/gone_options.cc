#include "plugin/memdiag/server/bridge/gone_options.h"

#include <mysql/plugin.h>

#include <string>

#include "plugin/memdiag/server/bridge/error_log.h"

namespace memdiag::gone_options {
namespace {

/** GONE(name, what to see instead) */
#define MEMDIAG_GONE_OPTIONS(GONE)                        \
  GONE(pressure_watcher, "memdiag_memory_target")         \
  GONE(pressure_limit, "memdiag_memory_target")           \
  GONE(pressure_stall_percent, "memdiag_memory_target")   \
  GONE(pressure_buffer_pool_min, "memdiag_memory_target") \
  GONE(admission, "memdiag_memory_target")                \
  GONE(admission_reserve, "memdiag_memory_target")        \
  GONE(admission_wait_ms, "memdiag_memory_wait_ms")

constexpr unsigned flags =
    PLUGIN_VAR_NOSYSVAR | PLUGIN_VAR_READONLY | PLUGIN_VAR_OPCMDARG;

#define DECLARE(name, instead)                                           \
  char *name##_text;                                                     \
  static MYSQL_SYSVAR_STR(name, name##_text, flags,                      \
                          "Does nothing, and is gone (docs/ceiling.md)", \
                          nullptr, nullptr, nullptr);
MEMDIAG_GONE_OPTIONS(DECLARE)
#undef DECLARE

struct Gone {
  const char *name;
  char *const *text;
  const char *instead;
};
#define ROW(name, instead) {"memdiag_" #name, &name##_text, instead},
constexpr Gone all[] = {MEMDIAG_GONE_OPTIONS(ROW)};
#undef ROW

}  // namespace

#define OPTION(name, instead) MYSQL_SYSVAR(name),
SYS_VAR *options[] = {MEMDIAG_GONE_OPTIONS(OPTION) nullptr};
#undef OPTION

void name_those_set() {
  for (const Gone &gone : all)
    if (*gone.text != nullptr)
      error_log::warn(std::string(gone.name) +
                      " is gone and does nothing: remove it from the options, "
                      "and see " +
                      gone.instead);
}

}  // namespace memdiag::gone_options
