#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <string_view>

#include "plugin/memdiag/advice/holder_list.h"

namespace memdiag::advisor {
namespace {

/** A heap of mixed sizes usually has a quarter (MEMDIAG_LEDGER of the workloads
of bench/). */
constexpr double fragmented_part = 0.33;

class Pool_rules : Rules {
 public:
  using Rules::Rules;

  void judge_pools() {
    for (size_t i = 0; i < pool_count; ++i)
      judge_pool(static_cast<Pool>(i), m_now.pools[i]);
  }

 private:
  void judge_pool(Pool which, const Pool_situation &pool) {
    const Pool_spec &spec = spec_of(which);
    const std::string name = spec.name;
    const std::string_view lifetime = spec.lifetime;
    // Blocks of malloc() may be the server's as well as a session's.
    const bool lasts = outlives_clients(which) || uses_malloc(which);
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
      Finding &unused =
          add("unused_pages", Severity::note, name, "cache",
              size(bytes) + " of unused pages are kept", purge_of(name));
      unused.bytes = bytes;
      if (!m_now.lacks_functions) unused.statement = unused.remedy;
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
        // A session that has half of what is left may keep half of the pages.
        // The statement ends it only while it is idle, in no transaction.
        const auto &session = m_now.largest_session;
        if (which == Pool::session && session && session->is_idle &&
            !session->in_transaction &&
            m_now.largest_in_session_pool >=
                pool.resident_live_bytes.value_or(*pool.live_bytes) / 2 &&
            !is_reader(*session))
          offer_to_end(end_session(session->processlist_id), &fragmented);
      }
    }
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

  /** No more of live blocks is resident than their pool has. */
  Amount amount_of(uint64_t live_bytes, const Pool_situation &pool) const {
    return {at_most_rss(std::min(
                live_bytes, pool.resident_live_bytes.value_or(live_bytes))),
            live_bytes};
  }

  std::string flush() const {
    return (m_now.table_keepers == 0 ? "FLUSH LOCAL TABLES; " : "") +
           words_of_flush();
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
};

}  // namespace

void judge_pools(const Situation &situation, std::vector<Finding> *found) {
  Pool_rules(situation, found).judge_pools();
}

}  // namespace memdiag::advisor
