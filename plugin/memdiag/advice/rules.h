/*
  What the rules of the advisor have in common. Each file *_rules.cc has those
  of one subject, in a class of its own that judges one situation.

  Only these files and advisor.cc include this header.

  Ownership: the situation and the findings are the caller's. Threads: any.
  Units: bytes, seconds. Errors: std::bad_alloc is thrown.
*/

#ifndef MEMDIAG_RULES_H
#define MEMDIAG_RULES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/memdiag/advice/finding.h"

namespace memdiag::advisor {

inline constexpr uint64_t mib = 1 << 20;
inline constexpr double day = 86400;
/** An event of longer ago is none of now. The alerts look back as far. */
inline constexpr uint64_t hour_seconds = 3600;
/** A user should know of a share this large without asking. */
inline constexpr double warning_percent = 25;
/** A warning has its text, and sixteen strings and numbers beside it. */
inline constexpr uint64_t least_of_a_warning = 400;
inline constexpr const char *growth_of_a_cache = "growth_of_a_cache";

/** Without a statement that ends sessions. */
inline constexpr const char *locks_are_not_counted =
    "; no statement can leave out sessions that keep locks, which KILL "
    "releases: Performance Schema does not count locks of names (instrument "
    "wait/lock/metadata/sql/mdl, consumer global_instrumentation), began to "
    "after some session had connected, or has lost some "
    "(Performance_schema_metadata_lock_lost)";

std::string size(double bytes);
std::string size(uint64_t bytes);
std::string duration(double seconds);
/** @param part  the part of the trend that is resident */
std::string rate(const Trend &trend, double part = 1);
/** @param part  the part of the trend that is resident
@return true: it grows steadily and by an amount that matters */
bool grows(const std::optional<Trend> &trend, double part = 1);

/** Bytes of a finding: resident, and allocated where that is more. */
struct Amount {
  uint64_t bytes;
  uint64_t allocated_bytes;

  /** Allocated bytes where they are shown to be more. */
  std::string words() const;
  void put_into(Finding *finding) const;
};

class Rules {
 public:
  Rules(const Situation &situation, std::vector<Finding> *found)
      : m_now(situation), m_found(*found) {}

 protected:
  /** @return for what else is known of it; valid until the next call */
  Finding &add(std::string rule, Severity severity, std::string subsystem,
               const char *verdict, std::string evidence, std::string remedy);
  /** A finding if more than a share of the memory besides the buffer pool is
  in one place. The buffer pool is as large as its user made it.
  @return nullptr: it is not */
  Finding *judge_share(const std::string &rule, const char *subsystem,
                       const std::string &words, Amount amount,
                       unsigned usual_percent, std::string remedy);

  /** Figures of different moments need not agree: none is more than RSS. */
  uint64_t at_most_rss(uint64_t bytes) const;
  bool is_large(uint64_t bytes) const;
  /** @param statement  ends sessions */
  void offer_to_end(std::string statement, Finding *found) const;
  /** It reads the advice. A statement leaves out the session that runs it. */
  bool is_reader(const Session &session) const;
  /** Huge pages that large_pages reserves: the machine's memory has them, and
  the limit of a control group does not count them. */
  uint64_t not_counted_bytes() const;
  /** The next smaller size that InnoDB takes; 0: there is none. */
  uint64_t whole_units(uint64_t bytes) const;

  /** A statement, or what it takes to have it. */
  std::string purge_of(const std::string &pool) const;

  /** The ceiling keeps the server below the limit. Statements wait or end
  there, and the kernel does not kill the server. */
  bool is_held() const;
  const char *words_of_ceiling() const;
  /** FLUSH LOCAL TABLES makes these wait. */
  std::string words_of_flush() const;

  const Situation &m_now;
  std::vector<Finding> &m_found;
};

void judge_pools(const Situation &situation, std::vector<Finding> *found);
void judge_swap(const Situation &situation, std::vector<Finding> *found);
void judge_holders(const Situation &situation, std::vector<Finding> *found);
void judge_limits(const Situation &situation, std::vector<Finding> *found);
void judge_configuration(const Situation &situation,
                         std::vector<Finding> *found);
void judge_ceiling(const Situation &situation, std::vector<Finding> *found);
void judge_host(const Situation &situation, std::vector<Finding> *found);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_RULES_H
