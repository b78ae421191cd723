/*
  A statement that begins while memory is short takes less of it for internal
  temporary tables (spilled_tables.h) and hash joins, and writes the rest to
  disk. Its session's join_buffer_size is lowered until it ends. That changes no
  answer: only when a temporary table goes to InnoDB, and a join to files. What
  lies on a tmpfs is memory anyway, and is left alone.

  Sorts keep sort_buffer_size: a sort whose rows do not fit into it fails.

  Ownership, threads: an object belongs to a session's thread. Locks: none.
  Errors: none.
*/

#ifndef MEMDIAG_SPILLING_H
#define MEMDIAG_SPILLING_H

class THD;

namespace memdiag::ceiling {

class Spilling {
 public:
  /** The thread's statement begins. @return false: it has nothing to spill */
  bool begin(THD *thd);
  /** It has ended. Nothing happens if it did not spill. */
  void end(THD *thd);

 private:
  bool m_spills{false};
  /** The session's own. */
  unsigned long m_join_bytes{0};
  unsigned long m_lowered_join_bytes{0};
};

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_SPILLING_H
