/*
  The X plugin copies each value of a row into pages of malloc(), which cannot
  be refused, before it sends the row. Below the ceiling, statements with long
  values would wait for each other within malloc(), where they cannot be ended.
  So a long value is asked for before it is copied: its statement waits, or ends
  with an error.

  The linker redirects the server's calls of command_service_run_command() to
  this file (--wrap, in cmake/upstream/product.cmake): those of the X plugin,
  and those of plugins that run commands as a service. It runs a command of a
  session, and calls functions of the plugin with the values of its rows.

  Threads: the one that runs the command; one command may run within another.
  Errors: as the replaced function.
*/

#include <utility>

#include "mysql/service_command.h"
#include "mysys/memdiag/upstream/message_hooks.h"

int run_command_of_server(MYSQL_SESSION session, enum_server_command command, const COM_DATA *data, const CHARSET_INFO *charset, const st_command_service_cbs *callbacks, cs_text_or_binary representation, void *context) asm(
    "__real__Z27command_service_run_commandP11Srv_session19"
    "enum_server_commandPK8COM_DATAPK12CHARSET_INFOPK22st_"
    "command_service_cbs17cs_text_or_binaryPv");
int run_command_here(MYSQL_SESSION session, enum_server_command command, const COM_DATA *data, const CHARSET_INFO *charset, const st_command_service_cbs *callbacks, cs_text_or_binary representation, void *context) asm(
    "__wrap__Z27command_service_run_commandP11Srv_session19"
    "enum_server_commandPK8COM_DATAPK12CHARSET_INFOPK22st_"
    "command_service_cbs17cs_text_or_binaryPv");

namespace {

/** The plugin's functions, for the command that the calling thread runs. */
constinit thread_local const st_command_service_cbs *of_plugin = nullptr;

int get_string(void *context, const char *value, size_t length,
               const CHARSET_INFO *charset) {
  return memdiag::value_is_refused(length)
             ? 1
             : of_plugin->get_string(context, value, length, charset);
}

}  // namespace

int run_command_here(MYSQL_SESSION session, enum_server_command command,
                     const COM_DATA *data, const CHARSET_INFO *charset,
                     const st_command_service_cbs *callbacks,
                     cs_text_or_binary representation, void *context) {
  st_command_service_cbs asking = *callbacks;
  if (asking.get_string != nullptr) asking.get_string = get_string;
  const auto *const outer = std::exchange(of_plugin, callbacks);
  const int error = run_command_of_server(session, command, data, charset,
                                          &asking, representation, context);
  of_plugin = outer;
  return error;
}
