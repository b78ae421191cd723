#include "plugin/memdiag/advice/holder_list.h"

#include <utility>

namespace memdiag::advisor {
namespace {

constexpr std::string_view least_of_a_session = "65536";

/** TempTable's first block, which each statement with a temporary table takes,
is half of this. */
constexpr std::string_view more_than_a_first_block = "2097152";
constexpr std::string_view temporary_tables = "temporary tables";
constexpr std::string_view strings = "strings";

/** A regular expression for the beginnings of names. None of them has a letter
that means something in one. */
std::string pattern(const Holder &holder) {
  std::string result = "^(";
  for (const std::string_view part : holder.instruments) {
    if (result.size() > 2) result += '|';
    result += part;
  }
  return result + ')';
}

/** Sessions of clients: thread/sql/one_connection,
thread/thread_pool/tp_one_connection, and those of the X protocol. A worker of
the X plugin without a session has no command. Performance Schema's TYPE does
not tell clients from events and replication. The column has no room for whole
names. */
constexpr const char *is_of_client =
    "(NAME LIKE '%one_connection' OR NAME LIKE '%/mysqlx/worker')";

/** The end of a session rolls back what it has changed. A query of its own
transaction has changed nothing. */
constexpr const char *not_in_a_transaction =
    " AND PROCESSLIST_ID NOT IN (SELECT trx_mysql_thread_id FROM "
    "information_schema.INNODB_TRX WHERE trx_autocommit_non_locking = 0)";

/** The end of a session rolls nothing back, and releases no lock: of LOCK
TABLES and HANDLER, of GET_LOCK(), by which applications choose a leader, and of
a backup. Metadata locks of a transaction count as well. */
std::string loses_nothing() {
  return std::string(not_in_a_transaction) +
         " AND THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
         "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL)";
}

/** Without locks that outlive a statement and its transaction. Those of LOCK
TABLES are shown as a transaction's: InnoDB's tables have SHARED_READ_ONLY from
READ, and not_ddl finds those from WRITE. READ LOCAL of another engine is not
found. */
constexpr const char *keeps_no_lock =
    " AND THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
    "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL AND "
    "(LOCK_DURATION = 'EXPLICIT' OR LOCK_TYPE = 'SHARED_READ_ONLY'))";

/** KILL QUERY ends the statement of a session. It finds none in a session that
waits for its next one. A session that waits for its client to read the result
does not look for KILL QUERY until net_write_timeout. KILL ends both. Only
INFORMATION_SCHEMA.PROCESSLIST shows that a session waits for its client;
MariaDB has another name for that state. */
std::string kill_or_kill_query() {
  return "IF(PROCESSLIST_COMMAND = 'Sleep' OR (PROCESSLIST_ID IN (SELECT ID "
         "FROM information_schema.PROCESSLIST WHERE STATE IN ('Sending to "
         "client', 'Writing to net'))" +
         std::string(not_in_a_transaction) + keeps_no_lock +
         "), 'KILL ', 'KILL QUERY ')";
}

/** A session that waits for a statement keeps strings in prepared statements,
in programs that it called, and in optimizer traces. Any other computed those
that it counts for a table, which another session has closed. Traces stay when
they are switched off; the default lets a session keep 1 MiB of them.
server_sessions.cc asks the same of a session. */
constexpr const char *may_keep_strings =
    " AND (THREAD_ID IN (SELECT THREAD_ID FROM "
    "performance_schema.memory_summary_by_thread_by_event_name WHERE "
    "EVENT_NAME IN ('memory/sql/Prepared_statement::main_mem_root', "
    "'memory/sql/THD::sp_cache') AND CURRENT_NUMBER_OF_BYTES_USED > 0) OR "
    "THREAD_ID IN (SELECT THREAD_ID FROM "
    "performance_schema.variables_by_thread WHERE (VARIABLE_NAME = "
    "'optimizer_trace' AND VARIABLE_VALUE LIKE 'enabled=on%') OR "
    "(VARIABLE_NAME = 'optimizer_trace_max_mem_size' AND VARIABLE_VALUE > "
    "1048576)))";

/** DDL would begin again from the start, and end after as long. It has such a
lock until its transaction ends, and nothing else that runs but LOCK TABLES ...
WRITE has. Its text need not begin with its word. events_statements_current has
another EVENT_NAME for it where it is prepared or in a stored program. */
constexpr const char *not_ddl =
    " AND THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
    "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL AND "
    "LOCK_DURATION <> 'EXPLICIT' AND LOCK_TYPE IN ('SHARED_UPGRADABLE', "
    "'SHARED_NO_WRITE', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE'))";

/** One that has less than half of what the largest has is of another kind: its
end frees little, and it does nothing unusual. The largest may be one that no
statement may end. Replicas' threads, which send the binary log, are a holder of
their own. */
constexpr const char *has_much = "2 * BYTES >= MOST";

/** Sessions, as threads of Performance Schema, with the bytes that each has and
those of the largest. REGEXP refuses a pattern of a session with SET NAMES
binary, so the pattern names its character set. */
std::string owners(const std::string &events, const char *that_have,
                   const char *commands) {
  return "(SELECT threads.*, BYTES, MAX(BYTES) OVER () AS MOST FROM "
         "performance_schema.threads JOIN (SELECT THREAD_ID, "
         "SUM(CURRENT_NUMBER_OF_BYTES_USED) AS BYTES FROM "
         "performance_schema.memory_summary_by_thread_by_event_name WHERE "
         "EVENT_NAME RLIKE _utf8mb4'" +
         events + "' GROUP BY THREAD_ID" + that_have +
         ") AS held USING (THREAD_ID) WHERE PROCESSLIST_COMMAND " + commands +
         ") AS owners";
}

/** Sessions of clients. Replication has threads of other names. */
std::string sessions_that(const std::string &command, const std::string &owners,
                          const std::string &commands,
                          std::string_view least = least_of_a_session) {
  return "SELECT CONCAT(" + command + ", PROCESSLIST_ID) AS RUN FROM " +
         owners + " WHERE BYTES >= " + std::string(least) + " AND " + has_much +
         " AND " + is_of_client + " AND PROCESSLIST_COMMAND IN (" + commands +
         ") AND PROCESSLIST_ID <> CONNECTION_ID()";
}

/** Leaves out sessions whose program has such a name. */
std::string not_of_program(const char *condition) {
  return std::string(
             " AND PROCESSLIST_ID NOT IN (SELECT PROCESSLIST_ID FROM "
             "performance_schema.session_connect_attrs WHERE ATTR_NAME = "
             "'program_name' AND ") +
         condition + ")";
}

/** memdiag, and exporters. What the libraries of most exporters say of
themselves is their own name, and not the program's. And backups, which KILL
would throw away: mysqldump, mydumper, mysqlpump, mysqlsh, xtrabackup. */
std::string not_watchers() {
  return " AND PROCESSLIST_USER NOT LIKE '%exporter%'" +
         not_of_program(
             "(ATTR_VALUE IN ('memdiag', 'mysqlpump', 'mysqlsh') OR ATTR_VALUE "
             "LIKE '%exporter%' OR ATTR_VALUE LIKE '%otelcol%' OR ATTR_VALUE "
             "LIKE '%dump%' OR ATTR_VALUE LIKE '%backup%')");
}

/** mysqlbinlog, which archives the binary log, ends when its connection does.
 */
std::string connects_again() {
  return not_of_program("ATTR_VALUE = 'mysqlbinlog'");
}

/** Ends sessions of clients that wait for a statement, but for those whose end
would lose something, one's own, and those of watchers. */
std::string end_sleeping(const std::string &condition) {
  return "SELECT CONCAT('KILL ', PROCESSLIST_ID) AS RUN FROM "
         "performance_schema.threads WHERE " +
         std::string(is_of_client) + " AND PROCESSLIST_COMMAND = 'Sleep' AND " +
         condition + " AND PROCESSLIST_ID <> CONNECTION_ID()" +
         loses_nothing() + not_watchers();
}

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

template <typename List, typename Text>
std::string json_list(const List &list, Text text) {
  std::string result;
  for (const auto &one : list) {
    if (!result.empty()) result += ", ";
    result += json_text(text(one));
  }
  return '[' + result + ']';
}

}  // namespace

const Holder *find_holder(std::string_view name) {
  for (const Holder &holder : holders)
    if (holder.name == name) return &holder;
  return nullptr;
}

std::string rule_of(const Holder &holder) {
  std::string result;
  for (const char c : std::string_view{holder.name})
    if (c >= 'A' && c <= 'Z')
      result += static_cast<char>(c - 'A' + 'a');
    else if (c == ' ' || c == '-')
      result += '_';
    else if (c != ',')
      result += c;
  return result;
}

std::string ending_statement(const Holder &holder) {
  // A session that opened tables took the programs of their triggers under the
  // same name. KILL does not free those.
  const char *const that_have =
      holder.name == std::string_view{"stored programs"}
          ? " HAVING SUM(IF(EVENT_NAME = 'memory/sql/THD::sp_cache', "
            "CURRENT_NUMBER_OF_BYTES_USED, 0)) > 0"
          : "";
  const std::string all =
      owners(pattern(holder), that_have, "NOT LIKE 'Binlog Dump%'");
  const std::string largest_first = " ORDER BY BYTES DESC";
  switch (holder.end) {
    case End::sessions:
      return sessions_that("'KILL '", all, "'Sleep'") +
             (holder.name == strings ? may_keep_strings : "") +
             loses_nothing() + not_watchers() + largest_first;
    case End::queries:
      return sessions_that(kill_or_kill_query(), all, "'Query', 'Execute'") +
             not_ddl + not_watchers() + largest_first;
    case End::sessions_or_queries:
      return sessions_that(kill_or_kill_query(), all,
                           "'Sleep', 'Query', 'Fetch', 'Execute'",
                           holder.name == temporary_tables
                               ? more_than_a_first_block
                               : least_of_a_session) +
             " AND (PROCESSLIST_COMMAND <> 'Sleep' OR (TRUE" + loses_nothing() +
             "))" + not_ddl + not_watchers() + largest_first;
    case End::transactions:
      return "SELECT CONCAT('KILL ', trx_mysql_thread_id) AS RUN FROM (SELECT "
             "trx_mysql_thread_id, trx_lock_memory_bytes AS BYTES, "
             "MAX(trx_lock_memory_bytes) OVER () AS MOST FROM "
             "information_schema.INNODB_TRX) AS owners JOIN "
             "performance_schema.threads ON PROCESSLIST_ID = "
             "trx_mysql_thread_id WHERE " +
             std::string(is_of_client) +
             " AND trx_mysql_thread_id <> CONNECTION_ID() AND BYTES >= " +
             std::string(least_of_a_session) + " AND " + has_much +
             keeps_no_lock + not_ddl + not_watchers() + largest_first;
    case End::binlog_dump:
      return sessions_that(
                 "'KILL '",
                 owners("^memory/sql/String::value", "", "LIKE 'Binlog Dump%'"),
                 "'Binlog Dump', 'Binlog Dump GTID'") +
             connects_again() + largest_first;
    case End::temporary_tables:
      return end_sleeping(
          "PROCESSLIST_ID IN (SELECT ID FROM (SELECT s.ID, COUNT(*) AS TABLES, "
          "MAX(COUNT(*)) OVER () AS MOST FROM "
          "information_schema.INNODB_SESSION_TEMP_TABLESPACES AS s JOIN "
          "information_schema.INNODB_TEMP_TABLE_INFO AS t USING (SPACE) GROUP "
          "BY s.ID) AS owners WHERE TABLES >= 4 AND 2 * TABLES >= MOST)");
    case End::statement:
    case End::ddl:
      break;
  }
  return {};
}

std::string words_of_ending(const Holder &holder) {
  if (!holder.is_ended() || holder.end == End::binlog_dump) return {};
  std::string words =
      "; STATEMENT names sessions of clients that have at least half as much "
      "as the largest";
  if (holder.end == End::sessions || holder.end == End::temporary_tables)
    words += ", but none in a transaction or with locks";
  else if (holder.end == End::transactions)
    words +=
        ", but none with locks of LOCK TABLES, GET_LOCK() or of a backup, and "
        "no DDL";
  else if (holder.end == End::sessions_or_queries)
    words += ", but no DDL, and no idle one in a transaction or with locks";
  else
    words += ", but no DDL";
  return words + drops_temporary_tables;
}

std::optional<std::string> statement_of(const Holder &holder,
                                        std::optional<uint64_t> value) {
  if (holder.statement == nullptr) {
    if (!holder.is_ended()) return std::nullopt;
    return ending_statement(holder);
  }
  std::string result = holder.statement;
  if (holder.variable == nullptr) return result;
  if (!value || *value / 2 < holder.least) return std::nullopt;
  return result.replace(result.find('%'), 1, std::to_string(*value / 2));
}

std::string end_idle_sessions() {
  // PROCESSLIST_TIME alone does not tell: SET TIMESTAMP moves its start, and
  // mysqlbinlog writes that before each transaction. Nobody sets the clock of
  // the timers, which are in picoseconds. The sum is a double, which does not
  // overflow. Timers alone do not tell either: a statement has none while its
  // instrument or the consumer is off.
  return end_sleeping(
             "PROCESSLIST_TIME >= 60 AND THREAD_ID IN (SELECT THREAD_ID FROM "
             "performance_schema.events_statements_current WHERE TIMER_END + "
             "6e13 <= (SELECT MAX(TIMER_START) FROM "
             "performance_schema.events_statements_current WHERE THREAD_ID = "
             "PS_CURRENT_THREAD_ID()))") +
         " ORDER BY PROCESSLIST_TIME DESC";
}

std::string end_sessions_with_warnings() {
  // 128 of them have 50 KiB. Those beyond max_error_count are only counted.
  // VARIABLE_VALUE is a text.
  return end_sleeping(
      "THREAD_ID IN (SELECT THREAD_ID FROM (SELECT THREAD_ID, KEPT, "
      "MAX(KEPT) OVER () AS MOST FROM (SELECT THREAD_ID, LEAST(WARNINGS, "
      "CAST(VARIABLE_VALUE AS UNSIGNED)) AS KEPT FROM "
      "performance_schema.events_statements_current JOIN "
      "performance_schema.variables_by_thread USING (THREAD_ID) WHERE "
      "VARIABLE_NAME = 'max_error_count') AS warnings) AS owners WHERE KEPT >= "
      "128 AND 2 * KEPT >= MOST)");
}

std::string end_session(uint64_t processlist_id) {
  return end_sleeping("PROCESSLIST_ID = " + std::to_string(processlist_id));
}

std::string end_query(uint64_t processlist_id) {
  return "SELECT CONCAT(" + kill_or_kill_query() +
         ", PROCESSLIST_ID) AS RUN FROM performance_schema.threads WHERE "
         "PROCESSLIST_ID = " +
         std::to_string(processlist_id) +
         " AND PROCESSLIST_COMMAND <> 'Sleep'" + not_ddl + not_watchers();
}

std::string holders_json() {
  std::string result;
  for (const Holder &holder : holders) {
    result += result.empty() ? "[\n" : ",\n";
    result +=
        "  {\"name\": " + json_text(holder.name) + ", \"instruments\": " +
        json_list(holder.instruments,
                  [](std::string_view one) { return one; }) +
        ", \"pools\": " +
        json_list(holder.pools, [](Pool pool) { return spec_of(pool).name; }) +
        ", \"usual_percent\": " + std::to_string(holder.usual_percent) +
        ", \"of_sessions\": " + (holder.of_sessions() ? "true" : "false") +
        ", \"statement\": " +
        (holder.statement == nullptr ? "null" : json_text(holder.statement)) +
        ", \"variable\": " +
        (holder.variable == nullptr ? "null" : json_text(holder.variable)) +
        ", \"least\": " + std::to_string(holder.least) +
        ", \"usual_bytes\": " + std::to_string(holder.usual_bytes) +
        ", \"of_expressions\": " + (holder.of_expressions ? "true" : "false") +
        "}";
  }
  return result + "\n]\n";
}

}  // namespace memdiag::advisor
