#include "plugin/memdiag/advice/summary.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/base/text.h"

namespace memdiag::summary {
namespace {

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t gib = 1024 * mib;
constexpr uint64_t minute_us = 60 * uint64_t{1000000};
constexpr uint64_t hour_us = 60 * minute_us;

/** Smaller growth and smaller amounts to get back are not shown. */
constexpr int64_t shown_bytes = mib;

/** Growth that no row names counts from a tenth of all. */
constexpr int64_t large_part_divisor = 10;

/** Rows of each question; the first of `holds` and `grew` is the process. */
constexpr size_t most_holders = 6;
constexpr size_t most_unusual = 4;
constexpr size_t most_grown = 3;
constexpr size_t most_reclaimable = 6;
constexpr size_t most_peaks = 3;
constexpr size_t most_findings = 3;
static_assert(most_holders + most_unusual + most_grown + most_reclaimable +
                  most_peaks + most_findings <=
              max_rows);

std::string size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < mib) return text("%.0f KiB", value / 1024);
  if (bytes < gib) return text("%.0f MiB", value / mib);
  const double gibs = value / gib;
  // Three digits, after rounding as well.
  return text(gibs < 9.995   ? "%.2f GiB"
              : gibs < 99.95 ? "%.1f GiB"
                             : "%.0f GiB",
              gibs);
}

std::string growth(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") +
         size(static_cast<uint64_t>(bytes < 0 ? -bytes : bytes));
}

std::string duration(uint64_t us) {
  if (us < 2 * minute_us) return text("%" PRIu64 " s", us / 1000000);
  if (us < 2 * hour_us) return text("%" PRIu64 " min", us / minute_us);
  if (us < 48 * hour_us) return text("%" PRIu64 " h", us / hour_us);
  return text("%" PRIu64 " days", us / (24 * hour_us));
}

/** @param all  0: unknown */
std::string percent(uint64_t bytes, uint64_t all) {
  if (all == 0) return "";
  return text("%.0f%% of RSS",
              100.0 * static_cast<double>(bytes) / static_cast<double>(all));
}

/** The name of a row of the ledger here: rows of one name are added up. */
std::string name_of(const Resident &part) {
  if (part.component == "buffer_pool") return "buffer pool";
  if (part.component == "pool") {
    if (part.state == "live") return "pool " + std::string(part.name);
    if (part.state == "fragmentation") return "fragmentation";
    if (part.state == "metadata") return "allocator metadata";
    return "unused pages";
  }
  if (part.component == "region") return "region " + std::string(part.name);
  if (part.component == "program" || part.component == "libraries" ||
      part.component == "files")
    return "program and files";
  return "other";
}

struct Amount {
  std::string name;
  int64_t bytes;
};

void add_to(std::vector<Amount> *amounts, std::string name, int64_t bytes) {
  for (Amount &amount : *amounts)
    if (amount.name == name) {
      amount.bytes += bytes;
      return;
    }
  amounts->push_back({std::move(name), bytes});
}

/** The largest first, at most so many. */
void keep_largest(std::vector<Amount> *amounts, size_t most) {
  std::stable_sort(
      amounts->begin(), amounts->end(),
      [](const Amount &a, const Amount &b) { return a.bytes > b.bytes; });
  if (amounts->size() > most) amounts->resize(most);
}

class Summary {
 public:
  explicit Summary(const Facts &facts) : m_facts(facts) {
    m_rss = static_cast<int64_t>(facts.rss_bytes.value_or(0));
  }

  std::vector<Row> rows() {
    add_holders();
    add_unusual_holders();
    add_growth();
    add_reclaimable();
    add_peaks();
    add_findings();
    return std::move(m_rows);
  }

 private:
  void add(const char *question, std::string what, std::string size,
           std::string detail, std::string statement = "") {
    m_rows.push_back({question, std::move(what), std::move(size),
                      std::move(detail), std::move(statement)});
  }

  uint64_t rss() const { return m_rss > 0 ? static_cast<uint64_t>(m_rss) : 0; }

  /** Parts are read before and after RSS, which changes meanwhile. */
  uint64_t at_most_rss(int64_t bytes) const {
    const auto found = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
    return rss() == 0 ? found : std::min(found, rss());
  }

  void add_holders() {
    if (rss() == 0) return;
    add("holds", "process (RSS)", size(rss()),
        m_facts.limit_bytes ? "limit: " + size(*m_facts.limit_bytes) : "");
    std::vector<Amount> all;
    for (const Resident &part : m_facts.resident)
      add_to(&all, name_of(part), part.bytes);
    keep_largest(&all, most_holders - 1);
    for (const Amount &one : all)
      if (one.bytes > 0)
        add("holds", one.name, size(at_most_rss(one.bytes)),
            percent(at_most_rss(one.bytes), rss()));
  }

  /** The advisor's findings about holders of its list. */
  void add_unusual_holders() {
    std::vector<const advisor::Finding *> found;
    for (const advisor::Finding &finding : m_facts.findings)
      if (finding.holder && finding.bytes) found.push_back(&finding);
    std::stable_sort(
        found.begin(), found.end(),
        [](const auto *a, const auto *b) { return *a->bytes > *b->bytes; });
    if (found.size() > most_unusual) found.resize(most_unusual);
    for (const advisor::Finding *finding : found) add_unusual(*finding);
  }

  void add_unusual(const advisor::Finding &finding) {
    std::string detail = finding.rule == "growth_of_a_cache"
                             ? "grows"
                             : "more than its usual share";
    // One session has most of it: that session is the cause. The advice knows
    // whether it may end.
    if (const auto &owner = finding.owner)
      detail = (owner->reads_this
                    ? "this session"
                    : text("session %" PRIu64, owner->processlist_id)) +
               ": " + size(owner->bytes);
    add("holds", *finding.holder, size(*finding.bytes), std::move(detail),
        statement_of(finding));
  }

  static std::string statement_of(const advisor::Finding &finding) {
    if (finding.statement && finding.statement->size() <= statement_length)
      return *finding.statement;
    return "SELECT * FROM information_schema.memdiag_advice";
  }

  void add_growth() {
    const auto samples = m_facts.samples;
    if (samples.size() < 2) return;
    const black_box::Sample &first = samples.front();
    const black_box::Sample &last = samples.back();
    if (last.time_us <= first.time_us ||
        advisor::are_old(samples, m_facts.now_us))
      return;
    const std::string since = "in " + duration(last.time_us - first.time_us);
    std::optional<int64_t> all;
    if (first.rss_bytes != black_box::unknown &&
        last.rss_bytes != black_box::unknown) {
      all = difference_of(last.rss_bytes, first.rss_bytes);
      add("grew", "process (RSS)", growth(*all), since);
    }
    std::vector<Amount> parts;
    const auto add_part = [&parts](const char *name, uint64_t before,
                                   uint64_t now) {
      if (before != black_box::unknown && now != black_box::unknown)
        parts.push_back({name, difference_of(now, before)});
    };
    add_part("buffer pool", first.buffer_pool_bytes, last.buffer_pool_bytes);
    add_part("redo log buffer", first.log_buffer_resident_bytes,
             last.log_buffer_resident_bytes);
    add_part("mapped files", first.file_bytes, last.file_bytes);
    for (size_t i = 0; i < pool_count; ++i)
      if (const auto grown = growth_of_pool(i, first, last))
        parts.push_back({std::string("pool ") + pool_specs[i].name, *grown});
    int64_t known = 0;
    for (const Amount &part : parts) known += part.bytes;
    if (all && *all - known >= *all / large_part_divisor)
      parts.push_back({"other", *all - known});
    keep_largest(&parts, most_grown - 1);
    for (const Amount &part : parts)
      if (part.bytes >= shown_bytes)
        add("grew", part.name, growth(part.bytes),
            since + (part.name.starts_with("pool ") ? ", estimated" : ""));
  }

  /** The part of a pool's live bytes that is resident; empty: not known.
  @param besides  resident bytes that the live ones are without */
  std::optional<double> resident_share_of(size_t i, uint64_t live_bytes,
                                          uint64_t besides = 0) const {
    if (live_bytes == 0) return std::nullopt;
    for (const Resident &part : m_facts.resident)
      if (part.component == "pool" && part.state == "live" &&
          part.name == pool_specs[i].name)
        return std::clamp(
            (static_cast<double>(part.bytes) - static_cast<double>(besides)) /
                static_cast<double>(live_bytes),
            0.0, 1.0);
    return std::nullopt;
  }

  /** The redo log buffer is in this pool, unless an option led it elsewhere. */
  static bool has_log_buffer(size_t i, const black_box::Sample &sample) {
    return static_cast<Pool>(i) == Pool::innodb &&
           sample.log_buffer_resident_bytes != black_box::unknown &&
           sample.log_buffer_bytes <= sample.pools[i].live_bytes;
  }

  /** Samples have a pool's live bytes. They are taken to be resident by the
  same part as now. */
  std::optional<int64_t> growth_of_pool(size_t i,
                                        const black_box::Sample &first,
                                        const black_box::Sample &last) const {
    uint64_t before = first.pools[i].live_bytes;
    uint64_t now = last.pools[i].live_bytes;
    if (before == black_box::unknown || now == black_box::unknown)
      return std::nullopt;
    uint64_t log_buffer = 0;
    // It has a row of its own.
    if (has_log_buffer(i, first) && has_log_buffer(i, last)) {
      before -= first.log_buffer_bytes;
      now -= last.log_buffer_bytes;
      log_buffer = last.log_buffer_resident_bytes;
    }
    const auto share = resident_share_of(i, now, log_buffer);
    if (!share) return std::nullopt;
    return static_cast<int64_t>(
        *share * static_cast<double>(difference_of(now, before)));
  }

  static int64_t difference_of(uint64_t a, uint64_t b) {
    return static_cast<int64_t>(a - b);
  }

  /** The advice has the statement, if it has a finding. */
  std::string statement_about(std::string_view holder) const {
    for (const advisor::Finding &finding : m_facts.findings)
      if (finding.holder == holder && finding.statement)
        return statement_of(finding);
    return "";
  }

  void add_reclaimable() {
    std::vector<Amount> unused;
    int64_t all = 0;
    int64_t clean = 0;
    int64_t full_text_caches = 0;
    for (const Resident &part : m_facts.resident) {
      if (part.component == "buffer_pool" && part.state == "clean pages")
        clean += part.bytes;
      if (part.component != "pool") continue;
      if (part.state == "dirty" || part.state == "muzzy") {
        add_to(&unused, std::string(part.name), part.bytes);
        all += part.bytes;
      } else if (part.state == "live" && part.name == "fts_cache") {
        full_text_caches += part.bytes;
      }
    }
    // Accounts, stored programs and temporary tables of sessions, which lie in
    // the same pools, stay.
    int64_t table_caches = 0;
    int64_t temporary_tables = 0;
    for (const advisor::Holding &holding : m_facts.holdings) {
      if (advisor::is_flushed(*holding.holder))
        table_caches += static_cast<int64_t>(holding.bytes);
      if (holding.holder->end == advisor::End::temporary_tables)
        temporary_tables += static_cast<int64_t>(holding.bytes);
    }
    const auto add_one = [this](std::string what, int64_t bytes,
                                const char *detail, std::string statement) {
      if (bytes >= shown_bytes)
        add("get back", std::move(what), size(at_most_rss(bytes)), detail,
            std::move(statement));
    };
    const char *const free_of_cost = "unused: costs nothing";
    const auto purge_of = [this](const std::string &pool) {
      return m_facts.lacks_functions ? std::string()
                                     : "SELECT memdiag_purge('" + pool + "')";
    };
    add_one("all pools", all, free_of_cost, purge_of("all"));
    // One row is above, three caches follow, and temporary tables if any.
    keep_largest(&unused,
                 most_reclaimable - (temporary_tables < shown_bytes ? 4 : 5));
    for (const Amount &pool : unused)
      add_one("pool " + pool.name, pool.bytes, free_of_cost,
              purge_of(pool.name));
    // No FLUSH that would wait for a session that keeps tables.
    if (m_facts.table_keepers == 0)
      // Open views have copies of the data dictionary's objects as well. How
      // many bytes those have is not known.
      add_one("table caches", table_caches,
              m_facts.data_dictionary_bytes <
                      static_cast<uint64_t>(table_caches) / 8
                  ? "at most; waits for queries"
                  : "and views; waits for queries",
              advisor::flush_tables);
    else
      add_one("table caches", table_caches, "not while tables are kept",
              "SELECT * FROM information_schema.memdiag_advice");
    add_one("user temporary tables", temporary_tables,
            "when their sessions end",
            statement_about("user temporary tables"));
    add_one("full-text caches", full_text_caches, "by OPTIMIZE LOCAL TABLE",
            statement_about("full-text caches"));
    // One of a single unit stays as it is.
    if (!is_zero(m_facts.buffer_pool_step_bytes))
      add_one("buffer pool", clean, "at most: read again on use",
              "SET GLOBAL innodb_buffer_pool_size = <less>");
  }

  std::string ago(uint64_t time_us) const {
    return time_us >= m_facts.now_us
               ? "now"
               : duration(m_facts.now_us - time_us) + " ago";
  }

  /** A pool's peak is one of live bytes. As many as live now are taken to have
  been resident by the same part as now, and the others wholly. No peak was
  above that of RSS. */
  uint64_t resident_at(size_t i, const Peak &peak, uint64_t most) const {
    const uint64_t live = std::min(peak.live_bytes.value_or(0), *peak.bytes);
    const double share = resident_share_of(i, live).value_or(1);
    const auto left = static_cast<uint64_t>(share * static_cast<double>(live));
    return std::min(most, left + (*peak.bytes - live));
  }

  /** RSS may have been higher since the last sample, or samples are off.
  @return no pool had more; 0: not known */
  uint64_t add_peak_of_process() {
    uint64_t sampled = 0;
    const auto samples = m_facts.samples;
    if (!samples.empty() && samples.back().rss_peak_us != 0 &&
        samples.back().rss_peak_bytes != black_box::unknown)
      sampled = samples.back().rss_peak_bytes;
    const uint64_t most =
        std::max({rss(), sampled, m_facts.rss_peak_bytes.value_or(0)});
    if (sampled == 0 && !m_facts.rss_peak_bytes) return most;
    std::string when;
    if (most == sampled)
      when = ago(samples.back().rss_peak_us);
    else if (most == rss())
      when = "now";
    else if (!samples.empty())
      when = "at most " + ago(samples.back().time_us);
    add("peak", "process (RSS)", size(most), std::move(when));
    return most;
  }

  void add_peaks() {
    const uint64_t most = add_peak_of_process();
    if (most == 0) return;
    struct Pool_peak {
      size_t pool;
      uint64_t bytes;
      uint64_t time_us;
    };
    std::vector<Pool_peak> peaks;
    for (size_t i = 0; i < pool_count; ++i)
      if (const Peak &peak = m_facts.pool_peaks[i]; peak.bytes && peak.time)
        peaks.push_back({i, resident_at(i, peak, most), peak.time->us});
    std::stable_sort(peaks.begin(), peaks.end(),
                     [](const Pool_peak &a, const Pool_peak &b) {
                       return a.bytes > b.bytes;
                     });
    if (peaks.size() > most_peaks - 1) peaks.resize(most_peaks - 1);
    for (const Pool_peak &peak : peaks)
      add("peak", std::string("pool ") + pool_specs[peak.pool].name,
          size(peak.bytes), ago(peak.time_us) + ", estimated");
  }

  void add_findings() {
    if (m_facts.findings.empty()) {
      add("wrong", "nothing", "", "");
      return;
    }
    for (const advisor::Finding &finding : m_facts.findings.first(
             std::min(m_facts.findings.size(), most_findings)))
      add("wrong", finding.holder.value_or(finding.subsystem), "",
          std::string(finding.severity_name()) + ": " + finding.verdict,
          statement_of(finding));
  }

  const Facts &m_facts;
  int64_t m_rss{0};
  std::vector<Row> m_rows;
};

}  // namespace

Facts make_facts(uint64_t now_us, const Snapshot &snapshot,
                 std::span<const ledger::Row> ledger,
                 std::span<const black_box::Sample> samples,
                 const advisor::Situation &situation,
                 std::span<const advisor::Finding> findings) {
  Facts facts{};
  facts.now_us = now_us;
  facts.rss_bytes = situation.host.resident_bytes;
  facts.rss_peak_bytes = situation.host.peak_resident_bytes;
  facts.limit_bytes = host::limit_bytes(situation.host);
  for (const ledger::Row &row : ledger)
    if (row.resident_bytes)
      facts.resident.push_back(
          {row.component, row.name, row.state, *row.resident_bytes});
  for (size_t i = 0; i < pool_count; ++i)
    facts.pool_peaks[i] = {snapshot.pools[i].peak_bytes,
                           snapshot.pools[i].peak_time,
                           snapshot.pools[i].held_bytes};
  facts.holdings = situation.holdings;
  facts.data_dictionary_bytes = situation.data_dictionary_bytes;
  facts.table_keepers = situation.table_keepers;
  facts.lacks_functions = situation.lacks_functions;
  const Reading &unit = situation.buffer_pool_unit_bytes;
  if (situation.buffer_pool_bytes && unit)
    facts.buffer_pool_step_bytes =
        *situation.buffer_pool_bytes > *unit ? *unit : 0;
  facts.samples = samples;
  facts.findings = findings;
  return facts;
}

std::vector<Row> rows(const Facts &facts) { return Summary(facts).rows(); }

}  // namespace memdiag::summary
