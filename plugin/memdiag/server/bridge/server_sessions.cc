#include "plugin/memdiag/server/bridge/server_sessions.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

#include "mutex_lock.h"
#include "my_systime.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/advice/holdings.h"
#include "plugin/memdiag/base/elapsed.h"
#include "plugin/memdiag/server/bridge/perfschema.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/conn_handler/connection_handler_manager.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/sql_class.h"

namespace memdiag::sessions {
namespace {

class Collect : public Do_THD_Impl {
 public:
  void operator()(THD *thd) override {
    if (thd->real_id == null_thread_initializer) return;
    Server_session session{};
    session.thread = thd->real_id;
    session.processlist_id = thd->thread_id();
    {
      MUTEX_LOCK(guard, &thd->LOCK_thd_security_ctx);
      // Not that of a stored program which it may be in.
      const Security_context &context = thd->m_main_security_ctx;
      const LEX_CSTRING user = context.user();
      if (user.str != nullptr)
        session.user.assign(user.str, user.length);
      else
        session.user =
            thd->system_thread ? "system user" : "unauthenticated user";
      const LEX_CSTRING host = context.host_or_ip();
      if (host.str != nullptr) session.host.assign(host.str, host.length);
    }
    session.program = perfschema::program_name(thd->get_psi());
    if (const auto digest = perfschema::current_digest(thd->get_psi()))
      session.digest = text_of(*digest);
    found.push_back(std::move(session));
  }

  std::vector<Server_session> found;
};

class Collect_threads : public Do_THD_Impl {
 public:
  using Session_and_thread = std::pair<uint64_t, pthread_t>;

  void operator()(THD *thd) override {
    found.emplace(thd->thread_id(), thd->real_id);
  }

  std::set<Session_and_thread> found;
};

/** held_at_most() costs more than a session with less is worth. */
constexpr uint64_t worth_bounding_bytes = 16 << 20;

class Find_largest : public Do_THD_Impl {
 public:
  void operator()(THD *thd) override {
    const auto bytes = perfschema::memory_bytes(thd->get_psi());
    if (!bytes || *bytes <= (found ? found->bytes : 0)) return;
    found = {thd->thread_id(), *bytes,
             perfschema::current_digest(thd->get_psi()).value_or(Digest{})};
  }

  std::optional<history::Holder> found;
};

bool sends_binlog(THD *thd) {
  const enum_server_command command = thd->get_command();
  return command == COM_BINLOG_DUMP || command == COM_BINLOG_DUMP_GTID;
}

bool is_client(THD *thd) {
  return thd->system_thread == NON_SYSTEM_THREAD && !sends_binlog(thd);
}

/** The instrument of strings, and those of what may keep some in a session that
waits for a statement. */
constexpr const char *names_of_strings[] = {
    "memory/sql/String::value", "memory/sql/Prepared_statement::main_mem_root",
    "memory/sql/THD::sp_cache"};

/** Traces stay when they are switched off. The default lets a session keep 1
MiB of them. Words that its session may change meanwhile. */
bool may_keep_traces(THD *thd) {
  constexpr ulong default_bytes = 1 << 20;
  return (thd->variables.optimizer_trace & Opt_trace_context::FLAG_ENABLED) !=
             0 ||
         thd->variables.optimizer_trace_max_mem_size > default_bytes;
}

/** The statement that ends idle sessions asks the same (holder_list.cc).
@param held  of names_of_strings at least */
bool may_keep_strings(THD *thd, std::span<const instruments::Held> held) {
  return may_keep_traces(thd) ||
         std::any_of(
             held.begin(), held.end(), [](const instruments::Held &each) {
               return each.bytes != 0 && (each.name == names_of_strings[1] ||
                                          each.name == names_of_strings[2]);
             });
}

/** False: open tables keep what Performance Schema counts of strings for the
session, or others have freed it. */
bool may_hold_strings(THD *thd, std::span<const instruments::Held> held) {
  return thd->get_command() != COM_SLEEP || thd->temporary_tables != nullptr ||
         may_keep_strings(thd, held);
}

class Find_largest_client : public Do_THD_Impl {
 public:
  /** @param all  nullptr: bytes may include some that others have freed */
  explicit Find_largest_client(const std::vector<instruments::Counted> *all)
      : m_all(all) {}

  void operator()(THD *thd) override {
    if (!is_client(thd)) return;
    const auto counted = perfschema::memory_bytes(thd->get_psi());
    if (!counted || *counted == 0) return;
    Client client{thd->thread_id(), *counted, {}};
    if (m_all != nullptr && *counted >= worth_bounding_bytes) {
      client.held = perfschema::held_at_most(thd->get_psi(), *m_all);
      note_heaps(client, thd->get_command() == COM_SLEEP);
      const bool has_strings = may_hold_strings(thd, client.held);
      std::erase_if(client.held, [has_strings](const instruments::Held &each) {
        return !advisor::ends_with_session(each.name,
                                           routes::declared_pool(each.name)) ||
               (!has_strings && each.name == names_of_strings[0]);
      });
      uint64_t held = 0;
      for (const instruments::Held &each : client.held) held += each.bytes;
      client.bytes = std::min(client.bytes, held);
    }
    if (client.bytes <= (found ? found->bytes : 0)) return;
    // A word that its session may change meanwhile.
    client.in_transaction = thd->in_active_multi_stmt_transaction();
    client.is_idle = thd->get_command() == COM_SLEEP;
    found = std::move(client);
  }

  /** @return empty: there is no client */
  std::optional<Client> result() {
    if (found) {
      found->heaps_processlist_id = m_heaps_processlist_id;
      found->heaps_bytes = m_heaps_bytes;
      found->heaps_are_idle = m_heaps_are_idle;
    }
    return std::move(found);
  }

 private:
  void note_heaps(const Client &client, bool is_idle) {
    for (const instruments::Held &each : client.held) {
      if (each.name != advisor::innodb_heaps || each.bytes <= m_heaps_bytes)
        continue;
      m_heaps_processlist_id = client.processlist_id;
      m_heaps_bytes = each.bytes;
      m_heaps_are_idle = is_idle;
    }
  }

  std::optional<Client> found;
  uint64_t m_heaps_processlist_id{0};
  uint64_t m_heaps_bytes{0};
  bool m_heaps_are_idle{false};
  const std::vector<instruments::Counted> *const m_all;
};

class Add_up : public Do_THD_Impl {
 public:
  Add_up(const Ask_counted &counted, bool asks_strings)
      : m_counted(counted), m_asks_strings(asks_strings) {}

  void operator()(THD *thd) override {
    // Events and replication keep tables open, too.
    if (keeps_tables(thd)) ++found.table_keepers;
    if (m_asks_strings) add_held_strings(thd);
    const auto bytes = perfschema::memory_bytes(thd->get_psi());
    if (sends_binlog(thd)) {
      if (bytes && *bytes >= worth_asking_bytes) add_strings(thd);
      return;
    }
    if (!is_client(thd)) return;
    ++found.clients;
    if (thd->thread_id() < m_first_with_counts)
      ++found.clients_before_counts_of_locks;
    if (perfschema::counts_memory_of(thd->get_psi())) ++found.counted_clients;
    if (thd->get_command() != COM_SLEEP) return;
    ++found.idle_clients;
    found.idle_warnings += std::min<uint64_t>(
        perfschema::warnings(thd->get_psi()), thd->variables.max_error_count);
    found.idle_bytes += bytes.value_or(0);
    // SET TIMESTAMP does not set this clock.
    if (m_now_us >= thd->start_utime + long_us)
      found.long_idle_bytes += bytes.value_or(0);
  }

  Totals found{};

 private:
  /** A thread that sends the binary log and has less is not asked for its
  strings. A finding is of 64 MiB at least (advisor::worth_bytes), which fewer
  than 64 such threads do not have. Chosen. */
  static constexpr uint64_t worth_asking_bytes = 1 << 20;
  static constexpr uint64_t long_us = 60'000'000;

  /** Words that its session may change meanwhile. A client has its answer to
  LOCK TABLES before the session's command is COM_SLEEP. */
  bool keeps_tables(THD *thd) const {
    constexpr uint64_t short_us = 10'000'000;
    const enum_locked_tables_mode mode = thd->locked_tables_mode;
    if (!thd->handler_tables_hash.empty() || mode == LTM_LOCK_TABLES ||
        mode == LTM_PRELOCKED_UNDER_LOCK_TABLES)
      return true;
    if (thd->open_tables == nullptr) return false;
    // The start of a statement that has begun meanwhile is not to come.
    const uint64_t start_us = thd->start_utime;
    return thd->get_command() == COM_SLEEP ||
           may_have_passed(short_us, start_us, my_micro_time());
  }

  void add_strings(THD *thd) {
    for (const instruments::Held &each : perfschema::held_at_most(
             thd->get_psi(), m_counted(), std::span(names_of_strings).first(1)))
      found.dump_thread_bytes += each.bytes;
  }

  void add_held_strings(THD *thd) {
    const std::vector<instruments::Held> held =
        perfschema::held_at_most(thd->get_psi(), m_counted(), names_of_strings);
    if (!may_hold_strings(thd, held)) return;
    uint64_t bytes = 0;
    for (const instruments::Held &each : held)
      if (each.name == names_of_strings[0]) bytes = each.bytes;
    found.string_bytes += bytes;
    if (is_client(thd) && thd->get_command() == COM_SLEEP &&
        may_keep_strings(thd, held))
      found.idle_string_bytes += bytes;
  }

  const Ask_counted &m_counted;
  const bool m_asks_strings;
  const uint64_t m_first_with_counts =
      perfschema::first_session_with_counts_of_locks();
  const uint64_t m_now_us = my_micro_time();
};

/** Sessions that end wait for LOCK_thd_remove meanwhile, so the calling thread
does not wait for memory. */
void do_for_all(Do_THD_Impl *visitor) {
  const ceiling::No_wait no_wait;
  Global_THD_manager::get_instance()->do_for_all_thd_copy(visitor);
}

std::optional<Client> find_largest_client(
    const std::vector<instruments::Counted> *all) {
  Find_largest_client find(all);
  do_for_all(&find);
  return find.result();
}

}  // namespace

std::optional<history::Holder> largest_session() {
  Find_largest find;
  do_for_all(&find);
  return find.found;
}

std::optional<Client> largest_client(const Ask_counted &counted) {
  auto found = find_largest_client(nullptr);
  if (!found || found->bytes < worth_bounding_bytes) return found;
  return find_largest_client(&counted());
}

Totals totals(const Ask_counted &counted, bool asks_strings) {
  Add_up add(counted, asks_strings);
  do_for_all(&add);
  return add.found;
}

bool have_threads_of_their_own() {
  // Its last value is that of any plugin.
  return Connection_handler_manager::thread_handling !=
         Connection_handler_manager::SCHEDULER_TYPES_COUNT;
}

std::vector<Server_session> server_sessions() {
  Collect collect;
  do_for_all(&collect);
  return std::move(collect.found);
}

void drop_ended(std::vector<Server_session> *sessions) {
  Collect_threads now;
  do_for_all(&now);
  std::erase_if(*sessions, [&now](const Server_session &session) {
    return !now.found.contains({session.processlist_id, session.thread});
  });
}

}  // namespace memdiag::sessions
