/*
  When statements see the same figures.

  Somebody who asks for one table after the other, as a monitor does, wants
  figures that agree, and asks for the same ones again and again: jemalloc's
  statistics, a walk through all threads' counters, twenty files of the system.
  So statements of one session that follow each other at once, each for tables
  that none before it had read, are one look at the server. To read a table
  again, or to do anything else in between, is to look anew.

  A Look belongs to one thread. Units: microseconds of the monotonic clock.
*/

#ifndef MEMDIAG_LOOK_H
#define MEMDIAG_LOOK_H

#include <cstdint>
#include <optional>

namespace memdiag {

class Look {
 public:
  /** A statement that reads tables of this plugin. */
  struct Statement {
    uint64_t session;
    /** No other statement of the server has it. */
    uint64_t query;
    /** How many the session's client has sent; empty if nothing seen before
    will do, nor what this one sees for others. So it is inside a stored
    program, which does other things between two of its statements. */
    std::optional<uint64_t> number;
    /** A bit for each table that it reads. */
    uint64_t tables;
    uint64_t time_us;
  };

  /** What was seen is this old at most. */
  static constexpr uint64_t most_us = 200'000;

  /** The statement is part of the look from now on, or begins the next one.
  @return whether it goes on with what was seen */
  bool goes_on_with(const Statement &statement) {
    const bool same = statement.query == m_last.query;
    const bool next = statement.session == m_last.session && statement.number &&
                      m_last.number &&
                      *statement.number == *m_last.number + 1 &&
                      (statement.tables & m_tables) == 0 &&
                      statement.time_us - m_began_us < most_us;
    if (!same && !next) {
      m_tables = 0;
      m_began_us = statement.time_us;
    }
    m_tables |= statement.tables;
    m_last = statement;
    return same || next;
  }

 private:
  Statement m_last{};
  uint64_t m_tables = 0;
  uint64_t m_began_us = 0;
};

}  // namespace memdiag

#endif  // MEMDIAG_LOOK_H
