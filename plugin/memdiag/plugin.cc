/*
  The plugin: what starts and ends with the server, and what it declares. A
  plugin that is linked in must not fail, or the server would not start: what
  cannot be had is said in the error log, and the rest works without.
*/

#include <mysql/plugin.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "mysql_version.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pages/program.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/allocator/preload.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/base/record_file.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/server/bridge/before_1_0.h"
#include "plugin/memdiag/server/bridge/buffer_pool_pages.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/bridge/perfschema.h"
#include "plugin/memdiag/server/bridge/server_sessions.h"
#include "plugin/memdiag/server/functions/functions.h"
#include "plugin/memdiag/server/tables/information_schema.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "plugin/memdiag/server/tables/status_server.h"
#include "plugin/memdiag/server/threads/ceiling.h"
#include "plugin/memdiag/server/threads/member_watch.h"
#include "plugin/memdiag/server/threads/meters.h"
#include "plugin/memdiag/server/threads/profile_switch.h"
#include "plugin/memdiag/tables/profile_formats.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "plugin/memdiag/tables/tables.h"
#include "sql/mysqld.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {
namespace {

void note_allocator() {
  const Snapshot snapshot = take_snapshot();
  std::string pools;
  for (const Pool_spec &spec : pool_specs) {
    if (!pools.empty()) pools += ", ";
    pools += spec.name;
  }
  error_log::note(
      "jemalloc " + snapshot.allocator.version.value_or("of unknown version") +
      (mallctl::serves_malloc() ? "" : " beside another malloc") +
      "; options: " + snapshot.allocator.options.value_or("unknown") +
      "; pools: " + pools);
  if (snapshot.allocator.preloaded)
    error_log::warn(
        "other memory allocators are loaded into this process: " +
        *snapshot.allocator.preloaded +
        ". They serve nothing, because the server's own is part of its "
        "executable; remove them from LD_PRELOAD or from the service's file.");
}

/** The allocator's own threads, if its options ask for them. The forked child
of --daemonize has none of its parent's threads, and jemalloc does not make new
ones by itself. @return 0, or the errno of the control that failed */
int start_background_threads() {
  const Result<bool> wanted = mallctl::read<Ctl::opt_background_thread>();
  if (!wanted) return wanted.error();
  const Result<bool> running = mallctl::read<Ctl::background_thread>();
  if (!running) return running.error();
  if (!wanted.value() || running.value()) return 0;
  return mallctl::write<Ctl::background_thread>(true);
}

/** The server has it since before its plugins start. */
uint64_t hash_of_server() {
  return record_file::fnv1a(
      std::as_bytes(std::span{server_uuid, strlen(server_uuid)}));
}

void start_history() {
  // A data directory that is being made is to have nothing that the server
  // itself does not make.
  if (opt_initialize) return;
  const history::Started started = history::start(
      std::string(mysql_real_data_home) + history::file_name, MYSQL_VERSION_ID,
      hash_of_server(), sessions::largest_session, error_log::warn,
      innodb::log_buffer);
  if (started.was_killed)
    error_log::announce(started.remark);
  else if (!started.remark.empty())
    error_log::note(started.remark);
  if (started.file_error != 0)
    error_log::warn(std::string(history::file_name) +
                    " cannot be made in the data directory (" +
                    reason(started.file_error) +
                    "): samples of this run are kept in memory only, until a "
                    "later attempt succeeds.");
  if (started.thread_error != 0)
    error_log::warn("the sampling thread cannot be started (" +
                    reason(started.thread_error) + "): there is no history.");
}

/** After the fork of --daemonize. A data directory that is being made is not
profiled. */
void start_profile() {
  if (opt_initialize) profile_switch::settings.mode = profile_switch::off;
  const std::string path = opt_initialize ? ""
                                          : std::string(mysql_real_data_home) +
                                                profile_switch::file_name;
  if (const std::string wrong = profile_switch::start(path, hash_of_server());
      !wrong.empty())
    error_log::warn("memdiag_profile stays OFF: " + wrong);
}

void warn_of_function(const char *name) {
  error_log::warn(std::string("the function ") + name +
                  "() cannot be registered: is there another of that name?");
}

int start(void *plugin) {
  // A wrong option ends the server, as with any other option: it would run
  // otherwise than its user thinks.
  std::string wrong = routes::apply_options();
  if (wrong.empty()) wrong = policies::apply_options();
  if (!wrong.empty()) {
    error_log::error(wrong);
    return 1;
  }
  if (const std::string unknown = routes::unknown_in_options();
      !unknown.empty())
    error_log::warn("memdiag_routes: no route begins with " + unknown +
                    ". It has no effect, unless a plugin that starts later "
                    "registers such a memory instrument. "
                    "INFORMATION_SCHEMA.MEMDIAG_ROUTES has all.");
  before_1_0::name_set_options();
  tracking::apply_options();
  note_allocator();
  if (const int error = start_background_threads(); error != 0)
    error_log::warn("the allocator's background threads cannot be started (" +
                    reason(error) +
                    "): an idle server does not give back unused memory "
                    "outside of the pools.");
  if (const int error = purger::start(); error != 0)
    error_log::warn("the purging thread cannot be started (" + reason(error) +
                    "): memory of a pool is given back by decay alone.");
  if (const int error = statement_readings::start(); error != 0)
    error_log::warn(
        "the thread that frees readings of tables cannot be started (" +
        reason(error) + "): they stay until another statement reads a table.");
  limits::set_growth(buffer_pool_growth);
  perfschema::see_switches();
  start_history();
  if (!opt_initialize) {
    member_watch::start();
    ceiling::start();
  }
  start_profile();
  if (!opt_initialize && !before_1_0::watch_for_grants(plugin))
    error_log::warn("nothing reports old grants of MEMDIAG_ADMIN.");
  if (!purge_function::register_it()) warn_of_function(purge_function_name);
  if (!profile_function::register_it()) warn_of_function(profile_function_name);
  if (opt_initialize) return 0;
  meters::register_them();
  // Most of what a start executes is over.
  (void)program::give_back_pages();
  mallctl::keep_metadata_small();
  return 0;
}

/** When the process ends by exit(), as each shutdown does. The server's error
log and Performance Schema are gone then: it only writes to files. */
void end() {
  profile_switch::end();
  history::end();
}

int stop(void *plugin) {
  meters::unregister_them();
  profile_function::unregister_it();
  purge_function::unregister_it();
  before_1_0::stop(plugin);
  profile_switch::stop();
  ceiling::stop();
  member_watch::stop();
  statement_readings::stop();
  purger::stop();
  history::stop();
  // InnoDB is shut down after this plugin, and may write pages for minutes. A
  // server that is killed meanwhile was not shut down. Only a process whose
  // plugin was stopped has the handler: neither the parent of --daemonize nor a
  // server that crashes.
  if (std::atexit(end) != 0) end();
  return 0;
}

constexpr const char *author = "The memdiag authors";
constexpr unsigned version = 0x0100;

st_mysql_daemon daemon_info = {MYSQL_DAEMON_INTERFACE_VERSION};
st_mysql_information_schema table_info = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

template <const auto &table>
st_mysql_plugin table_plugin() {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &table_info,
          table.name,
          author,
          table.summary,
          PLUGIN_LICENSE_GPL,
          information_schema::init<table>,
          nullptr,
          nullptr,
          table.version,
          nullptr,
          nullptr,
          nullptr,
          0};
}

}  // namespace
}  // namespace memdiag

mysql_declare_plugin(memdiag){
    MYSQL_DAEMON_PLUGIN,
    &memdiag::daemon_info,
    "memdiag",
    memdiag::author,
    "Memory pools and what they hold: purging, status, a function to purge",
    PLUGIN_LICENSE_GPL,
    memdiag::start,
    nullptr,
    memdiag::stop,
    memdiag::version,
    memdiag::status_server::show_variables(),
    memdiag::before_1_0::options,
    nullptr,
    0,
}
#define DECLARE(name) , memdiag::table_plugin<memdiag::name##_table>()
MEMDIAG_TABLES(DECLARE)
#undef DECLARE
    mysql_declare_plugin_end;
