/*
  Initialises records of Performance Schema when they are taken for the first
  time (patches/0010). Upstream initialises all of them at start, which writes
  their pages.

  A record that was never taken is zero. A record that was taken has a pointer
  into the array of texts, unless the length of texts is 0; it is initialised
  again then, which changes nothing.

  Ownership: the arrays stay their owner's; the records point into them.
  Threads: the one that takes the record. Units: bytes.
*/

#ifndef MEMDIAG_PFS_FIRST_USE_H
#define MEMDIAG_PFS_FIRST_USE_H

#include <cstddef>

#include "mysql/strings/m_ctype.h"
#include "sql/mysqld_cs.h"
#include "storage/perfschema/pfs_digest.h"
#include "storage/perfschema/pfs_events_statements.h"
#include "storage/perfschema/pfs_instr.h"

namespace memdiag {

/** @param index   the record's; its tokens and its text have the same
    @param tokens  of all records
    @param texts   of all records */
inline void first_use(PFS_statements_digest_stat *record, size_t index,
                      unsigned char *tokens, char *texts) {
  if (record->m_query_sample != nullptr) return;
  record->m_digest_storage.reset(tokens + index * pfs_max_digest_length,
                                 pfs_max_digest_length);
  record->m_stat.reset();
  record->m_query_sample = texts + index * pfs_max_sqltext;
  record->m_query_sample_cs_number = system_charset_info->number;
}

/** The same of a record of the history. */
inline void first_use(PFS_events_statements *record, size_t index,
                      unsigned char *tokens, char *texts) {
  if (record->m_sqltext != nullptr) return;
  record->m_digest_storage.reset(tokens + index * pfs_max_digest_length,
                                 pfs_max_digest_length);
  record->m_sqltext = texts + index * pfs_max_sqltext;
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_FIRST_USE_H
