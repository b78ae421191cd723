/*
  Initialises records of Performance Schema when they are taken for the first
  time (patches/diets/0010 and 0035). Upstream initialises all of them at start
  or with the thread, which writes their pages.

  A record that was never taken is zero. A record that was taken has a pointer
  into the array of texts, unless the length of texts is 0; it is initialised
  again then, which changes nothing.

  Ownership: the arrays stay their owner's; the records point into them.
  Threads: the one that takes the record. Units: bytes.
*/

#ifndef MEMDIAG_PFS_FIRST_USE_H
#define MEMDIAG_PFS_FIRST_USE_H

#include <algorithm>
#include <cstddef>

#include "mysql/strings/m_ctype.h"
#include "sql/mysqld_cs.h"
#include "storage/perfschema/memdiag/text_groups.h"
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

/** True until first_use(), and for a free record if texts have no length. A
record that TRUNCATE has freed may be written once
more, by a statement that had found it before, so the next TRUNCATE empties it
again. */
inline bool was_never_taken(PFS_statements_digest_stat &record) {
  return record.m_lock.is_free() && record.m_query_sample == nullptr;
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

/** The places of the texts and tokens of a thread's history. */
class History_places {
 public:
  /** @param thread  the calling one */
  explicit History_places(const PFS_thread *thread)
      : m_thread(thread),
        m_page(*reinterpret_cast<const PFS_thread_array *>(thread->m_page)) {}

  /** Gives the record a place for what will be copied into it. What it had is
  lost. */
  void choose(unsigned index, const PFS_events_statements &copied) {
    PFS_events_statements *const record =
        &m_thread->m_statements_history[index];
    if (!shared()) {
      if (record->m_sqltext == nullptr) put(record, {index, 0, 0});
      return;
    }
    const unsigned halvings =
        std::min(halvings_for(copied.m_sqltext_length, pfs_max_sqltext),
                 halvings_for(copied.m_digest_storage.m_byte_count,
                              pfs_max_digest_length));
    if (record->m_sqltext != nullptr && halvings_of(*record) == halvings)
      return;
    Text_groups groups(events_statements_history_per_thread);
    for (unsigned i = 0; i < events_statements_history_per_thread; ++i) {
      const PFS_events_statements &other = m_thread->m_statements_history[i];
      if (i != index && other.m_sqltext != nullptr)
        groups.take(place_of(other));
    }
    put(record, groups.find(halvings));
  }

 private:
  /** Whether texts may share a group. */
  static bool shared() {
    return pfs_max_sqltext >= 64 && pfs_max_digest_length >= 64 &&
           events_statements_history_per_thread <= Text_groups::most;
  }

  size_t threads() const { return m_page.m_max; }

  static unsigned halvings_of(const PFS_events_statements &record) {
    const size_t size = record.m_digest_storage.m_token_array_length;
    unsigned halvings = 0;
    while (Text_place{0, 0, halvings}.size(pfs_max_digest_length) > size)
      ++halvings;
    return halvings;
  }

  Text_place place_of(const PFS_events_statements &record) const {
    const size_t at = record.m_sqltext - m_page.m_history_stmts_text_array;
    return {static_cast<unsigned>(at / pfs_max_sqltext / threads()),
            static_cast<unsigned>(at % pfs_max_sqltext / (pfs_max_sqltext / 8)),
            halvings_of(record)};
  }

  void put(PFS_events_statements *record, const Text_place &place) const {
    const size_t first =
        m_thread->m_statements_history - m_page.m_statements_history_array;
    const size_t group = text_of_record(
        first + place.group, events_statements_history_per_thread, threads());
    record->m_sqltext_length = 0;
    record->m_digest_storage.reset(m_page.m_history_stmts_digest_token_array +
                                       group * pfs_max_digest_length +
                                       place.begin(pfs_max_digest_length),
                                   place.size(pfs_max_digest_length));
    record->m_sqltext = m_page.m_history_stmts_text_array +
                        group * pfs_max_sqltext + place.begin(pfs_max_sqltext);
  }

  const PFS_thread *m_thread;
  const PFS_thread_array &m_page;
};

/** @param index   the number of a record of the thread's history
    @param copied  the statement that is copied into it next */
inline void first_use_history(const PFS_thread *thread, unsigned index,
                              const PFS_events_statements &copied) {
  History_places(thread).choose(index, copied);
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_FIRST_USE_H
