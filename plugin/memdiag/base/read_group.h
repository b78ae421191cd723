/*
  The statements that see the same figures.

  A monitor reads one table after the other and wants figures that agree. Most
  tables are made from the same costly readings: jemalloc's statistics, the
  counters of all threads, twenty files of the kernel. Statements of one session
  therefore form a read group, and share these readings, while
  - they follow each other with no other statement in between,
  - none of them reads a table that another one of the group has read,
  - none of them purges, and
  - the group is younger than max_age_us.
  Any other statement that reads a table begins a new group.

  A Read_group belongs to one thread. Units: microseconds of the monotonic
  clock.
*/

#ifndef MEMDIAG_READ_GROUP_H
#define MEMDIAG_READ_GROUP_H

#include <cstdint>
#include <optional>

namespace memdiag {

class Read_group {
 public:
  /** A statement that reads tables of this plugin. */
  struct Statement {
    uint64_t session;
    /** Unique in the server. */
    uint64_t query;
    /** Position among the statements that the client has sent. FLUSH STATUS and
    a reset of the connection set it to 0, and can hide statements in between.
    Empty: the statement is a group of its own. Statements of a stored program
    are, because the program does other things between two of them. */
    std::optional<uint64_t> number;
    /** A bit for each table that it reads. */
    uint64_t tables;
    uint64_t time_us;
  };

  static constexpr uint64_t max_age_us = 200'000;

  /** Adds the statement to the group, or begins a new group with it.
  @return true: the group goes on, and so do its readings */
  bool continues_with(const Statement &statement) {
    const bool same = statement.query == m_last.query;
    const bool next = statement.session == m_last.session && statement.number &&
                      m_last.number &&
                      *statement.number == *m_last.number + 1 &&
                      (statement.tables & m_tables) == 0 &&
                      statement.time_us - m_began_us < max_age_us;
    if (!same && !next) {
      m_tables = 0;
      m_began_us = statement.time_us;
    }
    m_tables |= statement.tables;
    const bool has_ended = same && !m_last.number;
    m_last = statement;
    if (has_ended) m_last.number.reset();
    return same || next;
  }

  /** No later statement joins the group. */
  void end() { m_last.number.reset(); }

 private:
  Statement m_last{};
  uint64_t m_tables = 0;
  uint64_t m_began_us = 0;
};

}  // namespace memdiag

#endif  // MEMDIAG_READ_GROUP_H
