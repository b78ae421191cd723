#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <cinttypes>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/base/text.h"

namespace memdiag::advisor {
namespace {

constexpr unsigned large_percent = 10;
/** Fewer sessions are no pool of connections, and each has its own cause. */
constexpr uint64_t many_sessions = 20;
/** Together, open tables, their triggers and their definitions have no more on
a small server that works well. */
constexpr unsigned usual_percent_of_tables = 25;
/** The data dictionary sets the sizes of its caches when the server starts. */
constexpr const char *bounds_of_data_dictionary =
    "most of it is the data dictionary's, which keeps what was used last: "
    "max_connections tables and views, stored_program_definition_cache "
    "programs, and 256 events; lower values count from the next start; FLUSH "
    "LOCAL TABLES frees the copies that open views have, which may be half, "
    "and no statement frees the others";

class Holder_rules : Rules {
 public:
  using Rules::Rules;

  void judge_holders() {
    for (const Holding &holding : m_now.holdings) judge_holder(holding);
    judge_tables();
    name_what_grows();
    judge_row_locks();
    judge_largest_session();
    judge_idle_sessions();
  }

 private:
  void judge_holder(const Holding &holding) {
    const Holder &holder = *holding.holder;
    if (holding.bytes <= holder.usual_bytes) return;
    const auto statement = statement_that_helps(holder);
    // Limits of sessions' values do not bound those of tables.
    std::string remedy =
        is_kept_by_tables(holder)
            ? ""
            : (is_of_data_dictionary(holder) ? bounds_of_data_dictionary
                                             : holder.remedy);
    if (closes_tables(holder)) remedy += cost_of_flush(statement.has_value());
    if (may_be_of_tables(holder))
      remedy += words_of_kept_values(holder, statement.has_value());
    else if (may_be_of_triggers(holder))
      remedy +=
          "; no statement finds the sessions: programs of triggers, which open "
          "tables have, count for those that opened them";
    else
      remedy += words_of_end(holder, statement);
    if (is_of_named_key_caches(holder))
      remedy +=
          "; key_buffer_size is the default cache's, and key caches with names "
          "(CACHE INDEX) have the rest: SET GLOBAL <name>.key_buffer_size = "
          "<less>";
    if (writes_tables(holder) && m_now.is_read_only)
      remedy += "; no statement can while super_read_only is ON";
    Finding *const found = judge_share(
        rule_of(holder), holding.pool ? spec_of(*holding.pool).name : "server",
        std::string(holder.name) + ' ' + holder.verb,
        Amount{holding.bytes, holding.allocated_bytes}, holder.usual_percent,
        std::move(remedy));
    if (found == nullptr) return;
    found->holder = holder.name;
    found->statement = statement;
    found->evidence += std::string(": ") + holder.what;
    if (&holder == find_holder("uncounted memory") &&
        !m_now.documents_are_counted)
      found->evidence +=
          "; Performance Schema does not count JSON documents now: they and "
          "other blocks of the server are among these";
    if (&holder == find_holder("uncounted memory")) judge_warnings(found);
    if (!holding.owner || may_be_of_tables(holder)) return;
    // An idle session has not all that it computed: open tables may keep it.
    if (holder.of_expressions && !is_of_idle(holder) && is_idle(*holding.owner))
      return;
    name_owner(*holding.owner, found);
    if (&holder == find_holder("rows with large values"))
      free_rows(*holding.owner, found);
  }

  /** The session frees the rows when its statement ends, and HANDLER keeps them
  until it is closed. */
  void free_rows(const Session &owner, Finding *found) const {
    if (found->owner->reads_this) return;
    if (is_idle(owner))
      found->remedy +=
          "; that session is idle: HANDLER ... CLOSE, or its end, frees them";
    else if (m_now.locks_are_counted)
      found->statement = end_query(owner.processlist_id);
    else
      found->remedy += locks_are_not_counted;
  }

  bool is_idle(const Session &session) const {
    const auto &largest = m_now.largest_session;
    return session.is_idle ||
           (largest && largest->processlist_id == session.processlist_id &&
            largest->is_idle);
  }

  /** No instrument counts warnings. */
  void judge_warnings(Finding *found) const {
    const uint64_t bytes = m_now.idle_warnings * least_of_a_warning;
    if (bytes < *found->bytes / 2) return;
    found->evidence +=
        text("; idle sessions have %" PRIu64 " warnings, which take ",
             m_now.idle_warnings) +
        size(std::min(bytes, *found->bytes)) + " at least";
    found->remedy =
        "lower max_error_count, or let the application run a statement after "
        "one with many warnings; WARNINGS in "
        "performance_schema.events_statements_current shows which sessions "
        "have them";
    offer_to_end(end_sessions_with_warnings(), found);
  }

  /** Sessions computed it, and open tables may keep it. */
  bool may_be_of_tables(const Holder &holder) const {
    return is_kept_by_tables(holder) || tables_that_keep(holder) != 0;
  }

  uint64_t tables_that_keep(const Holder &holder) const {
    if (!holder.of_expressions) return 0;
    return m_now.value_tables +
           (&holder == find_holder("strings") ? m_now.csv_tables : 0);
  }

  bool is_kept_by_tables(const Holder &holder) const {
    return is_of_no_session(holder) && tables_that_keep(holder) != 0;
  }

  /** Most of it. */
  bool is_of_no_session(const Holder &holder) const {
    return &holder == find_holder("strings") && m_now.kept_string_bytes != 0 &&
           m_now.kept_string_bytes >= allocated_of(holder) / 2;
  }

  /** Idle sessions keep most of it, in what outlives a statement. */
  bool is_of_idle(const Holder &holder) const {
    return &holder == find_holder("strings") && m_now.idle_string_bytes != 0 &&
           m_now.idle_string_bytes >= allocated_of(holder) / 2;
  }

  static Holder as_of_idle(Holder holder) {
    holder.end = End::sessions;
    return holder;
  }

  std::string words_of_end(const Holder &holder,
                           const std::optional<std::string> &statement) const {
    if (is_of_no_session(holder))
      return "; no statement frees most of it: no session and no open table is "
             "known to keep it";
    if (!is_of_idle(holder))
      return words_of_ending_or_why_not(holder, statement);
    return "; sessions that are idle keep most of it" +
           (statement ? words_of_ending(as_of_idle(holder))
                      : locks_are_not_counted);
  }

  /** The default cache takes its size at once. */
  bool is_of_named_key_caches(const Holder &holder) const {
    if (&holder != find_holder("MyISAM key cache")) return false;
    const Reading size = value_of("key_buffer_size");
    return size && allocated_of(holder) > *size + *size / 8;
  }

  Reading value_of(std::string_view variable) const {
    const auto found = m_now.variables.find(variable);
    return found == m_now.variables.end() ? Reading{} : found->second;
  }

  uint64_t allocated_of(const Holder &holder) const {
    for (const Holding &holding : m_now.holdings)
      if (holding.holder == &holder) return holding.allocated_bytes;
    return 0;
  }

  std::string words_of_kept_values(const Holder &holder,
                                   bool is_offered) const {
    if (is_kept_by_tables(holder))
      return "sessions that are idle or gone computed most of it, and open "
             "tables keep it: values of generated columns, defaults, "
             "constraints and triggers, and rows of ENGINE=CSV, as the logs of "
             "log_output=TABLE are" +
             cost_of_flush(is_offered);
    return text(
               "; open tables may keep it, and KILL would not free it: %" PRIu64
               " of them have large values in generated columns, defaults, "
               "constraints or triggers, or are of ENGINE=CSV; FLUSH LOCAL "
               "TABLES frees what they keep; ",
               tables_that_keep(holder)) +
           words_of_flush();
  }

  /** Performance Schema counts a trigger's program for the session that opened
  its table. With no more of them than an average session has of programs, those
  that have most are still named. */
  bool may_be_of_triggers(const Holder &holder) const {
    return &holder == find_holder("stored programs") &&
           m_now.trigger_bytes >
               allocated_of(holder) /
                   std::max<uint64_t>(m_now.clients.value_or(1), 1);
  }

  std::string cost_of_flush(bool is_offered) const {
    return is_offered || m_now.table_keepers != 0 ? "; " + words_of_flush()
                                                  : "";
  }

  std::string words_of_ending_or_why_not(
      const Holder &holder, const std::optional<std::string> &statement) const {
    if (!holder.is_ended()) return "";
    return statement ? words_of_ending(holder) : why_none_is_named(holder);
  }

  /** Sessions that Performance Schema does not count (setup_actors), or did not
  when they allocated, have most of it. Those that it counts would end for
  them. */
  bool is_hardly_counted(const Holder &holder) const {
    if (holder.end != End::sessions && holder.end != End::queries &&
        holder.end != End::sessions_or_queries)
      return false;
    for (const Holding &holding : m_now.holdings)
      if (holding.holder == &holder)
        return holding.counted_bytes &&
               *holding.counted_bytes < holding.allocated_bytes / 2;
    return false;
  }

  /** "": a statement can name the sessions. */
  const char *why_none_is_named(const Holder &holder) const {
    if (!m_now.sessions_are_counted || is_hardly_counted(holder))
      return "; no statement finds the sessions: Performance Schema does not "
             "count most of that memory (setup_instruments, "
             "setup_consumers, setup_actors)";
    return holder.of_sessions() && !m_now.locks_are_counted
               ? locks_are_not_counted
               : "";
  }

  bool is_found(const Holder &holder) const {
    return std::any_of(m_found.begin(), m_found.end(),
                       [&holder](const Finding &found) {
                         return found.holder == holder.name;
                       });
  }

  static bool is_of_definitions(const Holder &holder) {
    return &holder == find_holder("dictionary cache");
  }

  /** A lower table_definition_cache frees InnoDB's definitions. */
  bool is_of_data_dictionary(const Holder &holder) const {
    return is_of_definitions(holder) &&
           m_now.data_dictionary_bytes > allocated_of(holder) / 2;
  }

  /** Many tables take memory in several places, each of which may have no more
  than is usual. */
  void judge_tables() {
    Amount all{};
    const Holding *largest = nullptr;
    uint64_t flushed = 0;
    std::string parts;
    for (const Holding &holding : m_now.holdings) {
      if (!closes_tables(*holding.holder) || holding.bytes == 0) continue;
      if (is_found(*holding.holder)) return;
      const std::string part = size(at_most_rss(holding.bytes));
      all.bytes += holding.bytes;
      all.allocated_bytes += holding.allocated_bytes;
      if (is_flushed(*holding.holder)) flushed += holding.bytes;
      parts += (parts.empty() ? ": " : ", ") +
               std::string(holding.holder->name) + ' ' + part;
      if (largest == nullptr || holding.bytes > largest->bytes)
        largest = &holding;
    }
    if (largest == nullptr) return;
    auto statement = statement_that_helps(*find_holder("dictionary cache"));
    if (!statement && flushed >= all.bytes / 2)
      statement = statement_that_helps(*find_holder("open tables"));
    Finding *const found = judge_share(
        "tables", largest->pool ? spec_of(*largest->pool).name : "server",
        "tables and their definitions hold", all, usual_percent_of_tables,
        "lower table_open_cache, table_open_cache_instances or "
        "table_definition_cache to bound them" +
            cost_of_flush(statement.has_value()));
    if (found == nullptr) return;
    found->holder = largest->holder->name;
    found->statement = statement;
    found->evidence += parts;
  }

  /** The holder with most of a cache that grows, unless a finding has it. */
  void name_what_grows() {
    for (Finding &found : m_found) {
      if (found.rule != growth_of_a_cache) continue;
      const auto pool = find_pool(found.subsystem);
      const Holding *largest = nullptr;
      for (const Holding &holding : m_now.holdings)
        if (pool && holding.pool == pool &&
            (largest == nullptr || holding.bytes > largest->bytes))
          largest = &holding;
      if (largest == nullptr || largest->bytes < worth_bytes ||
          is_found(*largest->holder))
        continue;
      const Pool_situation &has = m_now.pools[static_cast<size_t>(*pool)];
      if (largest->bytes <
          has.resident_live_bytes.value_or(has.live_bytes.value_or(0)) / 2)
        continue;
      found.holder = largest->holder->name;
      Amount{at_most_rss(largest->bytes), largest->allocated_bytes}.put_into(
          &found);
      found.statement = statement_that_helps(*largest->holder);
      found.remedy += words_of_end(*largest->holder, found.statement);
      found.evidence += std::string("; ") + largest->holder->name + ' ' +
                        largest->holder->verb + ' ' + size(*found.bytes) +
                        " of it";
    }
  }

  void set_owner(const Session &owner, Finding *found) const {
    const auto &largest = m_now.largest_session;
    found->owner = owner;
    found->owner->bytes = std::min(owner.bytes, *found->bytes);
    found->owner->reads_this = is_reader(owner);
    if (largest && largest->processlist_id == owner.processlist_id)
      found->owner->in_transaction |= largest->in_transaction;
  }

  void name_owner(const Session &owner, Finding *found) const {
    set_owner(owner, found);
    found->evidence +=
        text("; session %" PRIu64, owner.processlist_id) +
        (found->owner->reads_this ? ", which reads this," : "") +
        " has up to " + size(found->owner->bytes) + " of it" +
        (found->owner->in_transaction ? ", and is in a transaction" : "");
  }

  /** They take pages from the buffer pool, so no share of the memory besides it
  tells of them. */
  void judge_row_locks() {
    const auto &locks = m_now.row_locks;
    if (!locks || !is_large(locks->bytes)) return;
    const uint64_t bytes = at_most_rss(locks->bytes);
    const Holder &holder = *find_holder("transactions, locks");
    const double percent = 100 * static_cast<double>(bytes) /
                           static_cast<double>(*m_now.host.resident_bytes);
    Finding &found = add(
        rule_of(holder),
        percent >= warning_percent ? Severity::warning : Severity::note,
        "server", "cache",
        std::string(holder.name) + ' ' + holder.verb + ' ' + size(bytes) +
            text(" of the buffer pool, %.0f%% of RSS: ", percent) + holder.what,
        holder.remedy);
    found.holder = holder.name;
    found.bytes = bytes;
    if (locks->prepared_bytes >= locks->bytes / 2) {
      found.evidence +=
          "; XA transactions that are prepared, and whose "
          "sessions are gone, have " +
          size(at_most_rss(locks->prepared_bytes)) + " of it";
      found.remedy =
          "XA RECOVER lists them: end each with XA COMMIT or XA ROLLBACK, as "
          "the program that coordinates them decides";
      return;
    }
    found.statement = statement_that_helps(holder);
    found.remedy += words_of_ending_or_why_not(holder, found.statement);
    if (locks->largest.bytes < locks->bytes / 2) return;
    Session owner = locks->largest;
    owner.in_transaction = true;
    name_owner(owner, &found);
  }

  std::optional<std::string> statement_that_helps(const Holder &holder) const {
    if (is_kept_by_tables(holder))
      return m_now.table_keepers == 0 ? std::optional<std::string>(flush_tables)
                                      : std::nullopt;
    if (may_be_of_tables(holder) || is_of_no_session(holder) ||
        may_be_of_triggers(holder) || is_of_named_key_caches(holder))
      return std::nullopt;
    if (is_of_idle(holder))
      return m_now.locks_are_counted
                 ? std::optional{ending_statement(as_of_idle(holder))}
                 : std::nullopt;
    if (closes_tables(holder) && m_now.table_keepers != 0) return std::nullopt;
    if (writes_tables(holder) && m_now.is_read_only) return std::nullopt;
    if (holder.is_ended())
      return *why_none_is_named(holder) == '\0'
                 ? std::optional{ending_statement(holder)}
                 : std::nullopt;
    Reading value;
    if (holder.variable != nullptr) value = value_of(holder.variable);
    // A third of those that are there may stay.
    if (is_of_definitions(holder)) {
      if (!value || !m_now.table_definitions || is_of_data_dictionary(holder))
        return std::nullopt;
      value = std::min(*value, *m_now.table_definitions / 3 * 2);
    }
    return statement_of(holder, value);
  }

  /** Its part of holders that have a finding: the same bytes twice would be
  more than there are. */
  uint64_t named_of_largest_session() const {
    uint64_t bytes = 0;
    for (const Held_part &part : m_now.held_by_largest)
      for (const Finding &found : m_found)
        if (found.holder == part.holder->name) {
          bytes += part.bytes;
          break;
        }
    return bytes;
  }

  void judge_largest_session() {
    const auto &session = m_now.largest_session;
    if (!session) return;
    for (const Finding &found : m_found)
      if (found.owner && found.owner->processlist_id == session->processlist_id)
        return;
    const uint64_t id = session->processlist_id;
    const uint64_t named = named_of_largest_session();
    const uint64_t rest = session->bytes - std::min(session->bytes, named);
    Finding *const found = judge_share(
        "session", "session",
        text(named == 0 ? "session %" PRIu64 " holds up to"
                        : "besides, session %" PRIu64 " holds up to",
             id),
        Amount{rest, rest}, large_percent,
        text("SELECT EVENT_NAME, CURRENT_NUMBER_OF_BYTES_USED FROM "
             "performance_schema.memory_summary_by_thread_by_event_name JOIN "
             "performance_schema.threads USING (THREAD_ID) WHERE "
             "PROCESSLIST_ID = %" PRIu64 " ORDER BY 2 DESC LIMIT 5 shows "
             "what it took, and still counts what other threads freed of it",
             id) +
            (is_reader(*session) ? "; it is the session that reads this" : ""));
    if (found == nullptr) return;
    set_owner(*session, found);
    // The statement would leave it out.
    const bool would_lose = session->is_idle && session->in_transaction;
    if (!found->owner->reads_this && !would_lose)
      offer_to_end(session->is_idle ? end_session(id) : end_query(id), found);
  }

  static bool ends_sessions(const std::string &holder) {
    const Holder &of = *find_holder(holder);
    return of.end == End::sessions || of.end == End::sessions_or_queries ||
           of.of_expressions;
  }

  /** Not beside a finding about what sessions hold: it would count the same
  bytes, and names the sessions that have most. */
  void judge_idle_sessions() {
    const auto &idle = m_now.idle_sessions;
    if (!idle || idle->count < many_sessions) return;
    for (const Finding &found : m_found)
      if (found.owner || (found.holder && ends_sessions(*found.holder) &&
                          found.subsystem != spec_of(Pool::temp_table).name))
        return;
    Reading resident = 0;
    for (const Pool pool : {Pool::session, Pool::connection})
      resident = sum(
          resident, m_now.pools[static_cast<size_t>(pool)].resident_live_bytes);
    Finding *const found = judge_share(
        "idle_sessions", "session",
        text("%" PRIu64 " idle sessions hold up to", idle->count),
        Amount{std::min(idle->bytes, resident.value_or(idle->bytes)),
               idle->bytes},
        large_percent,
        "let the application's pool keep fewer connections; a lower "
        "wait_timeout ends sessions that are idle");
    // The statement ends those that have been idle for a minute.
    if (found == nullptr || idle->long_idle_bytes < idle->bytes / 2) return;
    offer_to_end(end_idle_sessions(), found);
  }
};

}  // namespace

void judge_holders(const Situation &situation, std::vector<Finding> *found) {
  Holder_rules(situation, found).judge_holders();
}

}  // namespace memdiag::advisor
