/*
  InnoDB forgets a table's statistics when its last handle is closed, so that
  FLUSH TABLE reads them anew. It also forgets how many rows were changed since
  they were computed. Where the ceiling closes unused tables again and again, a
  table with one writer would never be analysed, and its plans would get worse.
  So if a table's last handle is closed while an object of this class lives, the
  next open reads the statistics, but the number of changes stays.

  The plugin includes this header, so it includes none of InnoDB.
  Threads: it counts for the calling one. Locks: a mutex, below which no other
  lock is taken. Errors: without memory the number is forgotten, as upstream
  does.
*/

#ifndef MEMDIAG_KEPT_STATISTICS_H
#define MEMDIAG_KEPT_STATISTICS_H

namespace memdiag::innodb {

class Keep_statistics {
 public:
  Keep_statistics();
  ~Keep_statistics();
  Keep_statistics(const Keep_statistics &) = delete;
  Keep_statistics &operator=(const Keep_statistics &) = delete;
};

}  // namespace memdiag::innodb

#endif  // MEMDIAG_KEPT_STATISTICS_H
