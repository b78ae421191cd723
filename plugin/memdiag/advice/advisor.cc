#include "plugin/memdiag/advice/advisor.h"

#include <algorithm>
#include <cinttypes>
#include <string_view>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/ceiling/giving.h"

namespace memdiag::advisor {
namespace {

constexpr uint64_t mib = 1 << 20;

/** Growth differs from a warm-up by following a straight line, and by lasting:
a minute has sixty samples. */
constexpr double min_r2 = 0.8;
constexpr double min_seconds = 60;
/** A forecast looks this many times as far ahead as the growth has lasted. */
constexpr double look_ahead = 10;
/** A page at night wants a quarter of an hour of growth: the window of trends,
less two samples of a server that rests. */
constexpr double min_critical_seconds = 880;
/** A large part of the server's memory. */
constexpr double large_part = 0.1;
constexpr unsigned large_percent = 10;
/** Of a share this large, its user should know without asking. */
constexpr double warning_percent = 25;
/** Fewer sessions are no pool of connections, and each has its own cause. */
constexpr uint64_t many_sessions = 20;

constexpr const char *growth_of_a_cache = "growth_of_a_cache";

/** Together, open tables, their triggers and their definitions have no more on
a small server that works well. */
constexpr unsigned usual_percent_of_tables = 25;

/** To end the FLUSH does not help: it has made the tables old. */
constexpr const char *flush_waits =
    "statements on tables in use wait until those that run have ended";
/** A heap of mixed sizes usually has a quarter (MEMDIAG_LEDGER of the workloads
of bench/). */
constexpr double fragmented_part = 0.33;
/** The last tenth is the room that a burst needs. */
constexpr double near_limit = 0.9;
/** Percent of the last 10 s in which a task waited for memory (PSI): the
kernel's documentation calls a few percent noticeable. */
constexpr double pressure_percent = 10;
constexpr double day = 86400;
/** Connections that stay free under a max_connections that is advised; at least
a tenth of those that were used. */
constexpr uint64_t min_spare_connections = 10;
/** The largest default of the buffers of a session. To less than that no
statement lowers one. */
constexpr uint64_t least_session_buffer_bytes = 256 << 10;
/** A ceiling that had nothing to do for so long is at rest: its frames would
come back after ten seconds of room. */
constexpr uint64_t rest_seconds = 60;
/** The default of innodb_buffer_pool_chunk_size, and the default size of the
buffer pool. */
constexpr uint64_t chunk_bytes = 128 * mib;

std::string size(double bytes) {
  constexpr double gib = 1 << 30;
  return bytes >= 10 * gib ? text("%.1f GiB", bytes / gib)
                           : text("%.0f MiB", bytes / mib);
}
std::string size(uint64_t bytes) { return size(static_cast<double>(bytes)); }

std::string duration(double seconds) {
  if (seconds >= 2 * day) return text("%.0f days", seconds / day);
  if (seconds >= 7200) return text("%.0f h", seconds / 3600);
  if (seconds >= 120) return text("%.0f min", seconds / 60);
  return text("%.0f s", seconds);
}

/** @param part  the part of the trend that is resident */
std::string rate(const Trend &trend, double part = 1) {
  return size(part * trend.bytes_per_second * 3600) +
         " an hour over the last " + duration(trend.seconds);
}

/** The smallest limit below which so much may be kept while statements begin.
Whole MiB. */
uint64_t limit_that_fits(uint64_t bytes) {
  uint64_t low = bytes / mib;
  uint64_t high = 2 * low + 1024;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const ceiling::Marks marks = ceiling::marks_of_limit(middle * mib, 0);
    if (marks.target_bytes - marks.plenty_bytes >= static_cast<int64_t>(bytes))
      high = middle;
    else
      low = middle + 1;
  }
  return low * mib;
}

/** @param part  the part of the trend that is resident
@return true: it grows steadily and by an amount that matters */
bool grows(const std::optional<Trend> &trend, double part = 1) {
  return trend && trend->seconds >= min_seconds && trend->r2 >= min_r2 &&
         part * trend->bytes_per_second * trend->seconds >= worth_bytes;
}

class Advisor {
 public:
  explicit Advisor(const Situation &situation) : m_now(situation) {}

  std::vector<Finding> findings() {
    for (size_t i = 0; i < pool_count; ++i)
      judge_pool(static_cast<Pool>(i), m_now.pools[i]);
    // First of its severity: the server is slow now, no matter who holds the
    // memory.
    judge_swap();
    judge_holders();
    judge_limits();
    judge_configuration();
    judge_ceiling();
    judge_host();
    std::stable_sort(m_found.begin(), m_found.end(),
                     [](const Finding &a, const Finding &b) {
                       return a.severity > b.severity;
                     });
    return std::move(m_found);
  }

 private:
  /** @return for what else is known of it; valid until the next call */
  Finding &add(std::string rule, Severity severity, std::string subsystem,
               const char *verdict, std::string evidence, std::string remedy) {
    m_found.push_back({severity, std::move(subsystem), verdict,
                       std::move(evidence), std::move(remedy),
                       std::move(rule)});
    return m_found.back();
  }

  /** Bytes of a finding: resident, and allocated where that is more. */
  struct Amount {
    uint64_t bytes;
    uint64_t allocated_bytes;

    /** Allocated bytes where they are shown to be more. */
    std::string words() const {
      const std::string resident = size(bytes);
      const std::string allocated = size(std::max(bytes, allocated_bytes));
      return resident +
             (allocated == resident ? "" : " (" + allocated + " allocated)");
    }
    void put_into(Finding *finding) const {
      finding->bytes = bytes;
      if (allocated_bytes > bytes) finding->allocated_bytes = allocated_bytes;
    }
  };

  /** Figures of different moments need not agree: none is more than RSS. */
  uint64_t at_most_rss(uint64_t bytes) const {
    return std::min(bytes, m_now.host.resident_bytes.value_or(bytes));
  }

  /** No more of live blocks is resident than their pool has. */
  Amount amount_of(uint64_t live_bytes, const Pool_situation &pool) const {
    return {at_most_rss(std::min(
                live_bytes, pool.resident_live_bytes.value_or(live_bytes))),
            live_bytes};
  }

  /** Live bytes of samples are taken to be resident by the same part as those
  of now. */
  std::string words_of_growth(const Pool_situation &pool, double part) const {
    const Trend &trend = *pool.trend;
    const double last = trend.last_bytes;
    return "resident bytes grow by " + rate(trend, part) + ", to " +
           Amount{at_most_rss(static_cast<uint64_t>(part * last)),
                  static_cast<uint64_t>(last)}
               .words();
  }

  bool is_large(uint64_t bytes) const {
    const Reading &all = m_now.host.resident_bytes;
    return all && bytes >= worth_bytes &&
           static_cast<double>(bytes) >= large_part * static_cast<double>(*all);
  }

  void judge_pool(Pool which, const Pool_situation &pool) {
    const Pool_spec &spec = spec_of(which);
    const std::string name = spec.name;
    const std::string_view lifetime = spec.lifetime;
    // Blocks of malloc() may be the server's as well as a session's.
    const bool lasts =
        lifetime == "cache" || lifetime == "server" || uses_malloc(which);
    const Amount survivors = amount_of(pool.survivors_bytes, pool);
    const double part = pool.resident_part().value_or(1);
    if (survivors.bytes >= worth_bytes)
      survivors.put_into(&add(
          "survivors", Severity::warning, name, "leak",
          survivors.words() + " outlived the " + spec.lifetime +
              " that they were for, most of them of " + pool.survivors_route,
          "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_SURVIVORS ORDER BY BYTES "
          "DESC shows what it is and since when; SET GLOBAL memdiag_sessions = "
          "ON; and after a while SELECT * FROM "
          "INFORMATION_SCHEMA.MEMDIAG_SESSIONS ORDER BY BYTES DESC shows "
          "whether one session holds more and more of it: if so, end that "
          "session; report the leak, with the rows of both tables"));
    else if (grows(pool.trend, part) && !lasts)
      // Its users may still be at work.
      add("growth_of_a_pool", Severity::warning, name, "growth",
          words_of_growth(pool, part) +
              "; a block of this pool should live no longer than its " +
              std::string(lifetime),
          "SET GLOBAL memdiag_sessions = ON, memdiag_scope_survivors = ON; and "
          "after a while SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_SESSIONS "
          "ORDER BY BYTES DESC shows who holds it, MEMDIAG_SURVIVORS what was "
          "left behind" +
              std::string(
                  which == Pool::temp_table
                      ? "; routes that begin with memory/memory/ are tables of "
                        "the MEMORY engine, which stay until they are "
                        "dropped"
                      : ""));
    else if (grows(pool.trend, part))
      add(growth_of_a_cache, Severity::note, name, "cache",
          words_of_growth(pool, part), remedy_of_cache(which));
    if (pool.dirty_bytes && is_large(*pool.dirty_bytes)) {
      const uint64_t bytes = at_most_rss(*pool.dirty_bytes);
      Finding &unused = add("unused_pages", Severity::note, name, "cache",
                            size(bytes) + " of unused pages are kept",
                            "SELECT memdiag_purge('" + name + "')");
      unused.bytes = bytes;
      unused.statement = unused.remedy;
    }
    if (pool.live_bytes && pool.active_bytes &&
        *pool.active_bytes > *pool.live_bytes) {
      const uint64_t counted = *pool.active_bytes - *pool.live_bytes;
      const uint64_t in_use =
          at_most_rss(sum(pool.resident_live_bytes, pool.resident_free_bytes)
                          .value_or(*pool.active_bytes));
      const uint64_t free =
          std::min(pool.resident_free_bytes.value_or(counted), in_use);
      if (is_large(free) && static_cast<double>(free) >
                                fragmented_part * static_cast<double>(in_use)) {
        Finding &fragmented =
            add("fragmentation", Severity::warning, name, "fragmentation",
                size(free) + " of " + size(in_use) +
                    " in use are free parts of pages that hold something",
                (lasts && which != Pool::connection
                     ? remedy_of_cache(which)
                     : "end sessions that are idle for long: what they hold "
                       "keeps pages") +
                    std::string("; SELECT MAX_SIZE, WASTE_BYTES FROM "
                                "INFORMATION_SCHEMA.MEMDIAG_SIZE_CLASSES WHERE "
                                "POOL = '") +
                    name + "' ORDER BY WASTE_BYTES DESC shows which sizes");
        fragmented.bytes = free;
        // A session that has most of what is left keeps most of the pages.
        const auto &session = m_now.largest_session;
        if (which == Pool::session && session &&
            session->bytes >=
                pool.resident_live_bytes.value_or(*pool.live_bytes) / 2)
          fragmented.statement = end_session(session->processlist_id);
      }
    }
  }

  std::string flush() const {
    return m_now.table_keepers == 0
               ? std::string("FLUSH LOCAL TABLES; ") + flush_waits
               : words_of_table_keepers();
  }

  std::string remedy_of_cache(Pool pool) const {
    if (pool == Pool::table_cache)
      return flush() +
             "; lower table_open_cache or table_open_cache_instances to bound "
             "it";
    if (pool == Pool::dictionary)
      return flush() +
             "; then a lower table_definition_cache drops definitions that no "
             "open table uses";
    if (pool == Pool::fts_cache)
      return "SET PERSIST_ONLY innodb_ft_total_cache_size = <less> bounds it "
             "at the next start; SET GLOBAL innodb_optimize_fulltext_only = "
             "ON; then OPTIMIZE LOCAL TABLE <each with a full-text index> "
             "writes it out, but rebuilds the whole table while that variable "
             "is OFF";
    if (pool == Pool::group_replication)
      return "SET GLOBAL group_replication_message_cache_size = <less> lowers "
             "its cache of messages; SELECT MEMBER_ID, "
             "COUNT_TRANSACTIONS_ROWS_VALIDATING, "
             "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE FROM "
             "performance_schema.replication_group_member_stats shows the rows "
             "that certification keeps, and which member lags and so keeps "
             "them";
    if (uses_malloc(pool))
      return "SELECT EVENT_NAME, CURRENT_NUMBER_OF_BYTES_USED FROM "
             "performance_schema.memory_summary_global_by_event_name WHERE "
             "EVENT_NAME IN (SELECT ROUTE FROM "
             "INFORMATION_SCHEMA.MEMDIAG_ROUTES WHERE POOL = 'general' OR "
             "LARGER_THAN > 0) ORDER BY 2 DESC LIMIT 10 shows what of it is "
             "counted";
    return "SELECT ROUTE, LIVE_BYTES FROM INFORMATION_SCHEMA.MEMDIAG_ROUTES "
           "WHERE POOL = '" +
           std::string(spec_of(pool).name) +
           "' ORDER BY LIVE_BYTES DESC shows what it is";
  }

  /** A finding if more than a share of the memory besides the buffer pool is
  in one place. The buffer pool is as large as its user made it.
  @return nullptr: it is not */
  Finding *judge_share(const std::string &rule, const char *subsystem,
                       const std::string &words, Amount amount,
                       unsigned usual_percent, std::string remedy) {
    const Reading &all = m_now.other_resident_bytes;
    if (!all || is_zero(all)) return nullptr;
    amount.bytes = std::min(amount.bytes, *all);
    if (amount.bytes < worth_bytes) return nullptr;
    const double percent =
        100 * static_cast<double>(amount.bytes) / static_cast<double>(*all);
    if (percent <= usual_percent) return nullptr;
    Finding &found = add(
        rule, percent >= warning_percent ? Severity::warning : Severity::note,
        subsystem, "cache",
        words + ' ' + amount.words() +
            text(", %.0f%% of the memory besides the buffer pool", percent),
        std::move(remedy));
    amount.put_into(&found);
    return &found;
  }

  void judge_swap() {
    const Reading &swapped = m_now.host.swapped_bytes;
    if (swapped && *swapped >= worth_bytes)
      add("swap", Severity::warning, "machine", "host",
          size(*swapped) + " of the server are swapped out",
          "sysctl -w vm.swappiness=1; lower innodb_buffer_pool_size so that "
          "the machine has room");
  }

  void judge_holders() {
    for (const Holding &holding : m_now.holdings) judge_holder(holding);
    judge_tables();
    name_what_grows();
    judge_row_locks();
    judge_largest_session();
    judge_idle_sessions();
  }

  void judge_holder(const Holding &holding) {
    const Holder &holder = *holding.holder;
    const auto statement = statement_that_helps(holder);
    std::string remedy = holder.remedy;
    if (closes_tables(holder)) remedy += words_of_flush(statement.has_value());
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
        !m_now.sessions_are_counted)
      found->evidence +=
          "; without Performance Schema also JSON documents and other blocks "
          "of the server";
    if (!holding.owner) return;
    name_owner(*holding.owner, found);
    // The session frees the rows when its statement ends.
    if (&holder == find_holder("rows with large values") &&
        !found->owner->reads_this)
      found->statement = end_query(holding.owner->processlist_id);
  }

  std::string words_of_flush(bool is_offered) const {
    if (is_offered) return std::string("; ") + flush_waits;
    return m_now.table_keepers != 0 ? "; " + words_of_table_keepers() : "";
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
            words_of_flush(statement.has_value()));
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
      found.evidence += std::string("; ") + largest->holder->name + ' ' +
                        largest->holder->verb + ' ' + size(*found.bytes) +
                        " of it";
    }
  }

  std::string words_of_table_keepers() const {
    return text(
        "sessions that keep tables open (HANDLER, LOCK TABLES, or a "
        "statement of more than 10 s): %" PRIu64
        "; FLUSH LOCAL TABLES before they have ended makes statements "
        "on their tables wait, too",
        m_now.table_keepers);
  }

  bool is_reader(const Session &session) const {
    return m_now.reader_processlist_id == session.processlist_id;
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
    found.statement = statement_that_helps(holder);
    if (locks->largest.bytes < locks->bytes / 2) return;
    Session owner = locks->largest;
    owner.in_transaction = true;
    name_owner(owner, &found);
  }

  std::optional<std::string> statement_that_helps(const Holder &holder) const {
    if (closes_tables(holder) && m_now.table_keepers != 0) return std::nullopt;
    Reading value;
    if (holder.variable != nullptr)
      if (const auto found = m_now.variables.find(holder.variable);
          found != m_now.variables.end())
        value = found->second;
    // A lower stored_program_cache frees nothing in sessions with fewer
    // programs than that.
    if (holder.end != End::statement &&
        (!value || *value / 2 < holder.least ||
         m_now.programs_of_a_session.value_or(0) <= *value / 2)) {
      if (!m_now.sessions_are_counted) return std::nullopt;
      return ending_statement(holder);
    }
    // A third of those that are there may stay.
    if (is_of_definitions(holder)) {
      if (!value || !m_now.table_definitions) return std::nullopt;
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
            (is_reader(*session)
                 ? std::string("; it is the session that reads this")
                 : text("; KILL %" PRIu64
                        " frees what it still holds, and rolls back what it "
                        "has not committed",
                        id)));
    if (found != nullptr) set_owner(*session, found);
  }

  static bool ends_sessions(const std::string &holder) {
    const End end = find_holder(holder)->end;
    return end == End::sessions || end == End::sessions_or_queries;
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
    if (found != nullptr && idle->long_idle_bytes >= idle->bytes / 2)
      found->statement = end_idle_sessions();
  }

  /** Huge pages that large_pages reserves: the machine's memory has them, and
  the limit of a control group does not count them. */
  uint64_t not_counted_bytes() const {
    const host::Figures &host = m_now.host;
    const bool is_of_group =
        host.limit_bytes &&
        (!host.machine_bytes || *host.limit_bytes < *host.machine_bytes);
    return is_of_group ? host.hugetlb_bytes.value_or(0) : 0;
  }

  /** When growth reaches a limit, and what it has to share the limit with. */
  struct Forecast {
    std::optional<double> seconds;
    uint64_t limit_bytes{0};
    uint64_t others_bytes{0};
  };

  /** The process and others use a part of the limit, and the buffer pool will
  take another. Growth reaches the limit when it has taken the rest. Unknown
  figures: never. */
  Forecast with_others(Reading limit, Reading left) const {
    const Reading &resident = m_now.host.resident_bytes;
    const Reading pool_now = difference(resident, m_now.other_resident_bytes);
    if (!limit || !left || !pool_now || *left > *limit) return {};
    const uint64_t pool = *m_now.buffer_pool_bytes;
    const uint64_t there =
        std::min(pool, *pool_now + m_now.host.hugetlb_bytes.value_or(0));
    const uint64_t used = *limit - *left;
    const double slope = m_now.trend_without_buffer_pool->bytes_per_second;
    return {static_cast<double>(*left - std::min(*left, pool - there)) / slope,
            *limit, used - std::min(used, *resident)};
  }

  Forecast forecast(uint64_t most, uint64_t pool) const {
    const host::Figures &host = m_now.host;
    Forecast first{seconds_until(*m_now.trend_without_buffer_pool,
                                 most - std::min(most, pool)),
                   most};
    const auto room = used_of_group();
    for (const Forecast &one :
         {with_others(host.machine_bytes, host.available_bytes),
          with_others(room.limit, difference(room.limit, room.usage))})
      if (one.seconds && (!first.seconds || *one.seconds < *first.seconds))
        first = one;
    return first;
  }

  /** Growth outside the buffer pool, towards the limit less a full buffer pool:
  a pool that warms up does not predict where the process ends. */
  void judge_growth() {
    const Reading most = host::limit_bytes(m_now.host);
    const auto &trend = m_now.trend_without_buffer_pool;
    if (!most || !m_now.buffer_pool_bytes || !grows(trend)) return;
    const uint64_t pool =
        *m_now.buffer_pool_bytes -
        std::min(*m_now.buffer_pool_bytes, not_counted_bytes());
    const Forecast end = forecast(*most, pool);
    const auto left = end.seconds;
    if (!left || *left >= std::min(day, look_ahead * trend->seconds)) return;
    const std::string others =
        end.others_bytes == 0
            ? ""
            : ", of which " + size(end.others_bytes) + " are in other use,";
    const std::string limit = "the limit of " + size(end.limit_bytes) + others;
    add("growth_of_the_process",
        trend->seconds >= min_critical_seconds && !is_held()
            ? Severity::critical
            : Severity::warning,
        "server", "host",
        "the process grows by " + rate(*trend) +
            " without the buffer pool; with a full buffer pool of " +
            size(pool) + " it " +
            (*left > 0 ? "reaches " + limit + " in " + duration(*left)
                       : "is above " + limit + " already") +
            words_of_ceiling(),
        "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY ORDER BY TIME "
        "DESC LIMIT 1 names the pool that grows; SELECT "
        "memdiag_purge('all') gives back what is unused");
  }

  /** The ceiling keeps the server below the limit. Statements wait or end
  there, and the kernel does not kill the server. */
  bool is_held() const {
    return m_now.ceiling && m_now.ceiling->acts &&
           m_now.ceiling->level != ceiling::Level::unknown;
  }
  /** The ceiling lets the server come near this limit, and keeps it there. */
  bool is_held_at(uint64_t limit_bytes) const {
    return is_held() &&
           static_cast<double>(m_now.ceiling->marks.target_bytes) >=
               near_limit * static_cast<double>(limit_bytes);
  }
  const char *words_of_ceiling() const {
    return is_held() ? "; the ceiling keeps it below (memdiag_memory_target)"
                     : "";
  }

  struct Used {
    Reading limit;
    Reading usage;
  };
  /** The lowest limit, unless a group above has less room. */
  Used used_of_group() const {
    const host::Figures &host = m_now.host;
    if (host.tightest)
      return {host.tightest->limit_bytes, host.tightest->usage_bytes};
    return {host.limit_bytes, host.usage_bytes};
  }

  void judge_limits() {
    judge_growth();
    const host::Figures &host = m_now.host;
    const auto [limit, usage] = used_of_group();
    const bool near =
        limit && usage &&
        static_cast<double>(*usage) >= near_limit * static_cast<double>(*limit);
    const bool held = near && is_held_at(*limit);
    // While no statement waits, a server that uses what it may is no finding.
    if (near && !(held && m_now.ceiling->level == ceiling::Level::green))
      add("cgroup_near_its_limit",
          held ? Severity::warning : Severity::critical, "cgroup", "host",
          size(*usage) + " of the control group's limit of " + size(*limit) +
              " are used" +
              (host.tightest ? " (" + host.tightest->usage_file + ")" : "") +
              (held ? "; statements wait for memory (memdiag_memory_target)"
                    : ""),
          "SELECT memdiag_purge('all'); then SET GLOBAL "
          "innodb_buffer_pool_size = <less>, or raise the limit: systemctl "
          "set-property <service> MemoryMax=" +
              text("%" PRIu64 "M", *limit / mib * 5 / 4));
    else if (host.machine_bytes && host.available_bytes &&
             static_cast<double>(*host.available_bytes) <
                 (1 - near_limit) * static_cast<double>(*host.machine_bytes))
      add("machine_near_its_limit", Severity::warning, "machine", "host",
          size(*host.available_bytes) + " of " + size(*host.machine_bytes) +
              " are available",
          "SELECT memdiag_purge('all'); see which other processes run here: ps "
          "-eo rss,comm --sort=-rss");
    if (host.oom_kills && *host.oom_kills > 0)
      add("oom_kills", Severity::warning, "cgroup", "host",
          text("processes of the control group that the OOM killer has "
               "killed: %" PRIu64,
               *host.oom_kills),
          "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY WHERE RUN > 0 "
          "ORDER BY RUN, TIME DESC shows the last minutes of a server that was "
          "killed");
  }

  /** A buffer pool of half the memory, unless the pool is not larger than that
  or would become too small to work with. */
  std::string remedy_of_server_buffers(uint64_t most) const {
    const uint64_t half = whole_units(most / 2);
    if (half >= chunk_bytes && m_now.buffer_pool_bytes &&
        *m_now.buffer_pool_bytes > half)
      return text("SET PERSIST innodb_buffer_pool_size = %" PRIu64, half);
    return "SELECT VARIABLE, VALUE, WORST_CASE_BYTES FROM "
           "INFORMATION_SCHEMA.MEMDIAG_BUDGET WHERE KIND = 'buffer' AND "
           "TIMES_OF = 'server' ORDER BY WORST_CASE_BYTES DESC shows which to "
           "lower";
  }

  /** The most clients within at least a day. */
  Reading used_in_a_day() const {
    const bool is_of_a_day =
        m_now.max_used_seconds &&
        static_cast<double>(*m_now.max_used_seconds) >= day;
    return is_of_a_day ? m_now.max_used_connections : std::nullopt;
  }

  /** Fewer connections, but only if that leaves room above the most that there
  were: a limit that clients reach is an outage. It ends no session.
  @param fitting  the number of connections whose buffers fit */
  std::optional<std::string> fewer_connections(uint64_t fitting) const {
    const Reading used = used_in_a_day();
    if (!used ||
        fitting < *used + std::max<uint64_t>(min_spare_connections, *used / 10))
      return std::nullopt;
    return text("SET PERSIST max_connections = %" PRIu64, fitting);
  }

  /** The largest buffer such that those of all connections fit; sessions that
  are there keep theirs. Until the next start: it was set on purpose.
  @param bytes  what each connection may take */
  std::optional<std::string> smaller_buffer(uint64_t bytes) const {
    const auto &largest = m_now.largest_session_buffer;
    if (!largest) return std::nullopt;
    const uint64_t each = *m_now.session_buffers_bytes;
    const uint64_t others = each - std::min(each, largest->bytes);
    if (bytes < others + least_session_buffer_bytes) return std::nullopt;
    return text("SET GLOBAL %s = %" PRIu64, largest->variable,
                (bytes - others) / 4096 * 4096);
  }

  std::string remedy_of_session_buffers(
      const std::optional<std::string> &fewer) const {
    if (fewer) return first_buffer() + *fewer;
    const Reading used = used_in_a_day();
    return first_buffer() +
           "SELECT VARIABLE, VALUE, WORST_CASE_BYTES FROM "
           "INFORMATION_SCHEMA.MEMDIAG_BUDGET WHERE KIND = 'buffer' AND "
           "TIMES_OF LIKE '%max_connections%' ORDER BY WORST_CASE_BYTES DESC "
           "shows which session buffers to lower" +
           (used ? text(": up to %" PRIu64 " clients were connected at once, "
                        "too many for a lower max_connections",
                        *used)
                 : std::string{});
  }

  /** @param bytes  what the connections may take together */
  void judge_session_buffers(std::string evidence, uint64_t bytes) {
    const uint64_t each = std::max<uint64_t>(*m_now.session_buffers_bytes, 1);
    const auto fewer = fewer_connections(bytes / each);
    const auto smaller =
        smaller_buffer(bytes / std::max<uint64_t>(*m_now.max_connections, 1));
    add("session_buffers", Severity::warning, "server", "misconfiguration",
        std::move(evidence), remedy_of_session_buffers(fewer))
        .statement = smaller ? smaller : fewer;
  }

  /** What each connection takes most of is the first to lower. */
  std::string first_buffer() const {
    const auto &largest = m_now.largest_session_buffer;
    if (!largest || largest->bytes <= least_session_buffer_bytes) return {};
    return text("of those that SET GLOBAL lowers, the largest is %s = %" PRIu64
                ", which each connection may take: lower it first; ",
                largest->variable, largest->bytes);
  }

  void judge_configuration() {
    const Reading most = host::limit_bytes(m_now.host);
    if (most && m_now.global_buffers_bytes && m_now.session_buffers_bytes &&
        m_now.max_connections) {
      const uint64_t buffers = *m_now.global_buffers_bytes;
      const uint64_t global = buffers - std::min(buffers, not_counted_bytes());
      const uint64_t each = *m_now.session_buffers_bytes;
      const uint64_t all = global + each * *m_now.max_connections;
      if (global > *most)
        add("server_buffers",
            is_held() ? Severity::warning : Severity::critical, "server",
            "misconfiguration",
            "the server's own buffers take " + size(global) +
                ", more than the " + size(*most) + " that it may use" +
                words_of_ceiling(),
            remedy_of_server_buffers(*most));
      else if (all > *most)
        judge_session_buffers(
            "buffers take " + size(global) + " for the server and " +
                size(each) +
                text(" for each of %" PRIu64 " connections at once: %s in all, "
                     "more than the %s that the server may use",
                     *m_now.max_connections, size(all).c_str(),
                     size(*most).c_str()),
            *most - global);
    }
    if (m_now.background_threads && !*m_now.background_threads)
      add("background_threads", Severity::warning, "allocator",
          "misconfiguration",
          "the allocator's background threads are off: queries give back "
          "unused memory outside of the pools, at their own cost",
          "take background_thread:false out of MALLOC_CONF, in the service's "
          "file or the environment, and restart");
    if (m_now.preloaded)
      add("other_allocators", Severity::note, "allocator", "misconfiguration",
          "other allocators are loaded and serve nothing: " + *m_now.preloaded,
          "take them out of LD_PRELOAD (systemctl edit <service>) and restart");
  }

  void judge_ceiling() {
    judge_rounded_pool();
    judge_tmpdir();
    const auto &ceiling = m_now.ceiling;
    if (!ceiling || ceiling->level == ceiling::Level::unknown) return;
    judge_floor(*ceiling);
    judge_target(*ceiling);
    if (ceiling->went_on == 0) return;
    add("ceiling_went_on", Severity::warning, "server", "host",
        text("%" PRIu64
             " waits of running statements for memory ended without room; the "
             "longest wait was %.1f s",
             ceiling->went_on,
             static_cast<double>(ceiling->longest_wait_us) / 1e6),
        "SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_CEILING WHERE PROCESSLIST_ID "
        "IS NOT NULL shows which statements waited, ended or did not begin; "
        "one that waits may hold what others need, such as row locks: commit "
        "sooner, raise the limit, or lower innodb_buffer_pool_size");
  }

  /** The next smaller size that InnoDB takes; 0: there is none. */
  uint64_t whole_units(uint64_t bytes) const {
    const uint64_t unit = m_now.buffer_pool_unit_bytes.value_or(0);
    return unit == 0 ? 0 : bytes / unit * unit;
  }

  void judge_rounded_pool() {
    const Reading &asked = m_now.buffer_pool_asked_bytes;
    const Reading &unit = m_now.buffer_pool_unit_bytes;
    const Reading &size_now = m_now.buffer_pool_bytes;
    if (!asked || !unit || !size_now || is_zero(unit)) return;
    // Another size is not of that option.
    const uint64_t rounded = (*asked + *unit - 1) / *unit * *unit;
    if (*size_now != rounded || rounded - *asked < worth_bytes) return;
    const uint64_t smaller = whole_units(*asked);
    const Reading resident =
        difference(m_now.host.resident_bytes, m_now.other_resident_bytes);
    add("ceiling_pool_rounded_up", Severity::note, "server", "misconfiguration",
        "innodb_buffer_pool_size was set to " + size(*asked) +
            " when the server started and is " + size(*size_now) +
            ": InnoDB takes multiples of " + size(*unit) +
            " (innodb_buffer_pool_chunk_size times "
            "innodb_buffer_pool_instances)",
        (smaller == 0
             ? std::string()
             : text("SET PERSIST innodb_buffer_pool_size = %" PRIu64 "; or ",
                    smaller)) +
            "set a smaller innodb_buffer_pool_chunk_size, and restart")
        .bytes = difference(resident, asked);
  }

  void judge_tmpdir() {
    const auto &folder = m_now.tmpdir_in_memory;
    if (!folder || (!m_now.host.limit_bytes && !m_now.ceiling)) return;
    add("ceiling_tmpdir_in_memory",
        m_now.ceiling ? Severity::warning : Severity::note,
        m_now.host.limit_bytes ? "cgroup" : "machine", "misconfiguration",
        "tmpdir " + folder->path.substr(0, 512) +
            " is in memory (tmpfs), where " + size(folder->used_bytes) +
            " are in use: sorts and temporary tables that go to disk stay "
            "below the limit",
        "set tmpdir to a folder on a disk, and restart")
        .bytes = folder->used_bytes;
  }

  void judge_floor(const Ceiling_situation &ceiling) {
    const Reading &pool = m_now.buffer_pool_bytes;
    const uint64_t parked = ceiling.parked_bytes;
    const uint64_t seconds = ceiling.quiet_seconds.value_or(0);
    if (!pool || parked < worth_bytes || parked > *pool ||
        ceiling.parkable_bytes > parked / 20 || seconds < rest_seconds)
      return;
    const uint64_t smaller = whole_units(*pool - parked);
    add("ceiling_floor_at_rest", Severity::warning, "server",
        "misconfiguration",
        "for " + duration(static_cast<double>(seconds)) +
            " the buffer pool of " + size(*pool) + " has lacked " +
            size(parked) +
            ", all that the ceiling may take of it: next, statements end",
        (smaller == 0 ? std::string("lower innodb_buffer_pool_size")
                      : text("SET PERSIST innodb_buffer_pool_size = %" PRIu64,
                             smaller)) +
            ", or raise the limit or memdiag_memory_target")
        .bytes = at_most_rss(*pool - parked);
  }

  /** The server keeps this memory without clients, with the buffer pool at its
  floor. Unknown: the memory of sessions or statements is. */
  Reading needed_without_clients(const Ceiling_situation &ceiling) const {
    Reading not_needed = ceiling.parkable_bytes;
    for (size_t i = 0; i < pool_count; ++i) {
      const Pool_situation &pool = m_now.pools[i];
      const std::string_view lifetime = pool_specs[i].lifetime;
      if (lifetime != "cache" && lifetime != "server")
        not_needed =
            sum(not_needed, pool.resident_live_bytes ? pool.resident_live_bytes
                                                     : pool.live_bytes);
      if (!uses_malloc(static_cast<Pool>(i)))
        not_needed = sum(not_needed, pool.dirty_bytes);
    }
    return ceiling::needed_at_rest(ceiling.kept_bytes, {not_needed});
  }

  void judge_target(const Ceiling_situation &ceiling) {
    const Reading needed = needed_without_clients(ceiling);
    const int64_t fits =
        ceiling.marks.target_bytes - ceiling.marks.plenty_bytes;
    if (ceiling.level == ceiling::Level::green || !needed ||
        static_cast<int64_t>(*needed) <= fits)
      return;
    add("ceiling_target_too_low", Severity::warning, "server",
        "misconfiguration",
        "the server needs " + size(*needed) +
            " at rest, without what sessions and statements have, and " +
            size(static_cast<double>(ceiling.marks.plenty_bytes)) +
            " for them; the ceiling's target is " +
            size(static_cast<double>(ceiling.marks.target_bytes)) +
            ": one statement runs at a time",
        "raise the limit or memdiag_memory_target to " +
            size(limit_that_fits(*needed)) +
            " at least, or lower innodb_buffer_pool_size")
        .bytes = at_most_rss(*needed);
  }

  void judge_host() {
    const host::Figures &host = m_now.host;
    if (host.transparent_huge_pages == "always" && m_now.allocator_huge_pages &&
        *m_now.allocator_huge_pages != "never")
      add("huge_pages", Severity::warning, "allocator", "misconfiguration",
          text("transparent huge pages are 'always' and the allocator has "
               "thp:%s: a page of 2 MiB stays for a block of 4 KiB",
               m_now.allocator_huge_pages->c_str()),
          "take thp out of MALLOC_CONF, in the service's file or the "
          "environment, and restart; until then: echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled");
    if (host.pressure_some_avg10 &&
        *host.pressure_some_avg10 >= pressure_percent)
      add("pressure", Severity::warning,
          host.is_pressure_of_cgroup ? "cgroup" : "machine", "host",
          text("in %.0f%% of the last 10 s a task waited for memory",
               *host.pressure_some_avg10),
          "SELECT memdiag_purge('all')");
    if (host.oom_score_adj && *host.oom_score_adj > 0)
      add("oom_score", Severity::note, "machine", "misconfiguration",
          text("oom_score_adj is %" PRId64
               ": the kernel kills this server before others",
               *host.oom_score_adj),
          "OOMScoreAdjust=-600 in the service's file (systemctl edit "
          "<service>)");
  }

  const Situation &m_now;
  std::vector<Finding> m_found;
};

}  // namespace

std::vector<Finding> findings(const Situation &situation) {
  return Advisor(situation).findings();
}

}  // namespace memdiag::advisor
