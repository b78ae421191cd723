#define LOG_SUBSYSTEM_TAG "memdiag"
#define LOG_COMPONENT_TAG "memdiag"

#include "plugin/memdiag/server/bridge/error_log.h"

#include <mysql/components/services/log_builtins.h>

#include "mysqld_error.h"

namespace memdiag::error_log {

void note(const std::string &text) {
  LogPluginErrMsg(INFORMATION_LEVEL, ER_LOG_PRINTF_MSG, "%s", text.c_str());
}

void announce(const std::string &text) {
  LogPluginErrMsg(SYSTEM_LEVEL, ER_LOG_PRINTF_MSG, "%s", text.c_str());
}

void warn(const std::string &text) {
  LogPluginErrMsg(WARNING_LEVEL, ER_LOG_PRINTF_MSG, "%s", text.c_str());
}

void error(const std::string &text) {
  LogPluginErrMsg(ERROR_LEVEL, ER_LOG_PRINTF_MSG, "%s", text.c_str());
}

}  // namespace memdiag::error_log
