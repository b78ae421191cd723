#include "plugin/memdiag/advice/summary.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "plugin/memdiag/advice/usual_shares.h"

namespace memdiag::summary {
namespace {

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t gib = 1024 * mib;
constexpr uint64_t minute_us = 60 * uint64_t{1000000};
constexpr uint64_t hour_us = 60 * minute_us;

/** Smaller holders are no reason to act (worth_bytes of advisor.cc). */
constexpr uint64_t unusual_bytes = 64 * mib;
/** Smaller growth and smaller amounts to get back are not shown. */
constexpr int64_t worth_bytes = mib;

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

std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

std::string text(const char *format, ...) {
  char buffer[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < mib) return text("%.0f KiB", value / 1024);
  if (bytes < gib) return text("%.0f MiB", value / mib);
  return text(bytes < 100 * gib ? "%.2f GiB" : "%.0f GiB", value / gib);
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

/** A part with this prefix stands for a whole pool. */
constexpr std::string_view pool_prefix = "pool:";

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
    for (const Resident &part : facts.resident)
      if (part.component == "buffer_pool") m_buffer_pool += part.bytes;
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
        add("holds", one.name, size(static_cast<uint64_t>(one.bytes)),
            percent(static_cast<uint64_t>(one.bytes), rss()));
  }

  uint64_t bytes_of_pool(std::string_view pool) const {
    int64_t bytes = 0;
    for (const Resident &part : m_facts.resident)
      if (part.component == "pool" && part.name == pool && part.state == "live")
        bytes += part.bytes;
    return static_cast<uint64_t>(bytes);
  }

  uint64_t bytes_of(const Holder &holder) const {
    uint64_t bytes = 0;
    for (const std::string_view part : holder.parts) {
      if (part.empty()) continue;
      if (part.starts_with(pool_prefix)) {
        bytes += bytes_of_pool(part.substr(pool_prefix.size()));
        continue;
      }
      for (const Instrument &instrument : m_facts.instruments)
        if (instrument.name.starts_with(part)) bytes += instrument.bytes;
    }
    return bytes;
  }

  static bool has(const Holder &holder, const Instrument &instrument) {
    return std::any_of(
        holder.parts.begin(), holder.parts.end(), [&](std::string_view part) {
          if (part.empty()) return false;
          return part.starts_with(pool_prefix)
                     ? part.substr(pool_prefix.size()) == instrument.pool
                     : instrument.name.starts_with(part);
        });
  }

  /** The session's bytes of the holder, as far as Performance Schema counts
  them by session. */
  static uint64_t bytes_of(const Session &session, const Holder &holder) {
    uint64_t bytes = 0;
    for (const Instrument &held : session.held)
      if (has(holder, held)) bytes += held.bytes;
    return bytes;
  }

  /** Programs of triggers belong to open tables, but their memory has the same
  name as that of the stored-program cache. The cache's hash tells them apart:
  an entry takes some 100 bytes. Where programs would have to be larger than
  largest_program to fill their memory, most of them are triggers. */
  bool are_triggers() const {
    constexpr uint64_t entry_bytes = 100;
    constexpr uint64_t largest_program = 4 * mib;
    uint64_t programs = 0;
    uint64_t entries = 0;
    for (const Instrument &instrument : m_facts.instruments) {
      if (instrument.name == "memory/sql/sp_head::main_mem_root")
        programs += instrument.bytes;
      if (instrument.name == "memory/sql/THD::sp_cache")
        entries += instrument.bytes;
    }
    return programs > entries / entry_bytes * largest_program;
  }

  /** `%` becomes half the variable's value where that is known and the
  statement then fits. */
  std::string statement_of(const Holder &holder) const {
    const std::string declared = holder.statement;
    const size_t place = declared.find('%');
    if (place == std::string::npos) return declared;
    const auto with = [&](const std::string &value) {
      return std::string(declared).replace(place, 1, value);
    };
    const auto value = m_facts.variables.find(holder.variable);
    if (value != m_facts.variables.end())
      if (std::string statement = with(std::to_string(value->second / 2));
          statement.size() <= statement_length)
        return statement;
    return with("<less>");
  }

  void add_unusual_holders() {
    struct Unusual {
      const Holder *holder;
      uint64_t bytes;
    };
    std::vector<Unusual> found;
    const int64_t outside = m_rss - m_buffer_pool;
    if (outside <= 0) return;
    for (const Holder &declared : holders) {
      const Holder *const holder =
          declared.variable != nullptr &&
                  strcmp(declared.variable, "stored_program_cache") == 0 &&
                  are_triggers()
              ? &triggers
              : &declared;
      const uint64_t bytes = bytes_of(*holder);
      if (bytes >= unusual_bytes &&
          static_cast<double>(bytes) * 100 >
              static_cast<double>(outside) * holder->usual_percent)
        found.push_back({holder, bytes});
    }
    std::stable_sort(
        found.begin(), found.end(),
        [](const Unusual &a, const Unusual &b) { return a.bytes > b.bytes; });
    if (found.size() > most_unusual) found.resize(most_unusual);
    for (const Unusual &one : found) add_unusual(*one.holder, one.bytes);
  }

  void add_unusual(const Holder &holder, uint64_t bytes) {
    const auto &session = m_facts.largest_session;
    const uint64_t of_session =
        holder.of_sessions && session ? bytes_of(*session, holder) : 0;
    // One session has most of it: that session is the cause.
    if (of_session != 0 && of_session >= bytes / 2) {
      add("holds", holder.name, size(bytes),
          text("session %" PRIu64 ": %s", session->processlist_id,
               size(of_session).c_str()),
          text("KILL %" PRIu64, session->processlist_id));
      return;
    }
    add("holds", holder.name, size(bytes), "more than its usual share",
        statement_of(holder));
  }

  void add_growth() {
    const auto samples = m_facts.samples;
    if (samples.size() < 2) return;
    const black_box::Sample &first = samples.front();
    const black_box::Sample &last = samples.back();
    if (last.time_us <= first.time_us) return;
    const std::string since = "in " + duration(last.time_us - first.time_us);
    if (first.rss_bytes != black_box::unknown &&
        last.rss_bytes != black_box::unknown)
      add("grew", "process (RSS)",
          growth(difference_of(last.rss_bytes, first.rss_bytes)), since);
    std::vector<Amount> pools;
    for (size_t i = 0; i < pool_count; ++i) {
      const uint64_t before = first.pools[i].live_bytes;
      const uint64_t now = last.pools[i].live_bytes;
      if (before != black_box::unknown && now != black_box::unknown)
        add_to(&pools, std::string("pool ") + pool_specs[i].name,
               difference_of(now, before));
    }
    keep_largest(&pools, most_grown - 1);
    for (const Amount &pool : pools)
      if (pool.bytes >= worth_bytes)
        add("grew", pool.name, growth(pool.bytes), since);
  }

  static int64_t difference_of(uint64_t a, uint64_t b) {
    return static_cast<int64_t>(a - b);
  }

  void add_reclaimable() {
    std::vector<Amount> unused;
    int64_t all = 0;
    int64_t clean = 0;
    int64_t table_caches = 0;
    int64_t full_text_caches = 0;
    for (const Resident &part : m_facts.resident) {
      if (part.component == "buffer_pool" && part.state == "clean pages")
        clean += part.bytes;
      if (part.component != "pool") continue;
      if (part.state == "dirty" || part.state == "muzzy") {
        add_to(&unused, std::string(part.name), part.bytes);
        all += part.bytes;
      } else if (part.state == "live" &&
                 (part.name == "table_cache" || part.name == "dictionary")) {
        table_caches += part.bytes;
      } else if (part.state == "live" && part.name == "fts_cache") {
        full_text_caches += part.bytes;
      }
    }
    const auto add_one = [this](std::string what, int64_t bytes,
                                const char *detail, std::string statement) {
      if (bytes >= worth_bytes)
        add("get back", std::move(what), size(static_cast<uint64_t>(bytes)),
            detail, std::move(statement));
    };
    const char *const free_of_cost = "unused: costs nothing";
    add_one("all pools", all, free_of_cost, "SELECT memdiag_purge('all')");
    // One row is above, three caches follow.
    keep_largest(&unused, most_reclaimable - 4);
    for (const Amount &pool : unused)
      add_one("pool " + pool.name, pool.bytes, free_of_cost,
              "SELECT memdiag_purge('" + pool.name + "')");
    add_one("table caches", table_caches, "waits for running queries",
            "FLUSH LOCAL TABLES");
    add_one("full-text caches", full_text_caches, "then OPTIMIZE LOCAL TABLE",
            "SET GLOBAL innodb_optimize_fulltext_only = ON");
    add_one("buffer pool", clean, "at most: read again on use",
            "SET GLOBAL innodb_buffer_pool_size = <less>");
  }

  std::string ago(uint64_t time_us) const {
    return time_us >= m_facts.now_us
               ? "now"
               : duration(m_facts.now_us - time_us) + " ago";
  }

  void add_peaks() {
    if (!m_facts.samples.empty()) {
      const black_box::Sample &last = m_facts.samples.back();
      if (last.rss_peak_bytes != black_box::unknown && last.rss_peak_us != 0)
        add("peak", "process (RSS)", size(last.rss_peak_bytes),
            ago(last.rss_peak_us));
    }
    struct Pool_peak {
      size_t pool;
      uint64_t bytes;
      uint64_t time_us;
    };
    std::vector<Pool_peak> peaks;
    for (size_t i = 0; i < pool_count; ++i)
      if (const Peak &peak = m_facts.pool_peaks[i]; peak.bytes && peak.time)
        peaks.push_back({i, *peak.bytes, peak.time->us});
    std::stable_sort(peaks.begin(), peaks.end(),
                     [](const Pool_peak &a, const Pool_peak &b) {
                       return a.bytes > b.bytes;
                     });
    if (peaks.size() > most_peaks - 1) peaks.resize(most_peaks - 1);
    for (const Pool_peak &peak : peaks)
      add("peak", std::string("pool ") + pool_specs[peak.pool].name,
          size(peak.bytes), ago(peak.time_us));
  }

  void add_findings() {
    constexpr const char *advice =
        "SELECT * FROM information_schema.memdiag_advice";
    if (m_facts.findings.empty()) {
      add("wrong", "nothing", "", "");
      return;
    }
    for (const advisor::Finding &finding : m_facts.findings.first(
             std::min(m_facts.findings.size(), most_findings)))
      add("wrong", finding.subsystem, "",
          std::string(finding.severity_name()) + ": " + finding.verdict,
          advice);
  }

  const Facts &m_facts;
  int64_t m_rss{0};
  int64_t m_buffer_pool{0};
  std::vector<Row> m_rows;
};

}  // namespace

std::vector<const char *> variables() {
  std::vector<const char *> names{triggers.variable};
  for (const Holder &holder : holders)
    if (holder.variable != nullptr) names.push_back(holder.variable);
  return names;
}

std::vector<Row> rows(const Facts &facts) { return Summary(facts).rows(); }

}  // namespace memdiag::summary
