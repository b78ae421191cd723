/*
  Initialises records of Performance Schema when they are taken for the first
  time (patches/0010, patches/0035). Upstream initialises all of them at start
  or with the thread, which writes their pages.

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
#include "storage/perfschema/pfs_buffer_container.h"
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

/** The number of a record's text and of its tokens. The first records of all
threads of a page lie together, then the second ones: most threads use the first
one only, and a text of 1 KB would take a page of 4 KB.
@param record   its number in the array of all threads
@param records  of a thread
@param threads  that have records in the array */
inline size_t text_of_record(size_t record, size_t records, size_t threads) {
  return record % records * threads + record / records;
}

/** The same of a record of a thread's nested statements. */
inline void first_use_current(const PFS_thread *thread,
                              PFS_events_statements *record) {
  if (record->m_sqltext != nullptr) return;
  const auto *page = reinterpret_cast<const PFS_thread_array *>(thread->m_page);
  first_use(record,
            text_of_record(record - page->m_statements_stack_array,
                           statement_stack_max, page->m_max),
            page->m_current_stmts_digest_token_array,
            page->m_current_stmts_text_array);
}

/** The same of a record of a thread's history. */
inline void first_use_history(const PFS_thread *thread,
                              PFS_events_statements *record) {
  if (record->m_sqltext != nullptr) return;
  const auto *page = reinterpret_cast<const PFS_thread_array *>(thread->m_page);
  first_use(record,
            text_of_record(record - page->m_statements_history_array,
                           events_statements_history_per_thread, page->m_max),
            page->m_history_stmts_digest_token_array,
            page->m_history_stmts_text_array);
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_FIRST_USE_H
